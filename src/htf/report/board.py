"""The first page, for a board: what was published, the map, one number for privacy and one for accuracy. Public."""

from __future__ import annotations

from collections.abc import Iterator

from htf.estimation.level import LEVEL_TEXT
from htf.forecasts.release_errors import AreaErrors
from htf.privacy.meaning import Meaning, belief_text
from htf.privacy.protection import RECORD, explain_people
from htf.query.answer_texts import show_count
from htf.release.release import Release
from htf.report.html import Content, Markup, element, items, join, picture, table
from htf.report.pictures import map_picture
from htf.report.sizes import LeafSizes
from htf.report.subject import Subject
from htf.report.words import (
    amount,
    is_square,
    per_cent,
    short,
    things,
    told_error,
    told_file,
    told_plan,
    told_total,
)

MOST_NAMES = 14  # rows of a table that stands in place of a map
ALT = "A map of what the release counts. Darker places have more; blank places cannot be distinguished from noise."


def board_page(subject: Subject) -> Markup:
    return join(
        element("p", *_lead(subject), css="lead"),
        _picture(subject),
        element("div", _privacy(subject), _accuracy(subject), css="tiles"),
        element("h2", "What to know"),
        items(_points(subject)),
    )


def _lead(subject: Subject) -> Iterator[Content]:
    release = subject.release
    if subject.series is not None:
        done, plan = len(subject.series.periods), subject.series.plan
        yield (
            f"A map for every {plan.period}: {done} of up to {plan.releases} are published. Each is one file with noisy "
            f"numbers in place of the records. The latest, {subject.file}, has {told_file(release)} "
        )
    else:
        yield f"What was published is one file, {subject.file}. It has {told_file(release)} "
    yield f"{told_total(release)} The records themselves are not in it. "
    yield "Whoever has the file may ask it any number of questions: none tells more about anyone than the file does."


def _picture(subject: Subject) -> Markup:
    address = map_picture(subject)
    if address is None:
        return _names(subject.release)
    return element("figure", picture(address, ALT, "map"))


def _names(release: Release) -> Markup:
    """In place of a map: the largest counts, by name or by step."""
    found = release.table(release.domain.names[0]).to_pylist()
    found.sort(key=lambda row: -row["count"])
    label, quantity = next(iter(found[0])), release.quantity
    lines = []
    for row in found[:MOST_NAMES]:
        count, low, high = (show_count(row[name], quantity) for name in ("count", "low", "high"))
        lines.append((str(row[label]), count, f"{low} to {high}"))
    headers = (label, f">{quantity}", f">{LEVEL_TEXT} interval")
    return element("figure", table(headers, lines), css="names")


def _privacy(subject: Subject) -> Markup:
    """Of a release; of a series, what its plan allows in the end."""
    release, plan = subject.release, subject.plan
    epsilon = release.epsilon if plan is None else plan.total
    sure = belief_text(Meaning(epsilon, release.protection).after(0.5))
    file = "the file" if plan is None else "all files of the plan"
    whom = release.protection.name
    if plan is not None and plan.adds_up:
        whom += f" who is in all {plan.releases} {plan.period}s"
    one = "record" if release.protection.unit == RECORD else "person"
    period = "" if release.protection.per is None else f" of one {release.protection.per}"
    said = (
        f"Somebody takes it for a coin toss whether a certain {one} is in the data{period}. After seeing {file}, they can be at most {sure} sure, "
        "whatever else they know. 50 % would mean that nothing is learnt, 100 % that it is certain."
    )
    words = f"50 % → {sure}", f"ε = {short(epsilon)} for {whom}", said
    return _tile("Privacy", *words, css="tile" if release.private else "tile void")


def _tile(title: str, big: str = "", unit: str = "", text: str = "", css: str = "tile") -> Markup:
    """A number with what it means; without one, the title alone."""
    lines = element("p", big, css="big"), element("p", unit, css="unit"), element("p", text)
    return element("section", element("h3", title), *(lines if big else ()), css=css)


def _accuracy(subject: Subject) -> Markup:
    row, quantity = subject.errors.usual, subject.release.quantity
    if row is None:
        return _tile("Accuracy")
    share = row.relative_margin
    margin = show_count(row.margin, quantity) if share is None or share >= 1 else per_cent(share)
    held = f"about {amount(row.count, quantity)} each"
    areas = f"per {row.name}, of {held}"
    if is_square(row):
        areas = f"in {row.name} around {things(quantity)}, with {held}"
    return _tile("Accuracy", f"± {margin}", areas, _explained(row, subject))


def _explained(row: AreaErrors, subject: Subject) -> str:
    quantity = subject.release.quantity
    said = (
        f"The file gives an interval with every count. Half of those for such areas are narrower than "
        f"± {show_count(row.margin, quantity)}; {LEVEL_TEXT} of intervals contain the true number."
    )
    if row.simulated is None:
        return said
    found = float(row.simulated.errors.mean())
    return f"{said} In a simulation, counts were typically off by {show_count(found, quantity)}."


def _points(subject: Subject) -> Iterator[Content]:
    release, meaning = subject.release, subject.meaning
    yield from _of_sizes(release)
    if subject.errors.areas:
        smallest = subject.errors.areas[0]
        noisy = ", which is mostly noise" if (smallest.relative_margin or 1.0) > 0.5 else ""
        where = f"Per {smallest.name}"
        if is_square(smallest):
            where = f"In {smallest.name} around {things(release.quantity)}"
        yield (
            f"Small areas are less certain. {where}: {told_error(smallest, release.quantity)}{noisy}. Large areas are "
            "relatively more accurate; page 3 has the table."
        )
    if meaning.together is not None:
        yield f"The promise is for {release.protection.name}, not for everything about a person. {meaning.together}"
    yield _of_budget(subject)
    if release.distinct is not None:
        table = release.distinct
        yield (
            f"The file also has the number of {table.quantity} in each of {table.told}, with intervals. "
            f"{explain_people(table.quantity, *table.division.place)}"
        )
    if release.priors and release.background is None:
        names = ", ".join(prior.name for prior in release.priors)
        yield f"Public knowledge ({names}) went into the numbers. The promise rests on its not being made from these data."


def _of_sizes(release: Release) -> Iterator[Content]:
    sizes = LeafSizes.of(release)
    if sizes is not None:
        yield (
            f"The map is fine where there is much, and coarse where there is little. Half of all {things(release.quantity)} "
            f"are in regions of at most {sizes.fine} a side; half of the map's area is in regions of at least {sizes.coarse}. "
            "Inside a region the file says next to nothing about where something is. Blank places cannot be distinguished "
            "from noise."
        )


def _of_budget(subject: Subject) -> str:
    if subject.plan is not None:
        return told_plan(subject.plan)
    said = "Everything that is published from the same data adds up."
    spent, cap = subject.all_spent, subject.cap
    if subject.account is None or spent is None or cap is None:
        return f"{said} This report was made without a budget file, so it knows of this file alone."
    sure = belief_text(Meaning(spent, subject.release.protection).after(0.5))
    return (
        f"{said} All releases charged to “{subject.account.dataset}” have together ε = {short(spent)} of at most "
        f"{short(cap)}: 50 % becomes at most {sure}."
    )
