"""What an epsilon means, for those who decide on it: in odds, beside the values that others use, and with a warning
where it is large.

Nothing here adds to the guarantee or takes from it. The sentences say the same as the statement of a release, in
numbers that somebody can picture: how sure the release can make a stranger. docs/concepts/epsilon.md explains them,
and says where every value of others comes from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from htf.base import arguments
from htf.privacy.epsilon import Epsilon
from htf.privacy.protection import OF_RECORDS, RECORD, Protection

# Above it, a value is unusual for published data about people. Most that name a person or a person and day are below,
# among them all of places; and a guess of 10 % can become 94 %, so that little is promised to anyone.
CUSTOMARY = 5
GUESSES = (0.5, 0.1, 0.01)  # beliefs before, for which sentences give the belief after
MANY = {RECORD: 10, "day": 30, "week": 4, "month": 12}  # units of one person, as an example
LIST = "D. Desfontaines: A list of real-world uses of differential privacy"


@dataclass(frozen=True, slots=True)
class Deployment:
    """An epsilon that others published with.

    Examples
    --------
    >>> from htf.privacy.meaning import DEPLOYMENTS
    >>> DEPLOYMENTS[0].told
    'US broadband coverage (Microsoft): 0.2 for a person'
    """

    who: str
    what: str
    epsilon: float
    unit: str
    source: str
    delta: str | None = None  # the promise may fail with this probability
    about: bool = False  # the source says "about" or "roughly"

    @property
    def told(self) -> str:
        number = f"about {self.epsilon:g}" if self.about else f"{self.epsilon:g}"
        return f"{self.what} ({self.who}): {number} for {self.unit}"

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in FIELDS}


FIELDS = ("who", "what", "epsilon", "about", "delta", "unit", "source")  # in this order in JSON
PERSON_DAY = "a person and day"
# By epsilon. docs/concepts/epsilon.md has the same list, and a test compares the two.
DEPLOYMENTS = (
    Deployment("Microsoft", "US broadband coverage", 0.2, "a person", LIST),
    Deployment(
        "Wikimedia", "page views by country", 1, "10 page views of a device and day",
        "README of the data set country_project_page, Wikimedia Foundation", "1e-7", about=True,
    ),
    Deployment("Google", "search trends of symptoms", 1.68, PERSON_DAY, "arXiv:2009.01265"),
    Deployment(
        "Google", "trips between regions", 2, "a unit that the abstract does not name", "arXiv:2407.03496",
        about=True,
    ),
    Deployment("Meta", "movement range maps", 2, PERSON_DAY, LIST),
    Deployment("Google", "vaccination searches", 2.19, PERSON_DAY, "arXiv:2107.01179", "1e-5"),
    Deployment("Google", "mobility reports", 2.64, PERSON_DAY, f"arXiv:2004.04145, as given in {LIST}"),
    Deployment("Apple", "emoji, with noise added on the device", 4, PERSON_DAY, LIST),
    Deployment("US Census Bureau", "OnTheMap", 8.6, "a person", LIST, "1e-5"),
    Deployment(
        "Israel's Ministry of Health", "live births of 2014", 9.98, "a mother and newborn", "arXiv:2405.00267"
    ),
    Deployment(
        "US Census Bureau", "2020 redistricting data", 17.14, "a person",
        "announcement of 9 June 2021; converted from zero-concentrated differential privacy",
    ),
    Deployment("LinkedIn", "audience engagements", 34.9, "a person and month", LIST, "1e-10"),
)  # fmt: skip


def highest_belief(epsilon: float, before: float) -> float:
    """How sure of it a release can make somebody, at most, who held it for so likely before.

    Parameters
    ----------
    epsilon : float
        Of the release, or of everything published about the same unit.
    before : float
        The probability that they gave it, between 0 and 1.

    Returns
    -------
    float
        The probability that they may give it after, at most.

    Examples
    --------
    >>> from htf.privacy.meaning import highest_belief
    >>> round(highest_belief(1, 0.5), 3)
    0.731
    """
    epsilon = arguments.number(epsilon, "epsilon")
    before = arguments.number(before, "before")
    if not 0 <= before <= 1:
        raise arguments.unfit("before", "a probability between 0 and 1", before)
    if before == 0:
        return 0.0
    return before / (before + (1 - before) * math.exp(-epsilon))  # which does not overflow


def belief_text(belief: float) -> str:
    """A probability in per cent: whole, and finer near 0 and 1, where it matters.

    Examples
    --------
    >>> from htf.privacy.meaning import belief_text
    >>> [belief_text(belief) for belief in (0.0027, 0.231, 0.731, 0.9933, 0.99995)]
    ['0.27 %', '23 %', '73 %', '99.3 %', '99.995 %']
    """
    missing = 1 - belief
    if belief < 0.1:
        return f"{100 * belief:.2g} %"
    if missing >= 0.1:
        return f"{100 * belief:.0f} %"
    if missing < 1e-6:
        return "nearly 100 %"
    digits = max(0, -math.floor(math.log10(100 * missing)))
    return f"{100 - round(100 * missing, digits):.{digits}f} %"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an epsilon means for the unit that it protects.

    Parameters
    ----------
    epsilon : Epsilon
        Of a release, or of several about the same units together.
    protection : Protection
        The unit.

    Examples
    --------
    >>> import htf
    >>> from htf.privacy.meaning import Meaning
    >>> meaning = Meaning(htf.Epsilon.of(1), htf.Protection("person", count="people", shares=256))
    >>> meaning.odds
    'Epsilon 1 for one person: a guess of 50 % that someone is in the data becomes at most 73 % (10 %: 23 %; 1 %: 2.7 %).'
    >>> meaning.warning is None
    True
    """

    epsilon: Epsilon
    protection: Protection = OF_RECORDS

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", Epsilon.of(self.epsilon))
        arguments.instance(self.protection, Protection, "protection")

    def after(self, before: float, units: int = 1) -> float:
        """The highest belief about somebody who has that many units in the data."""
        return highest_belief(units * float(self.epsilon), before)

    @property
    def odds(self) -> str:
        """One sentence: what becomes of guesses."""
        first, *others = GUESSES
        rest = "; ".join(f"{_share(one)}: {belief_text(self.after(one))}" for one in others)
        return (
            f"Epsilon {self.epsilon} for {self.protection.name}: a guess of {_share(first)} that {self._fact} becomes at "
            f"most {belief_text(self.after(first))} ({rest})."
        )

    @property
    def _fact(self) -> str:
        if self.protection.unit == RECORD:
            return "a certain record is in the data"
        if self.protection.per is None:
            return "someone is in the data"
        return f"someone is in the data of one {self.protection.per}"

    @property
    def together(self) -> str | None:
        """What holds for somebody with several units, whom nothing protects as a whole. None if a unit is all of a
        person."""
        if (number := self._many) is None:
            return None
        return (
            f"For someone with {number} {_units(self.protection)} it is {number} times that, epsilon "
            f"{self.epsilon * number}: 50 % becomes at most {belief_text(self.after(0.5, number))}."
        )

    @property
    def _many(self) -> int | None:
        return MANY.get(self.protection.per or self.protection.unit)

    @property
    def usual(self) -> str:
        """What others use, next to this value."""
        mine = float(self.epsilon)
        below = [one for one in DEPLOYMENTS if one.epsilon <= mine]
        above = [one for one in DEPLOYMENTS if one.epsilon > mine]
        near = [*below[-2:], *above[: 3 - len(below[-2:])]]
        return f"Others: {'; '.join(one.told for one in near)}."

    @property
    def warning(self) -> str | None:
        """Said if the value is above what is customary."""
        if float(self.epsilon) <= CUSTOMARY:
            return None
        return (
            f"epsilon {self.epsilon} is above {CUSTOMARY}, and so above most values that others publish with: a guess of "
            f"10 % can become {belief_text(self.after(0.1))}, so little is promised to anyone. Spend less, or say why so "
            "much is needed."
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """All but the warning."""
        return tuple(one for one in (self.odds, self.together, self.usual) if one is not None)

    def to_dict(self) -> dict[str, Any]:
        """The sentences and their numbers with plain values, for JSON."""
        many = None
        if (number := self._many) is not None:
            many = {"units": number, "epsilon": str(self.epsilon * number), **self._beliefs(number)}
        return {
            "epsilon": str(self.epsilon),
            "unit": self.protection.name,
            **self._beliefs(1),
            "several_units": many,
            "customary_below": CUSTOMARY,
            "warning": self.warning,
            "sentences": list(self.sentences),
        }

    def _beliefs(self, units: int) -> dict[str, Any]:
        return {"beliefs": [{"before": one, "at_most": self.after(one, units)} for one in GUESSES]}


def _share(belief: float) -> str:
    return f"{100 * belief:g} %"


def _units(protection: Protection) -> str:
    """Several of the unit of one person."""
    return "records" if protection.per is None else f"such {protection.per}s"
