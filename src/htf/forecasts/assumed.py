"""What is assumed about the records of a recipe, and the stand-in that follows: places, people, weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from htf.errors import InputError
from htf.files import is_file
from htf.forecasts.datasets import CITY, ByZone, City, DataSet, Named
from htf.forecasts.population import ASSUMED, Crowd, RecordsByActivity, RecordsEach, places_wanted
from htf.forecasts.stand_in import StandIn, mean_weight
from htf.forecasts.standins import PastRelease, PublicPoints
from htf.frame.domain import Domain
from htf.ingest.prior import LON_LAT
from htf.ingest.reading import Written
from htf.privacy.protection import PEOPLE, PERSON, RECORD, RECORDS, Protection
from htf.recipes.make import Prepared
from htf.release.file import is_release
from htf.release.release import Release
from htf.synthetic.city import BOUNDS

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

    like: Release | Path | str | None = None  # an earlier release, or a file of public points
    points_about: int | None = None
    people: int | None = None
    records_per_person: RecordsEach | None = None

    @cached_property
    def release(self) -> Release | None:
        """The earlier release that stands in, if there is one."""
        if self.like is None or isinstance(self.like, Release):
            return self.like
        path = Path(self.like)
        if not is_file(path):
            raise InputError(f"--like: there is no file {path}")
        return Release.load(path) if is_release(path) else None

    @property
    def name(self) -> str:
        """What the stand-in is called."""
        if self.like is None:
            return CITY
        return "given" if isinstance(self.like, Release) else Path(self.like).name

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
        domain, release = prepared.domain, self.release
        number = self.points_about if crowd is None else places_wanted(crowd.people)
        if release is not None:
            words = f"the release {self.name} ({release.mechanism}, epsilon {release.epsilon})"
            return "release", words, _of_release(release, domain, number, crowd is not None)
        if self.like is not None:
            points = self.points_about if crowd is None else None
            return (
                "points",
                f"the points of {self.name}",
                _of_points(prepared, Path(str(self.like)), points),
            )
        number = POINTS if crowd is not None else self.points_about or POINTS
        words = "the made-up city of `htf demo`"
        if not domain.has_map:
            over = ", stretched over the zones" if domain.outlined else ""
        else:
            x, y = domain.axes[:2]
            is_own = (x.low, y.low, x.high, y.high) == BOUNDS
            over = "" if is_own else ", stretched over the bounds"
        return "city", f"{words}{over}", _of_city(domain, number)

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


def _of_city(domain: Domain, number: int) -> DataSet:
    if domain.has_map:
        return City(CITY, number, map=Domain(domain.axes[:2], domain.crs))
    if domain.outlined:
        return ByZone.of_city(domain.axes[domain.outlined[0]], number)
    return Named(CITY, domain.axes[0], number)


def _of_points(prepared: Prepared, path: Path, number: int | None) -> DataSet:
    domain, recipe = prepared.domain, prepared.recipe
    if not domain.has_map and not domain.outlined:
        raise InputError(f"{path} holds points, and this release has no map: leave out --like")
    first = domain.axes[:2] if domain.has_map else (domain.axes[domain.outlined[0]],)
    reading = recipe.reading()
    written = Written(**{one.name: getattr(reading, one.name) for one in fields(Written)})
    columns = recipe.x or LON_LAT[0], recipe.y or LON_LAT[1]
    on = Domain(first, domain.crs)
    return PublicPoints(path.stem, path.resolve(), columns, on, number, written)


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
