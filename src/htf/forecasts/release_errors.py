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
from dataclasses import dataclass, replace

import numpy as np

from htf.errors import HtfError, InputError
from htf.forecasts.plan import Assumed, like_release, simulation
from htf.forecasts.questions import boxes_of_names
from htf.forecasts.simulation import Made, Simulation
from htf.forecasts.workloads import Boxes, snap_to_cells
from htf.frame.areas import cell_metres, length_text
from htf.frame.division import Part
from htf.frame.domain import Domain, FloatArray
from htf.mechanisms import make_mechanism
from htf.privacy.protection import PERSON, RECORDS
from htf.query.columns import place
from htf.recipes.recipe import Recipe
from htf.release.release import Release

AREAS, SEED = 500, 1
RUNS = 3
MANY_LEAVES = 40_000  # of a release with more leaves one is simulated, so that it takes seconds
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


def errors_of(release: Release, runs: int | None = None) -> ReleaseErrors:
    """The errors of a release, by the size of the area. With 0 runs nothing is simulated. By default there are as many runs
    as take seconds."""
    if runs is None:
        runs = 1 if len(release) > MANY_LEAVES else RUNS
    asked = list(_asked(release))
    found = tuple(_expected(release, *one) for one in asked)
    if runs == 0:
        return ReleaseErrors(found, 0, reason="no simulation was asked for")
    try:
        simulated = _simulate(release, [boxes for _, boxes, _ in asked], runs)
    except HtfError as error:  # also of a mechanism that is not installed here
        return ReleaseErrors(found, 0, reason=str(error))
    rows = (replace(one, simulated=its) for one, its in zip(found, simulated, strict=True))
    return ReleaseErrors(tuple(rows), runs, notes=tuple(_notes(release)))


def _asked(release: Release) -> Iterator[tuple[str, Boxes, float | None]]:
    """Areas by size: what they are called, where they are, and how many kilometres a square is wide."""
    domain = release.domain
    named = next((n for n, axis in enumerate(domain.axes) if axis.levels), None)
    if domain.has_map or named is None:
        yield from _squares(release)
        return
    for place_of, level in enumerate(domain.axes[named].levels):
        yield level.name, boxes_of_names(domain, Part(named, place_of)), None


def _squares(release: Release) -> Iterator[tuple[str, Boxes, float | None]]:
    """Squares around places of the release. Axes other than the first two are whole."""
    domain, centres = release.domain, _places(release)
    shape = np.array(domain.shape, dtype=np.float64)
    flat = 2 if domain.has_map else 1
    seen = set()
    for name, cells, km in _sizes(domain, shape[:flat]):
        sides = 2 * shape
        sides[:flat] = np.minimum(np.maximum(np.rint(cells), 1.0), shape[:flat])
        if tuple(sides) not in seen:
            seen.add(tuple(sides))
            yield name, snap_to_cells(centres - sides / 2, centres + sides / 2, domain), km


def _sizes(domain: Domain, shape: FloatArray) -> Iterator[tuple[str, FloatArray, float | None]]:
    """Names of sizes, and how many cells a side they have."""
    metres = cell_metres(domain)
    if metres is None:
        for share in SHARES:
            yield f"{100 * share:g} % of the map", shape * share ** (1 / len(shape)), None
        return
    sides = np.array(metres) / 1000
    whole = math.sqrt(float(np.prod(shape * sides)))
    for wanted in dict.fromkeys(nearest_round(share * whole) for share in SIDES):
        yield f"{length_text(1000 * wanted)} squares", wanted / sides, wanted


def nearest_round(length: float) -> float:
    """The nearest of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(length))
    steps = [step * power for step in (1, 2, 5, 10)]
    return min(steps, key=lambda step: abs(math.log(step / length)))


def _places(release: Release) -> FloatArray:
    """Places in cells, drawn from what the release counts; anywhere, if it counts nothing."""
    generator = np.random.default_rng(SEED)
    ends = np.cumsum(np.maximum(release.estimates, 0.0))
    if ends[-1] <= 0:
        return generator.random((AREAS, release.domain.dimensions)) * release.domain.shape
    at = np.searchsorted(ends, generator.random(AREAS) * ends[-1], side="right")
    low, high = release.low[at], release.high[at]
    return np.asarray(low + generator.random(low.shape) * (high - low))


def _answers(release: Release, boxes: Boxes) -> Iterator[FloatArray]:
    """Counts, and both ends of their intervals."""
    found = release.derived.answer_cells(boxes.low, boxes.high)
    return (found[:, place(name)] for name in ("count", "low", "high"))


def _expected(release: Release, name: str, boxes: Boxes, km: float | None) -> AreaErrors:
    count, low, high = _answers(release, boxes)
    margin = float(np.median(high - low) / 2)
    return AreaErrors(name, len(boxes), float(np.median(count)), margin, km)


def _simulate(release: Release, asked: list[Boxes], runs: int) -> list[Simulated]:
    plan, rows = _plan(release), []
    for run in range(runs):
        made = Made.of(plan, plan.epsilon, run)
        rows.append([_compare(made, boxes) for boxes in asked])
    return [Simulated(*np.array(found).T) for found in zip(*rows, strict=True)]


def _plan(release: Release) -> Simulation:
    """Releases like this one, of records scattered as it counts them."""
    unit = release.protection
    if unit.unit == PERSON and unit.count == RECORDS and release.activity is None:
        raise InputError(NOT_OF_KEPT)
    epsilon = release.epsilon if release.zones is None else release.epsilon - release.zones.epsilon
    mechanism = make_mechanism(release.mechanism, **release.parameters)
    recipe = Recipe(
        source=(),
        domain=release.domain,
        epsilon=epsilon,
        mechanism=mechanism,
        **like_release(release),
    )
    return simulation(recipe.prepare(noise="seeded:1"), Assumed(like=release))


def _compare(made: Made, boxes: Boxes) -> tuple[float, float, float]:
    """The median error, the error that one in twenty exceeds, and the share of intervals that hold."""
    truth = made.truth.counter.count(boxes) / made.release.protection.shares
    count, low, high = _answers(made.release, boxes)
    error, held = np.abs(count - truth), (low <= truth) & (truth <= high)
    return float(np.median(error)), float(np.quantile(error, 0.95)), float(held.mean())


def _notes(release: Release) -> Iterator[str]:
    if release.priors:
        yield WITHOUT_PRIOR
    if release.zones is not None:
        yield WITHOUT_ZONES
    if release.protection.unit == PERSON:
        yield MADE_UP_PEOPLE
    if release.protection.weight is not None:
        yield MADE_UP_WEIGHTS
