"""The plan of a series, written down once: its map, its periods, and how its budget is spent.

What a release of one period costs depends on the unit that is protected. A record lies in one period, and so does a person
in one month: what the releases of different periods tell about one such unit does not add up, because only one of them
has seen it. What they tell about a person does. docs/proofs/series.md has the argument.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from htf.base import arguments
from htf.errors import InputError
from htf.files import write_whole
from htf.frame.domain import Domain, check_domain
from htf.privacy.epsilon import Epsilon
from htf.privacy.protection import PERIODS, PERSON, RECORD
from htf.release.named_columns import layer_columns, with_outlines, zone_type
from htf.series.periods import KINDS, Period

PLAN = "series.json"
FORMAT = 2  # the only one that is read
IN_PERIOD = {f"{PERSON}-{kind}": kind for kind in PERIODS}  # units: a person in one period
UNITS = (RECORD, PERSON, *IN_PERIOD)
MOST_RELEASES = 10_000


@dataclass(frozen=True)
class SeriesPlan:
    """The plan of a series of releases over periods on one map.

    Attributes
    ----------
    domain : Domain
        The map.
    period : {"day", "week", "month", "quarter", "year"}
        What one release is of.
    unit : {"record", "person", "person-day", "person-week", "person-month"}
        What epsilon protects.
    total : Epsilon
        What one unit loses in the whole series, at most.
    each : Epsilon
        What one release costs.
    releases : int
        How many periods there will be, at most.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 1, 1, cells=64)
    >>> plan = htf.SeriesPlan.of(domain, "month", "person", total=2, releases=24)
    >>> str(plan.each), plan.told[-1]
    ('0.083333333333333', 'A person who is in all 24 months loses at most epsilon 2.')
    """

    domain: Domain
    period: str
    unit: str
    total: Epsilon
    each: Epsilon
    releases: int

    def __post_init__(self) -> None:
        check_domain(self.domain)
        arguments.choice(self.period, tuple(KINDS), "the period")
        arguments.choice(self.unit, UNITS, "the unit")
        arguments.instance(self.total, Epsilon, "the total epsilon")
        arguments.instance(self.each, Epsilon, "the epsilon of each release")
        if not 1 <= arguments.whole(self.releases, "the number of releases") <= MOST_RELEASES:
            raise InputError(
                f"a series has between 1 and {MOST_RELEASES:,} releases, got {self.releases}"
            )
        named = [axis for axis in self.domain.axes if axis.levels]
        if named and not self.of_zones:
            raise InputError(
                "a series covers a map with coordinates alone, or the zones of one layer: without trips between zones, "
                "categories and further axes"
            )
        if IN_PERIOD.get(self.unit, self.period) != self.period:
            raise InputError(
                f"the unit {self.unit} needs releases of {IN_PERIOD[self.unit]}s, not of {self.period}s"
            )
        if self.each > self.total:
            raise InputError(f"one release costs {self.each}, more than the total of {self.total}")
        if self.adds_up and self.each.units * self.releases > self.total.units:
            raise InputError(
                f"{self.releases} releases of {self.each} cost a person more than the total of {self.total}: give fewer "
                "releases, or less for each"
            )

    @classmethod
    def of(
        cls,
        domain: Domain,
        period: str,
        unit: str,
        *,
        total: Any,
        releases: int,
        each: Any = None,
    ) -> SeriesPlan:
        """Make a plan. By default every release costs as much as the unit allows.

        Parameters
        ----------
        domain : Domain
            The map.
        period, unit : str
            As in the attributes.
        total : Epsilon, str, int, float, Decimal or Fraction
            What one unit loses in the whole series, at most.
        releases : int
            How many periods there will be, at most.
        each : Epsilon, str, int, float, Decimal or Fraction, optional
            What one release costs, if that is to be less. What is left of the total pays for corrections.

        Returns
        -------
        SeriesPlan
            The plan.

        Raises
        ------
        InputError
            If the numbers do not go together.

        Examples
        --------
        >>> str(htf.SeriesPlan.of(domain, "month", "record", total=2, releases=24).each)
        '2'
        """
        whole = Epsilon.of(total)
        arguments.choice(unit, UNITS, "the unit")
        if each is not None:
            price = Epsilon.of(each)
        elif unit == PERSON:
            number = arguments.whole(releases, "the number of releases")
            price = Epsilon(whole.units // max(number, 1))
        else:
            price = whole
        return cls(domain, period, unit, whole, price, releases)

    @property
    def of_zones(self) -> bool:
        """Whether counts are of zones of a layer, not of a grid."""
        return self.domain.dimensions == 1 and self.domain.outlined == (0,)

    @property
    def adds_up(self) -> bool:
        """Whether what different periods cost adds up for one unit."""
        return self.unit == PERSON

    @property
    def told(self) -> list[str]:
        """What the plan promises, in sentences."""
        each = f"Each of up to {self.releases} releases, one for a {self.period}, costs epsilon {self.each}."
        if self.adds_up:
            loss = f"A person who is in all {self.releases} {self.period}s loses at most epsilon {self.total}."
            return [each, "What releases tell about a person adds up.", loss]
        one = "A record" if self.unit == RECORD else f"A person in one {self.period}"
        parallel = (
            f"{one} is seen by the releases of one {self.period} only, which may cost epsilon {self.total} "
            "together, corrections included. Other periods tell nothing about it."
        )
        if self.unit == RECORD:
            loss = "A person with k records loses up to k times that: choose the unit person if people have several."
        else:
            most = Epsilon(self.total.units * self.releases)
            loss = (
                f"A person who is in all {self.releases} {self.period}s loses up to epsilon {most}."
            )
        return [each, parallel, loss]

    def to_dict(self) -> dict[str, Any]:
        """Describe the plan with plain values, for JSON.

        Returns
        -------
        dict
            What the file of the plan holds.

        Examples
        --------
        >>> plan.to_dict()["unit"]
        'person'
        """
        return {
            "format": FORMAT,
            "domain": self.domain.to_dict(),
            "period": self.period,
            "unit": self.unit,
            "epsilon_total": str(self.total),
            "epsilon_each": str(self.each),
            "releases": self.releases,
        }


def period_of(plan: SeriesPlan, text: str) -> Period:
    """The period of that name."""
    return Period.read(text, plan.period)


def write_plan(plan: SeriesPlan, folder: Path) -> None:
    """Write it down, once."""
    said = plan.to_dict()
    if plan.of_zones:
        said["layer"] = _layer_of(plan.domain)
    text = json.dumps(said, indent=2) + "\n"
    write_whole(folder / PLAN, lambda unfinished: _write_text(unfinished, text))


def read_plan(folder: Path) -> SeriesPlan:
    """The plan of the series in a folder."""
    path = folder / PLAN
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        if said["format"] != FORMAT:
            raise InputError(
                f"{path} has the format {said['format']!r}, and this version reads {FORMAT} alone. A series made by a version "
                "that was never released is continued with that version; or begin a new one, whose total is what the old one "
                "has left of your budget (`htf budget show` of that version says what was spent)"
            )
        domain = Domain.from_dict(said["domain"])
        return SeriesPlan(
            _with_layer(domain, said["layer"]) if "layer" in said else domain,
            said["period"],
            said["unit"],
            Epsilon.of(said["epsilon_total"]),
            Epsilon.of(said["epsilon_each"]),
            said["releases"],
        )
    except FileNotFoundError:
        raise InputError(
            f"{folder} is no series: it has no {PLAN}. Make one with `htf series init {folder} …`"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"cannot read the plan {path}: {type(error).__name__}. Restore it from a copy"
        ) from None


def _layer_of(domain: Domain) -> list[list[str]]:
    """The outline of each zone, as base64, and what else its layer says of it."""
    columns = layer_columns(domain)
    shapes = [b64encode(shape).decode() for shape in columns["shape"]]
    return [list(row) for row in zip(shapes, columns["attributes"], strict=True)]


def _with_layer(domain: Domain, layer: list[list[str]]) -> Domain:
    import pyarrow as pa

    rows = [
        {"axis": 0, "cell": cell, "shape": b64decode(shape, validate=True), "attributes": text}
        for cell, (shape, text) in enumerate(layer)
    ]
    return with_outlines(domain, pa.array(rows, zone_type().value_type))


def is_series(path: Path) -> bool:
    """Whether a folder holds a series."""
    return (path / PLAN).is_file()


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
