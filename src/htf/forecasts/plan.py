"""The plan of a forecast: a recipe, with what is assumed about its records. Nothing of the data is opened.

A recipe that names no map has that of the earlier release that stands in, or that of the made-up city. With the map of an
earlier release it also has its unit and what it counts, unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from htf.base.options import AUTO
from htf.errors import InputError
from htf.files import is_file
from htf.forecasts.made_up import StandIn, mean_weight
from htf.forecasts.people import ASSUMED, Crowd, RecordsByActivity, RecordsEach, places_wanted
from htf.forecasts.places import CITY, ByZone, City, DataSet, PastRelease, PointsFile
from htf.forecasts.questions import kinds_of
from htf.forecasts.simulation import Simulation
from htf.frame.domain import Domain
from htf.ingest.prior import LON_LAT
from htf.ingest.reading import Written
from htf.privacy.protection import PEOPLE, PERSON, RECORD, RECORDS, Protection
from htf.recipes.make import Prepared
from htf.recipes.maps import read_cells
from htf.recipes.recipe import Recipe, given_fields
from htf.release.file import is_release
from htf.release.release import Release
from htf.synthetic.city import BOUNDS

CELLS = "1024"
WHO, WHEN = "person", "time"  # columns that nobody reads
UNIT_OF_PEOPLE = ("user", "per", "time", "once_per", "most_records")
PRIORS = "Priors were left out. With them, errors are mostly smaller."
POINTS = 2_000_000
PEOPLE_TRIED, SEED = 10_000, 1  # to find how many records people have on average
MUST_BE_PUBLIC = (
    "{} must be public and must NOT be the data that you will release: the guarantee does not cover a choice "
    "of epsilon, grid or mechanism that depends on them."
)
SCATTERED = (
    "Within the leaves of the release, records were scattered at random, about as unevenly as its leaves "
    "differ. Real records may cluster more, so real errors may be larger, especially where leaves are large."
)
MODEL = (
    "People are made up: homes and places are drawn from the stand-in, most of them near the home. The error depends "
    "on how close together the records of a person lie, which no release tells."
)
NOT_KNOWN = (
    "Nothing tells how many records people have. It was assumed that half of them have up to 5 records and nine in ten "
    "up to 40. If you know better: --records-per-person."
)
WEIGHTS = (
    "Weights are made up: one record in twenty has more than the largest weight. Errors are those against sums in which "
    "such a record counts as that; what is cut off is not in them."
)
FURTHER = "Made up for each record, because the stand-in does not tell: {}."


@dataclass(frozen=True, kw_only=True, eq=False)
class Assumed:
    """What is assumed about the records of a recipe."""

    like: Release | Path | None = None  # an earlier release, or a file of public points
    points_about: int | None = None
    people: int | None = None
    records_per_person: RecordsEach | None = None

    @cached_property
    def release(self) -> Release | None:
        """The earlier release that stands in, if there is one."""
        if not isinstance(self.like, Path):
            return self.like
        if not is_file(self.like):
            raise InputError(f"--like: there is no file {self.like}")
        return Release.load(self.like) if is_release(self.like) else None

    @property
    def name(self) -> str:
        """What the stand-in is called."""
        if self.like is None:
            return CITY
        return self.like.name if isinstance(self.like, Path) else "given"

    def stand_in(self, prepared: Prepared) -> StandIn:
        """What stands in for the records of a release."""
        unit, domain = prepared.quote.unit, prepared.domain
        crowd = self._crowd(unit)
        weight = None if unit.weight is None else unit.max_weight
        kind, words, places = self._places(prepared, crowd)
        found = StandIn(kind, self.name, words, domain, places, crowd, weight)
        return replace(found, notes=tuple(self._notes(found)))

    def _notes(self, found: StandIn) -> Iterator[str]:
        known = {"release": SCATTERED, "points": MUST_BE_PUBLIC.format(self.name)}
        if found.kind in known:
            yield known[found.kind]
        if found.crowd is not None:
            yield MODEL
            if found.crowd.records is ASSUMED:
                yield NOT_KNOWN
        if found.max_weight is not None:
            yield WEIGHTS
        axes = zip(found.domain.axes, found.given, strict=True)
        if further := [axis.name for axis, source in axes if source is None]:
            yield FURTHER.format(", ".join(further))

    def _places(self, prepared: Prepared, crowd: Crowd | None) -> tuple[str, str, DataSet]:
        """The kind of stand-in, how sentences call it, and where its records are."""
        domain, release, number = prepared.domain, self.release, self.points_about
        if release is not None:
            words = f"the release {self.name} ({release.mechanism}, epsilon {release.epsilon})"
            wanted = number if crowd is None else places_wanted(crowd.people)
            return "release", words, _of_release(release, domain, wanted, crowd is not None)
        ground = _ground(domain)
        if isinstance(self.like, Path):
            wanted = number if crowd is None else None
            points = _of_points(prepared.recipe, self.like, ground, wanted)
            return "points", f"the points of {self.name}", points
        words, wanted = "the made-up city of `htf demo`", POINTS if crowd else number or POINTS
        if not ground.has_map:
            zones = ByZone.of_city(ground.axes[0], wanted)
            return "city", f"{words}, stretched over the zones", zones
        x, y = ground.axes
        over = "" if (x.low, y.low, x.high, y.high) == BOUNDS else ", stretched over the bounds"
        return "city", f"{words}{over}", City(CITY, wanted, map=ground)

    def _crowd(self, unit: Protection) -> Crowd | None:
        """The people, if epsilon is to protect people."""
        people, each = self.people, self.records_per_person
        if unit.unit == RECORD:
            if people is not None or each is not None:
                raise InputError(
                    "--people and --records-per-person are for a release that protects people: name the column of people in "
                    "the recipe (user)"
                )
            return None
        if people is not None and self.points_about is not None:
            raise InputError(
                "where people are simulated, the number of points follows from --people and --records-per-person: leave out "
                f"--points-about {self.points_about}"
            )
        known, records = self._known(unit)
        found: RecordsEach | RecordsByActivity = each or records or ASSUMED
        if self.points_about is not None:
            mean = found.of_people(PEOPLE_TRIED, np.random.default_rng(SEED)).mean()
            return Crowd(max(round(self.points_about / mean), 1), found)
        whom = "people" if unit.per is None else f"person-{unit.per}s"
        if people is None and known is None:
            raise InputError(
                f"the release is about {whom}: say roughly how many there are, with --people N, and how many records they "
                "have, with --records-per-person"
            )
        if found is ASSUMED and unit.count == RECORDS:
            raise InputError(
                f"to forecast counts of records of {whom}, say how many records each has: --records-per-person "
                "0.5:5,0.9:40 if half of them have up to 5 and nine in ten up to 40, or one number for all"
            )
        return Crowd(people or known or 1, found)

    def _known(self, unit: Protection) -> tuple[int | None, RecordsByActivity | None]:
        """How many people there are and how many records they have, as far as the earlier release tells."""
        release = self.release
        if (
            release is None
            or release.protection.unit != PERSON
            or release.protection.per != unit.per
        ):
            return None, None
        if release.activity is not None:
            records = RecordsByActivity(release.activity)
            return max(records.people, 1), records
        if release.protection.count == PEOPLE:
            return max(round(float(release.estimates.sum())), 1), None
        return None, None


def plan_of(recipe: Recipe, assumed: Assumed, runs: int = 1) -> Simulation:
    """The plan of a forecast of a recipe."""
    recipe = _with_map(recipe, assumed)
    plain = replace(recipe, source=(), prior=())  # no data: a forecast opens no source
    plan = simulation(plain.prepare(noise="seeded:1"), assumed, runs)
    if not recipe.prior:
        return plan
    return replace(plan, stand_in=replace(plan.stand_in, notes=(*plan.stand_in.notes, PRIORS)))


def simulation(prepared: Prepared, assumed: Assumed, runs: int = 1) -> Simulation:
    """The plan of a forecast of what is ready to be made."""
    return Simulation(prepared, assumed.stand_in(prepared), tuple(kinds_of(prepared)), runs)


def _with_map(recipe: Recipe, assumed: Assumed) -> Recipe:
    """A recipe that names a map."""
    if recipe.domain is not None or recipe.bounds or recipe.around or recipe.zones:
        return recipe
    given, release = given_fields(recipe), assumed.release
    if release is not None:
        like = like_release(release)
        if {"count", "max_records"} & set(given):
            like = {name: value for name, value in like.items() if name in UNIT_OF_PEOPLE}
        domain = _coarser(release.domain, given.pop("cells", None))
        return Recipe(**{"source": None, **like, **given, "domain": domain})
    if assumed.like is not None:
        raise InputError(
            f"{assumed.like} is not a release, so it must be a file of public points: say where their map is, with "
            "--bounds W,S,E,N, or in a recipe"
        )
    if recipe.crs is not None:
        raise InputError(f"--crs {recipe.crs} is that of --bounds: give these too")
    return replace(recipe, bounds=BOUNDS, cells=recipe.cells or CELLS)


def like_release(release: Release) -> dict[str, Any]:
    """The fields of a recipe that say what a release protects, counts and buys."""
    unit, activity = release.protection, release.activity
    given: dict[str, Any] = {"weight": unit.weight, "once_per": unit.once_per, "per": unit.per}
    given |= {"max_weight": unit.max_weight} if unit.weight else {}
    whole = release.epsilon.units
    shares = {one.kind: Fraction(one.epsilon.units, whole) for one in release.bought}
    shares.pop("zones", None)
    if unit.unit == PERSON:
        given |= {"user": WHO, "time": WHEN, "count": unit.count}
        if unit.count == RECORDS:
            given["max_records"] = unit.max_records
            shares.setdefault("activity", Fraction(0))
    if activity is not None:
        given["most_records"] = activity.ends[-1]
        given["max_records"] = AUTO if activity.decides else unit.max_records
    if unit.weight is not None:
        shares.setdefault("clipped", Fraction(0))
        shares.pop("activity", None)
    if release.distinct is not None:
        grid = release.distinct.grid
        given["distinct"] = grid if isinstance(grid, str) else f"{grid[0]},{grid[1]}"
        if not release.distinct.decides:
            given["distinct_boxes"] = str(release.distinct.max_boxes)
    given["spend"] = tuple(f"{kind}={share}" for kind, share in shares.items())
    return {name: value for name, value in given.items() if value is not None}


def _coarser(domain: Domain, cells: str | None) -> Domain:
    """The map of a release, perhaps with fewer cells. `PastRelease` refuses what does not fit."""
    if cells is None:
        return domain
    if not domain.has_map:
        raise InputError(f"the earlier release (--like) is no map: leave out --cells {cells}")
    read = read_cells(cells)
    flat = (read, read) if isinstance(read, int) else read
    axes = zip(domain.axes, (*flat, *domain.shape[2:]), strict=True)
    return Domain(tuple(replace(axis, cells=n) for axis, n in axes), domain.crs)


def _ground(domain: Domain) -> Domain:
    """The map alone, or the zones in which records begin."""
    if not domain.has_map and not domain.outlined:
        raise InputError("this release has no map and no zones: give an earlier one (--like)")
    axes = domain.axes[:2] if domain.has_map else (domain.axes[domain.outlined[0]],)
    return Domain(axes, domain.crs)


def _of_points(recipe: Recipe, path: Path, ground: Domain, number: int | None) -> DataSet:
    reading = recipe.reading()
    written = Written(**{one.name: getattr(reading, one.name) for one in fields(Written)})
    columns = recipe.x or LON_LAT[0], recipe.y or LON_LAT[1]
    return PointsFile(path.stem, path.resolve(), columns, ground, number, written)


def _of_release(release: Release, domain: Domain, number: int | None, of_leaves: bool) -> DataSet:
    """The records of a release, on those axes that both have; by zone, if it is a map and the other is one of zones."""
    if number is None and release.protection.weight is not None:
        total = float(release.estimates.sum()) / mean_weight(release.protection.max_weight)
        number = max(round(total), 1)
    if release.domain.has_map and domain.outlined:
        on_map = PastRelease("release", release, number, of_leaves=of_leaves)
        return ByZone("release", domain.axes[domain.outlined[0]], on_map, number)
    wanted, grid = {axis.name: axis for axis in domain.axes}, []
    for axis in release.domain.axes:
        same = wanted.get(axis.name, axis)
        if same.names != axis.names:
            raise InputError(
                f"the names of {axis.name!r} are others in the earlier release (--like): forecast with the same layer or list"
            )
        if (same.low, same.high) != (axis.low, axis.high):
            raise InputError(
                f"the earlier release (--like) has its own map, on which {axis.name} goes from {axis.low:g} to {axis.high:g}: "
                "leave out --bounds, or the release"
            )
        grid.append(same.cells)
    place = domain.names[: 2 if domain.has_map else 1]
    if not set(place) <= set(release.domain.names):
        raise InputError(
            f"the earlier release (--like) counts {', '.join(release.domain.names)}, and this one {', '.join(place)}: leave "
            "out --like"
        )
    return PastRelease("release", release, number, tuple(grid), of_leaves)
