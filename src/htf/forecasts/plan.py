"""The plan of a forecast: a recipe, with what stands in for its records. Nothing of the data is opened.

A recipe that names no map has that of the earlier release that stands in, or that of the made-up city. With the map of an
earlier release it also has its unit and what it counts, unless it says otherwise.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from htf.base.options import AUTO
from htf.errors import InputError
from htf.forecasts.assumed import Assumed
from htf.forecasts.questions import kinds_of
from htf.forecasts.simulation import Simulation
from htf.frame.domain import Domain
from htf.privacy.protection import PERSON, RECORDS
from htf.recipes.make import Prepared
from htf.recipes.maps import read_cells
from htf.recipes.recipe import Recipe, given_fields
from htf.release.release import Release
from htf.synthetic.city import BOUNDS

CELLS = "1024"
WHO, WHEN = "person", "time"  # columns that nobody reads
PRIORS = "Priors were left out. With them, errors are mostly smaller."


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
    cells = given.pop("cells", None)
    if release is not None:
        if {"count", "max_records"} & set(given):
            like = {n: v for n, v in like_release(release).items() if n in UNIT_OF_PEOPLE}
        else:
            like = like_release(release)
        axes = _coarser(release.domain, cells)
        return Recipe(**{"source": None, **like, **given, "domain": axes})
    if isinstance(assumed.like, (str, Path)):
        raise InputError(
            f"{assumed.like} is not a release, so it must be a file of public points: say where their map is, with "
            "--bounds W,S,E,N, or in a recipe"
        )
    if recipe.crs is not None:
        raise InputError(f"--crs {recipe.crs} is that of --bounds: give these too")
    west, south, east, north = BOUNDS
    return replace(recipe, bounds=(west, south, east, north), cells=cells or CELLS)


UNIT_OF_PEOPLE = ("user", "per", "time", "once_per", "most_records")


def like_release(release: Release) -> dict[str, Any]:
    """The fields of a recipe that say what a release protects, counts and buys."""
    unit, activity = release.protection, release.activity
    given: dict[str, Any] = {"weight": unit.weight, "once_per": unit.once_per, "per": unit.per}
    given |= {"max_weight": unit.max_weight} if unit.weight else {}
    shares = {
        one.kind: Fraction(one.epsilon.units, release.epsilon.units) for one in release.bought
    }
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
    wanted = (*flat, *domain.shape[2:])
    axes = zip(domain.axes, wanted, strict=True)
    return Domain(tuple(replace(axis, cells=n) for axis, n in axes), domain.crs)
