"""Sentences that several pages of a report share. Public."""

from __future__ import annotations

from collections.abc import Iterator

from htf.estimation.level import LEVEL_TEXT
from htf.forecasts.release_errors import AreaErrors
from htf.frame.areas import cell_metres
from htf.frame.domain import Axis, Domain
from htf.privacy.epsilon import Epsilon
from htf.privacy.protection import PEOPLE, PERSON, RECORD, SUM_OF
from htf.query.answer_texts import counted_note, counts_of, show_amount, show_count, show_interval
from htf.release.release import Release
from htf.series.plan import SeriesPlan

LEAST_SHARE = 0.0001
LONGEST_EPSILON = 8  # characters; a third of something has more


def short(epsilon: Epsilon) -> str:
    """An epsilon to read: rounded where it has many digits. Page 3 and the statement have all of them."""
    text = str(epsilon)
    return text if len(text) <= LONGEST_EPSILON else f"{float(epsilon):.4g}"


def things(quantity: str) -> str:
    """What lies on the map: `records`, also where a sum is counted."""
    return "records" if quantity.startswith(SUM_OF) else quantity


def amount(number: float, quantity: str) -> str:
    """A number with what it counts: `9 records`, but `9 (sum of passengers)`."""
    return show_amount(show_count(number, quantity), quantity)


def told_file(release: Release) -> str:
    """What is in the file, in a sentence that lacks its subject, and what exactly is counted."""
    note = counted_note(release.quantity, release.counted)
    said = f"noisy {counts_of(release.quantity)} for {told_map(release)}."
    period = release.protection.per
    if period is not None and release.protection.count == PEOPLE:
        said += f" A person-{period} is one person in one {period}."
    return said if note is None else f"{said} {note}"


def told_map(release: Release) -> str:
    domain = release.domain
    by = [_told_axis(axis) for axis in domain.axes[2 if domain.has_map else 0 :]]
    if domain.has_map:
        inside = "" if release.zones is None else f", and for {release.zones.domain.size:,} zones"
        further = f", by {' and '.join(by)}" if by else ""
        return f"{len(release):,} regions of {_told_ground(domain)}{further}{inside}"
    if len(domain.outlined) == 2:
        return f"trips from {' to '.join(by[:2])}" + "".join(f", by {one}" for one in by[2:])
    return ", by ".join(by)


def _told_ground(domain: Domain) -> str:
    cell = cell_metres(domain)
    if cell is None:
        return "a map"
    sides = (side * axis.cells / 1000 for side, axis in zip(cell, domain.axes[:2], strict=True))
    width, height = (f"{float(f'{side:.2g}'):,g}" for side in sides)
    return f"a map of about {width} x {height} km"


def _told_axis(axis: Axis) -> str:
    if not axis.levels:
        return f"{axis.name} ({axis.cells:,} {axis.plural})"
    first, *above = axis.levels
    higher = "".join(f", {len(one.labels):,} by {one.name}" for one in above)
    return f"{len(first.labels):,} {axis.plural} (by {first.name}{higher})"


def told_plan(plan: SeriesPlan) -> str:
    """What the plan of a series promises, with epsilons that can be read."""
    said = " ".join(plan.told)
    for epsilon in (plan.each, plan.total):
        said = said.replace(str(epsilon), short(epsilon))
    return said


def told_total(release: Release) -> str:
    """What the release counts in all, with its interval."""
    answer = release.count().to_dicts()[0]
    quantity = release.quantity
    return (
        f"In all it counts about {amount(answer['count'], quantity)} "
        f"({LEVEL_TEXT} interval: {show_interval(answer, quantity)})."
    )


def is_square(row: AreaErrors) -> bool:
    """Whether areas are squares of some size, and not named parts of an axis."""
    return row.km is not None or "%" in row.name


def told_error(row: AreaErrors, quantity: str) -> str:
    """How far off counts of one size are: `± 58 of about 5,768 records (1 %)`."""
    share = row.relative_margin
    relative = "" if share is None or share > 2 else f" ({per_cent(share)})"
    return f"± {show_count(row.margin, quantity)} of about {amount(row.count, quantity)}{relative}"


def per_cent(share: float) -> str:
    if 0 < share < LEAST_SHARE:
        return f"< {100 * LEAST_SHARE:g} %"
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


def unprotected(release: Release) -> Iterator[str]:
    """What the guarantee does not cover, in short. The statement has the exact words."""
    protection = release.protection
    if protection.unit == RECORD:
        yield "All records of one person together: for k of them the promise is that of k times ε."
    else:
        yield (
            "Identifiers that are no persons: someone with two is protected as two people, and each of several people who share "
            "one only by twice ε."
        )
    if protection.per is not None:
        yield f"What someone does over several {protection.per}s together: each {protection.per} is protected for itself."
    yield (
        f"Facts that hold whether or not any {protection.name} is in the data, such as that a street is busy at night."
    )
    yield f"What was fixed beforehand and is public: {_public(release)}."
    if protection.of_query:
        yield "How a query or view made the rows that were read, if one of them could change others."
    if release.parameters.get("public_total") is not None:
        yield "The number of all records, which the curator gave as a public fact."
    if release.priors and release.background is None:
        names = ", ".join(prior.name for prior in release.priors)
        yield f"The public priors ({names}), which travel with the release and must not come from the same data."
    yield "Other publications from the same data, and the time that the computation took."
    yield "The records where they are kept: this is about what was published, not about storage and access."


def _public(release: Release) -> str:
    domain = release.domain
    known = ["the bounds and the grid of the map"] if domain.has_map else []
    kinds = {axis.plural for axis in domain.axes}
    if "zones" in kinds or release.zones is not None:
        known.append("the zones and their names")
    if "names" in kinds:
        known.append("the lists of categories")
    known.append("the method and its settings")
    if release.protection.unit == PERSON:
        known.append("how each person counts")
    return ", ".join(known)
