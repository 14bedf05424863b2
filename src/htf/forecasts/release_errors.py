"""How far the answers of one release are off, by the size of the area: what its intervals say, and what a simulation finds.

Squares of a few round sizes are put where the release counts most, since that is where people ask. Of zones and categories,
every name of every level is asked. The release itself says how wide its intervals are there. Then records are
scattered as the release counts them, the same mechanism releases them again with seeded noise, and its answers are compared
with these made-up records, whose counts are known.

This spends no budget: everything starts from the release, which is public.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from htf.base import arguments
from htf.errors import HtfError, InputError
from htf.forecasts.assumed import Assumed
from htf.forecasts.plan import like_release, simulation
from htf.forecasts.simulation import Made, Simulation
from htf.forecasts.specs import Spec
from htf.forecasts.workloads import Boxes, snap_to_cells
from htf.frame.areas import square_kilometres
from htf.frame.crs import CRS84, parse_crs
from htf.frame.domain import Domain, FloatArray
from htf.privacy.protection import PERSON, RECORDS
from htf.query.columns import place
from htf.recipes.recipe import Recipe
from htf.release.release import Release, check_release

AREAS, SEED = 500, 1
RUNS, MANY_LEAVES = (
    3,
    40_000,
)  # of a release with more leaves one is simulated, so that it takes seconds
SIDES = (0.01, 0.03, 0.1, 0.3)  # of the side of the map, before they are rounded
SHARES = (0.0001, 0.001, 0.01, 0.1)  # of a map whose ground is not known
NOT_OF_KEPT = (
    "the release keeps some records of each person and does not tell how many people there are"
)
WITHOUT_PRIOR = "Priors were left out of the simulation. With them, errors are mostly smaller."
WITHOUT_ZONES = (
    "The map was simulated without the zones that it adds up to, and without their part of epsilon."
)
MADE_UP_WEIGHTS = "Weights were made up: how uneven they are is a guess, which no release tells."
MADE_UP_PEOPLE = "People were made up: how close together the records of a person lie is a guess, which no release tells."


@dataclass(frozen=True, eq=False)
class Simulated:
    """What a simulation found for one size, run by run."""

    errors: FloatArray  # median of |answer - truth|
    large_errors: FloatArray  # which one area in twenty exceeds
    covered: FloatArray  # the share of intervals that hold the truth


@dataclass(frozen=True, eq=False)
class AreaErrors:
    """The errors for areas of one size."""

    name: str
    number: int  # of areas that were asked for
    count: float  # the median of what the release counts in them
    margin: float  # the median of half the width of its intervals
    km: float | None = None  # the side of a square, where the ground is known
    simulated: Simulated | None = None

    @property
    def relative_margin(self) -> float | None:
        """As a share of the count; None where there is next to nothing."""
        return self.margin / self.count if self.count >= 1 else None


@dataclass(frozen=True, eq=False)
class ReleaseErrors:
    """The errors of a release by size of area, from small to large."""

    areas: tuple[AreaErrors, ...]
    runs: int  # releases that were simulated
    seed: int = SEED
    notes: tuple[str, ...] = ()
    reason: str = ""  # why nothing was simulated

    @property
    def usual(self) -> AreaErrors | None:
        """The size to name where only one is: squares of about one kilometre, or the lowest level of names, as long as
        half of the interval is at most half of the count; else the next size for which it is."""
        good = [one for one in self.areas if (one.relative_margin or math.inf) <= 0.5]
        if not good:
            return self.areas[-1] if self.areas else None
        return min(good, key=lambda one: abs(math.log(one.km or 1.0)))


@dataclass(frozen=True, slots=True, eq=False)
class _Kind:
    """Areas of one size."""

    name: str
    boxes: Boxes
    km: float | None = None


def errors_of(release: Release, runs: int | None = None, areas: int = AREAS) -> ReleaseErrors:
    """The errors of a release, by the size of the area. With 0 runs nothing is simulated. By default there are as many runs
    as take seconds."""
    check_release(release)
    if runs is None:
        runs = 1 if len(release) > MANY_LEAVES else RUNS
    arguments.whole(runs, "runs", 0)
    kinds = list(_kinds(release, arguments.whole(areas, "areas", 1)))
    found = [_expected(release, kind) for kind in kinds]
    if runs == 0:
        return ReleaseErrors(tuple(found), 0, reason="no simulation was asked for")
    try:
        simulated = _simulate(release, kinds, runs)
    except HtfError as error:  # also of a mechanism that is not installed here
        return ReleaseErrors(tuple(found), 0, reason=str(error))
    rows = [
        AreaErrors(one.name, one.number, one.count, one.margin, one.km, its)
        for one, its in zip(found, simulated, strict=True)
    ]
    return ReleaseErrors(tuple(rows), runs, notes=tuple(_notes(release)))


def cell_kilometres(domain: Domain) -> tuple[float, float] | None:
    """The sides of a cell in the middle of the map; None if the ground is not known."""
    if not domain.has_map:
        return None
    middle = np.array([[axis.cells // 2 for axis in domain.axes[:2]]], dtype=np.int64)
    area = square_kilometres(domain, middle, middle + 1)
    if area is None:
        return None
    x, y = domain.axes[:2]
    ratio = x.cell_width / y.cell_width
    if domain.crs == CRS84 or parse_crs(str(domain.crs)).is_geographic:
        ratio *= math.cos(math.radians((y.low + y.high) / 2))
    return math.sqrt(area[0] * ratio), math.sqrt(area[0] / ratio)


def _kinds(release: Release, number: int) -> Iterator[_Kind]:
    domain = release.domain
    named = next((n for n, axis in enumerate(domain.axes) if axis.names is not None), None)
    if not domain.has_map and named is not None:
        yield from _of_names(domain, named)
    else:
        yield from _squares(release, number)


def _of_names(domain: Domain, number: int) -> Iterator[_Kind]:
    """Every name of every level of an axis, with all of the other axes."""
    names = domain.axes[number].names
    if names is None:
        return
    for place_of, level in enumerate(names.levels):
        edges = names.edges(place_of)
        low = np.zeros((len(level.labels), domain.dimensions), dtype=np.int64)
        high = np.tile(np.array(domain.shape, dtype=np.int64), (len(level.labels), 1))
        low[:, number], high[:, number] = edges[:-1], edges[1:]
        yield _Kind(level.name, Boxes(low, high))


def _squares(release: Release, number: int) -> Iterator[_Kind]:
    """Squares around places of the release. Axes other than the first two are whole."""
    domain = release.domain
    centres = _places(release, number)
    known, shape = cell_kilometres(domain), np.array(domain.shape, dtype=np.float64)
    flat = 2 if domain.has_map else 1
    seen: set[tuple[float, ...]] = set()
    for name, cells, km in _sizes(domain, known, flat):
        sides = np.minimum(np.maximum(np.rint(cells), 1.0), shape[:flat])
        if tuple(sides) in seen:
            continue
        seen.add(tuple(sides))
        half = np.broadcast_to(shape, centres.shape).copy()
        half[:, :flat] = sides / 2
        yield _Kind(name, snap_to_cells(centres - half, centres + half, domain), km)


def _sizes(
    domain: Domain, cell: tuple[float, float] | None, flat: int
) -> Iterator[tuple[str, FloatArray, float | None]]:
    """Names of sizes, and how many cells a side they have."""
    shape = np.array(domain.shape[:flat], dtype=np.float64)
    if cell is None:
        for share in SHARES:
            yield f"{100 * share:g} % of the map", shape * share ** (1 / flat), None
        return
    sides = np.array(cell)
    whole = math.sqrt(float(np.prod(shape * sides)))
    for wanted in dict.fromkeys(nearest_round(share * whole) for share in SIDES):
        yield f"{told_length(wanted)} squares", wanted / sides, wanted


def nearest_round(length: float) -> float:
    """The nearest of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(length))
    steps = [step * power for step in (1, 2, 5, 10)]
    return min(steps, key=lambda step: abs(math.log(step / length)))


