"""The privacy guarantee in plain words, made from the release alone."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from htf.privacy.protection import PEOPLE, PERSON, RECORD, different_people, split_people
from htf.privacy.purchases import PURCHASES

if TYPE_CHECKING:
    from htf.release.release import Release

NOT_PRIVATE = (
    "NOT PRIVATE. The noise of this release came from a seed or a script. Anyone who knows it can "
    "subtract the noise. The release is for tests and benchmarks and must not be published. "
    "With secret noise the following would hold:"
)

GUARANTEE = (
    "This release is {epsilon}-differentially private (pure, epsilon = {epsilon}). "
    "The unit of protection is {unit}: adding or removing {change} changes the probability of any "
    "outcome of the whole release, the map's leaves included, by a factor of at most exp({epsilon}). {together} "
    "The epsilon was fixed before any noise was drawn. The guarantee holds whatever anyone already "
    "knows, and however often the release is queried. It covers the records as they were read; "
    "whether a file could be read at all is not covered."
)

CHANGE = {RECORD: "any one record", PERSON: "all records of any one person{in_period}"}

TOGETHER = {
    RECORD: (
        "The records of one person are NOT protected together: for someone with k records the guarantee "
        "is k times epsilon, and that much weaker."
    ),
    PERSON: (
        "A person is whoever has one identifier in the data. Someone with several identifiers is protected "
        "as if they were several people. People who share an identifier are protected together; for one "
        "of them alone the guarantee is twice epsilon, and that much weaker."
    ),
}

OVER_PERIODS = (
    " What someone does over several {period}s is NOT protected together: for someone with records in k {period}s the "
    "guarantee is k times epsilon, and that much weaker. So nobody's whole year is protected by this epsilon."
)

SHARED = (
    "{first}A count is a number of {quantity}. Each person counts once{in_each} on the whole map, divided into {shares} "
    "equal shares, which are split across all their records inside the map as evenly as whole shares allow. This depends "
    "only on that person's records. So {quantity} are not {different}, for which each person counts once{in_each} in every "
    "place where they were: a place with many {different} may show far fewer {quantity}. The noise is that of "
    "epsilon {each} per share, so that all shares of a person together lose at most epsilon. Records that name no "
    "person{or_no_time} were dropped."
)

SHARED_SUMS = (
    "A count is a {quantity}. Each person counts once{in_each} on the whole map, divided into {shares} equal shares, which are "
    "split across all their records inside the map as evenly as whole shares allow. A share counts as often as the weight of "
    "its record says, the number in the column {weight}: rounded down to a whole number, and at most {most} times. So each "
    "person counts with the mean weight of their records, however many these are. This depends only on that person's "
    "records. Records whose weight is missing, negative, infinite or no number were left out. The noise is that of epsilon "
    "{each} per {piece}, so that all shares of a person together lose at most epsilon. Records that name no "
    "person{or_no_time} were dropped."
)

BOUNDED = (
    "{first}At most {kept} per person{in_each} {were} kept, and the choice depended only on that person's records. The "
    "noise is that of epsilon {each} per {piece}, so that all records of a person{in_each} together lose at most "
    "epsilon. Records that name no person{or_no_time} were dropped.{of_kept}{distinct}"
)

OF_KEPT = (
    " Counts are of the records that were kept: they may be lower than the truth, most of all where people have many "
    "records."
)


WEIGHTED = (
    "A count is a {quantity}. Every record counts as often as its weight says, the number in the column {weight}: rounded "
    "down to a whole number, and at most {most} times. Records whose weight is missing, negative, infinite or no number "
    "were left out.{alone}"
)
WEIGHTED_ALONE = " The noise is that of epsilon {each} per {piece}, so that a record of any weight loses at most epsilon."
CLIPPED_UNKNOWN = (
    "A weight above {most} counts as {most}. How much was cut off by that is not known: sums may be lower than the "
    "truth."
)

FIRST = {
    None: "",
    "hour": "Only one record per person, cell and hour was used. ",
    "day": "Only one record per person, cell and day was used. ",
    "all": "Only one record per person and cell was used. ",
}

DISTINCT = (
    " So the count of one cell is a number of different people. The count of several cells has a person once "
    "per cell in which a record of theirs was kept."
)


# What is known beforehand about the bound. A number that was chosen with noise is covered, so it is not listed.
KNOWN_BOUND = ", how many records were kept per person"
KNOWN_SHARES = ", that {quantity} are counted and in how many shares"
KNOWN_WEIGHT = ", which column was added up and its limit of {most} per record"
KNOWN_RANGE = ", the range from which the number of records to keep was chosen"

OF_QUERY = (
    "The records are the rows that a query or view returns. The guarantee covers those rows, not the tables "
    "behind them: if a LIMIT, a join or an aggregate lets {one} change the rows of others, that change is not "
    "covered."
)


NOT_PROTECTED = (
    "Not protected: what is public beforehand, namely {frame}, the mechanism and its "
    "parameters{bound}; facts about a place that do not depend on any {one}; and anything learnt outside this "
    "release, such as other releases of the same data, whose epsilons add up, or the time the computation took. "
    "Records outside the {frame_ends} are left out and not reported."
)
FRAME = {
    "map": "the bounds of the map, its grid",
    "zones": "the zones, their names and outlines",
    "names": "the names of its cells",
}
FRAME_ENDS = {"map": "bounds", "zones": "zones", "names": "lists of names"}

TOTAL_DISCLOSED = (
    "The curator gave the mechanism the number of records as a public fact: {total} was disclosed exactly, "
    "outside the guarantee. Whether any {one} is part of that number is not protected."
)

PRIOR_USED = (
    "The estimates use a public prior that the curator gave, {names}, which travels with "
    "the release. The guarantee holds only if the prior was not made from the data released. If the prior is "
    "itself a private release of the same data, the epsilons add up."
)

PRIORS_USED = (
    "The estimates use public priors that the curator gave, {names}, which travel with the release. The guarantee holds "
    "only if none of them was made from the data released. For each that is itself a private release of the same data, "
    "epsilons add up."
)

BORROWED = (
    "It is a release of a series, and its estimates borrow from {number} other releases of it, each of which has an "
    "epsilon of its own. That costs nothing more."
)

SENTENCES = (
    NOT_PRIVATE, GUARANTEE, CHANGE, TOGETHER, OVER_PERIODS, SHARED, SHARED_SUMS, BOUNDED, OF_KEPT, FIRST, DISTINCT, KNOWN_BOUND, KNOWN_RANGE, KNOWN_SHARES,
    OF_QUERY, NOT_PROTECTED, FRAME, FRAME_ENDS, TOTAL_DISCLOSED, PRIOR_USED, PRIORS_USED, BORROWED, WEIGHTED, WEIGHTED_ALONE, CLIPPED_UNKNOWN,
    KNOWN_WEIGHT, *(kind.words for kind in PURCHASES),
)  # fmt: skip
# Written into releases. One with another mark was worded by other code, whatever its version is called.
WORDING = hashlib.sha256(repr(SENTENCES).encode()).hexdigest()[:8]


def privacy_statement(release: Release) -> str:
    protection, words = release.protection, _words(release)
    counts_people = protection.count == PEOPLE
    parts = [GUARANTEE.format(**words)]
    if protection.weight is not None and not counts_people:
        alone = WEIGHTED_ALONE.format(**words) if protection.unit == RECORD else ""
        parts.append(WEIGHTED.format(alone=alone, **words))
    if protection.unit == PERSON:
        shared = SHARED if protection.weight is None else SHARED_SUMS
        parts.append((shared if counts_people else BOUNDED).format(**words))
    if protection.weight is not None and release.clipped is None:
        parts.append(CLIPPED_UNKNOWN.format(**words))
    parts += [said for one in release.bought for said in one.sentences(release)]
    if protection.of_query:
        parts.append(OF_QUERY.format(**words))
    if release.priors:
        names = [f"{prior.name} (SHA-256 {prior.sha256})" for prior in release.priors]
        said = PRIOR_USED if len(names) == 1 else PRIORS_USED
        parts.append(said.format(names=", ".join(names)))
    if release.background is not None:
        parts.append(BORROWED.format(number=release.background.periods))
    if (total := release.parameters.get("public_total")) is not None:
        parts.append(TOTAL_DISCLOSED.format(total=total, **words))
    parts.append(_not_protected(release, words))
    parts.append(f"Noise: {release.noise}. Mechanism: {release.mechanism}.")
    return "\n\n".join(parts if release.private else [NOT_PRIVATE, *parts])


def _words(release: Release) -> dict[str, Any]:
    """All that sentences have places for; each takes what it needs."""
    protection = release.protection
    unit, period, number = protection.unit, protection.per, protection.max_records
    over_periods = "" if period is None else OVER_PERIODS.format(period=period)
    in_period = "" if period is None else f" in any one {period}"
    keeps_some = release.activity is None
    return {
        "epsilon": release.epsilon,
        "unit": protection.name,
        "one": protection.name,
        "change": CHANGE[unit].format(in_period=in_period),
        "together": TOGETHER[unit] + over_periods,
        "in_each": "" if period is None else f" in each {period}",
        "or_no_time": "" if period is None else ", or have no time,",
        "first": FIRST[protection.once_per],
        "kept": "1 record" if number == 1 else f"{number} records",
        "were": "was" if number == 1 else "were",
        "of_kept": OF_KEPT if keeps_some else "",
        "distinct": DISTINCT if protection.once_per == "all" and keeps_some else "",
        "shares": protection.shares,
        "piece": protection.piece,
        "each": release.record_epsilon,
        "quantity": protection.quantity,
        "different": different_people(period),
        "weight": protection.weight,
        "most": protection.max_weight,
    }


def _not_protected(release: Release, words: dict[str, Any]) -> str:
    domain = release.domain
    kinds = {axis.plural for axis in domain.axes} | ({"zones"} if release.zones else set())
    if domain.has_map or kinds == {"steps"}:
        kinds.add("map")
    frames = [kind for kind in ("map", "zones", "names") if kind in kinds]
    return NOT_PROTECTED.format(
        frame=", ".join(FRAME[frame] for frame in frames),
        frame_ends=" or the ".join(FRAME_ENDS[frame] for frame in frames),
        bound=_known(release) + "".join(one.known() for one in release.bought),
        **words,
    )


def _known(release: Release) -> str:
    """What is public beforehand about the quantity, and how much of it one unit has."""
    protection, activity = release.protection, release.activity
    weight = "" if protection.weight is None else KNOWN_WEIGHT.format(most=protection.max_weight)
    if protection.unit == RECORD:
        return weight
    if protection.count == PEOPLE:
        return weight + KNOWN_SHARES.format(quantity=split_people(protection.per))
    return weight + (KNOWN_RANGE if activity is not None and activity.decides else KNOWN_BOUND)
