"""The plan of a series, written down once: its map, its periods, and how its budget is spent.

What a release of one period costs depends on the unit that is protected. A record lies in one period, and so does a person
in one month: what the releases of different periods tell about one such unit does not add up, because only one of them
has seen it. What they tell about a person does. docs/proofs/series.md has the argument.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from htf.base import arguments
from htf.errors import InputError
from htf.files import write_text
from htf.frame.domain import Domain
from htf.privacy.budget import digest_of
from htf.privacy.epsilon import Epsilon
from htf.privacy.protection import RECORD
from htf.recipes.maps import map_files
from htf.recipes.quote import Quote
from htf.recipes.recipe import Recipe, given_fields
from htf.release.named_columns import layer_columns, with_outlines, zone_type
from htf.series.periods import KINDS, Period

PLAN = "series.json"
FORMAT = 3  # the only one that is read
MAPS = ("domain", "inside")  # the fields of a recipe that are written down with their layers
MOST_RELEASES = 10_000


@dataclass(frozen=True)
class SeriesPlan:
    """The plan of a series: the recipe of every release, the periods, and what all of it costs.

    Attributes
    ----------
    recipe : Recipe
        What each release is made of, without its source and with its map.
    period : {"day", "week", "month", "quarter", "year"}
        What one release is of.
    total : Epsilon
        What one unit loses in the whole series, at most.
    releases : int
        How many periods there will be, at most.
    layers : dict of str to str
        The names of the files of zones and categories by their SHA-256: none of them may be the data.

    Examples
    --------
    >>> import htf
    >>> recipe = htf.Recipe(bounds=(0, 0, 1, 1), cells=64, user="who", epsilon="0.08")
    >>> plan = htf.Series.create("people", recipe, "month", releases=24, total=2).plan
    >>> str(plan.each), plan.told[-1]
    ('0.08', 'A person who is in all 24 months loses at most epsilon 2.')
    """

    recipe: Recipe
    period: str
    total: Epsilon
    releases: int
    layers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        arguments.choice(self.period, tuple(KINDS), "the period")
        arguments.instance(self.total, Epsilon, "the total epsilon")
        if not 1 <= arguments.whole(self.releases, "the number of releases") <= MOST_RELEASES:
            raise InputError(
                f"a series has between 1 and {MOST_RELEASES:,} releases, got {self.releases}"
            )
        if (per := self.quote.unit.per) not in (None, self.period):
            raise InputError(
                f"the unit {self.unit} needs releases of {per}s, not of {self.period}s"
            )
        if self.each > self.total:
            raise InputError(f"one release costs {self.each}, more than the total of {self.total}")
        if self.adds_up and self.each.units * self.releases > self.total.units:
            raise InputError(
                f"{self.releases} releases of {self.each} cost a person more than the total of {self.total}: give fewer "
                "releases, or less for each"
            )

    @cached_property
    def quote(self) -> Quote:
        """What one release protects, buys and costs."""
        return self.recipe.quote()

    @property
    def domain(self) -> Domain:
        """The map."""
        assert self.recipe.domain is not None
        return self.recipe.domain

    @property
    def each(self) -> Epsilon:
        """What one release costs."""
        return self.recipe.total

    @property
    def unit(self) -> str:
        """What epsilon protects: record, person, person-day, person-week or person-month."""
        unit = self.quote.unit
        return unit.unit if unit.per is None else f"{unit.unit}-{unit.per}"

    @property
    def adds_up(self) -> bool:
        """Whether what different periods cost adds up for one unit."""
        return _adds_up(self.recipe)

    @property
    def told(self) -> list[str]:
        """What the plan promises, in sentences."""
        each = f"Each of up to {self.releases} releases, one for a {self.period}, costs epsilon {self.each}"
        parts = [f"{price} for the {kind}" for kind, price in self.quote.prices.items()]
        each += f", {' and '.join(parts)}." if parts else "."
        if self.adds_up:
            loss = f"A person who is in all {self.releases} {self.period}s loses at most epsilon {self.total}."
            return [each, "What releases tell about a person adds up.", loss]
        one = "A record" if self.unit == RECORD else f"A person in one {self.period}"
        parallel = (
            f"{one} is seen by the releases of one {self.period} only, which may cost epsilon {self.total} "
            "together, corrections included. Other periods tell nothing about it."
        )
        if self.unit == RECORD:
            loss = (
                "A person with k records loses up to k times that. To protect people, name their column in the recipe "
                "of a series (user)."
            )
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
        given = given_fields(self.recipe).items()
        recipe = {name: _as_json(value) for name, value in given if name not in MAPS}
        maps = {name: getattr(self.recipe, name) for name in MAPS}
        return {
            "format": FORMAT,
            "period": self.period,
            "releases": self.releases,
            "unit": self.unit,
            "epsilon_total": str(self.total),
            "epsilon_each": str(self.each),
            "recipe": recipe,
            **{name: one.to_dict() for name, one in maps.items() if one is not None},
            "layers": self.layers,
        }


def plan_of(recipe: Recipe, period: str, releases: int, total: Any = None) -> SeriesPlan:
    """The plan of `Series.create`."""
    arguments.instance(recipe, Recipe, "recipe", "make one with htf.Recipe(bounds=…, epsilon=…)")
    releases = arguments.whole(releases, "the number of releases")
    _check_of_all_periods(recipe)
    layers = {digest_of(file): file.name for file in map_files(recipe)}
    kept, each = recipe.pinned(), recipe.total
    if total is not None:
        whole = Epsilon.of(total)
    else:
        whole = Epsilon(each.units * max(releases, 1)) if _adds_up(recipe) else each
    return SeriesPlan(kept, period, whole, releases, layers)


def share_of_total(recipe: Recipe, releases: int) -> Epsilon:
    """What each release costs at most, if the epsilon of the recipe is what all of them may cost one unit together."""
    return Epsilon(recipe.total.units // releases) if _adds_up(recipe) else recipe.total


def _adds_up(recipe: Recipe) -> bool:
    return recipe.user is not None and recipe.per is None


def _check_of_all_periods(recipe: Recipe) -> None:
    """Refuse what belongs to one release, and what cannot be written down."""
    if recipe.since is not None or recipe.until is not None:
        raise InputError("the period says which times count: leave out --since and --until")
    for name in ("mechanism", "prior"):
        value = getattr(recipe, name)
        for one in value if isinstance(value, tuple) else (value,):
            if one is not None and not isinstance(one, str):
                raise InputError(
                    f"the {name} of this recipe is an object of Python, which no plan can hold: give its name"
                )


def _as_json(value: Any) -> Any:
    return value if isinstance(value, (bool, int, list, tuple)) else str(value)


def period_of(plan: SeriesPlan, text: str) -> Period:
    """The period of that name."""
    return Period.read(text, plan.period)


def write_plan(plan: SeriesPlan, folder: Path) -> None:
    """Write it down, once."""
    said = plan.to_dict()
    for name in MAPS:
        if name in said:
            said[name] = {"axes": said[name], "layer": _layer_of(getattr(plan.recipe, name))}
    write_text(folder / PLAN, json.dumps(said, indent=2) + "\n")


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
        fields = said["recipe"]
        fields |= {name: _with_layer(**said[name]) for name in MAPS if name in said}
        return SeriesPlan(
            Recipe(**fields),
            said["period"],
            Epsilon.of(said["epsilon_total"]),
            said["releases"],
            dict(said["layers"]),
        )
    except FileNotFoundError:
        raise InputError(
            f"{folder} is no series: it has no {PLAN}. Make one with `htf series init {folder} …`"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"cannot read the plan {path}: {type(error).__name__}. Restore it from a copy"
        ) from None


def _layer_of(domain: Domain) -> list[list[Any]]:
    """Of each zone its axis, its place there, its outline as base64, and what else its layer says of it."""
    columns = layer_columns(domain)
    columns["shape"] = [b64encode(shape).decode() for shape in columns["shape"]]
    return [list(row) for row in zip(*columns.values(), strict=True)]


def _with_layer(axes: dict[str, Any], layer: list[list[Any]]) -> Domain:
    import pyarrow as pa

    domain, kind = Domain.from_dict(axes), zone_type().value_type
    if not domain.outlined:
        return domain
    names = [one.name for one in kind]
    rows = [dict(zip(names, row, strict=True)) for row in layer]
    for row in rows:
        row["shape"] = b64decode(row["shape"], validate=True)
    return with_outlines(domain, pa.array(rows, kind))


def is_series(path: Path) -> bool:
    """Whether a folder holds a series."""
    return (path / PLAN).is_file()