def told_length(km: float) -> str:
    return f"{km:g} km" if km >= 1 else f"{1000 * km:g} m"


def _places(release: Release, number: int) -> FloatArray:
    """Places in cells, drawn from what the release counts; anywhere, if it counts nothing."""
    generator = np.random.default_rng(SEED)
    ends = np.cumsum(np.maximum(release.estimates, 0.0))
    if ends[-1] <= 0:
        return generator.random((number, release.domain.dimensions)) * release.domain.shape
    at = np.searchsorted(ends, generator.random(number) * ends[-1], side="right")
    low, high = release.low[at], release.high[at]
    return np.asarray(low + generator.random(low.shape) * (high - low))


def _answers(release: Release, boxes: Boxes) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Counts, and both ends of their intervals."""
    found = release.derived.answer_cells(boxes.low, boxes.high)
    count, low, high = (found[:, place(name)] for name in ("count", "low", "high"))
    return count, low, high


def _expected(release: Release, kind: _Kind) -> AreaErrors:
    count, low, high = _answers(release, kind.boxes)
    return AreaErrors(
        kind.name,
        len(kind.boxes),
        float(np.median(count)),
        float(np.median(high - low) / 2),
        kind.km,
    )


def _simulate(release: Release, kinds: list[_Kind], runs: int) -> list[Simulated]:
    plan = _plan(release)
    found = [list(_run_once(plan, kinds, run)) for run in range(runs)]
    return [Simulated(*np.array(rows).T) for rows in zip(*found, strict=True)]


def _plan(release: Release) -> Simulation:
    """Releases like this one, of records scattered as it counts them."""
    unit = release.protection
    if unit.unit == PERSON and unit.count == RECORDS and release.activity is None:
        raise InputError(NOT_OF_KEPT)
    epsilon = release.epsilon if release.zones is None else release.epsilon - release.zones.epsilon
    recipe = Recipe(
        source=(),
        domain=release.domain,
        epsilon=epsilon,
        mechanism=Spec.of_release(release).make(),
        **like_release(release),
    )
    return simulation(recipe.prepare(noise="seeded:1"), Assumed(like=release))


def _run_once(
    plan: Simulation, kinds: list[_Kind], run: int
) -> Iterator[tuple[float, float, float]]:
    """The median error, the error that one in twenty exceeds, and the share of intervals that hold, for each size."""
    made = Made.of(plan, plan.epsilon, run)
    for kind in kinds:
        truth = made.truth.counter.count(kind.boxes) / plan.protection.shares
        count, low, high = _answers(made.release, kind.boxes)
        error = np.abs(count - truth)
        held = (low <= truth) & (truth <= high)
        yield float(np.median(error)), float(np.quantile(error, 0.95)), float(held.mean())


def _notes(release: Release) -> Iterator[str]:
    if release.priors:
        yield WITHOUT_PRIOR
    if release.zones is not None:
        yield WITHOUT_ZONES
    if release.protection.unit == PERSON:
        yield MADE_UP_PEOPLE
    if release.protection.weight is not None:
        yield MADE_UP_WEIGHTS
