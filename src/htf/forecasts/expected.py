"""The error to expect of a release that is ready to be made, by one simulated release. For a dry run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from htf.forecasts.assumed import Assumed
from htf.forecasts.plan import simulation
from htf.forecasts.questions import ByNames, DifferentPeople, Kind
from htf.forecasts.simulation import Made, Simulation
from htf.forecasts.targets import QUESTIONS, Target, errors_of
from htf.forecasts.workloads import derive_seeds
from htf.frame.areas import cell_metres
from htf.frame.domain import Domain
from htf.ingest.columns import DESTINATION
from htf.recipes.make import Prepared

FINEST = 4  # cells along a square, at least


@dataclass(frozen=True, eq=False)
class Expected:
    """Typical errors relative to true counts, by place, from one simulated release."""

    plan: Simulation
    errors: tuple[tuple[str, float], ...]


def expect(prepared: Prepared, points: int) -> Expected:
    """Simulate a release of so many made-up records, in place of the data of the recipe."""
    recipe = replace(prepared.recipe, source=(), prior=())
    plan = simulation(replace(prepared, recipe=recipe, priors=()), Assumed(points_about=points))
    made, made_up = Made.of(plan, plan.epsilon, 0), plan.stand_in.draw(0)
    found = []
    for kind in _kinds(plan):
        seeds = derive_seeds(plan.seed, "target", 0)
        errors = errors_of(list(made.ask(kind.draw(made_up, QUESTIONS, seeds))))
        found.append((kind.place, errors.relative))
    return Expected(plan, tuple(found))


def _kinds(plan: Simulation) -> Iterator[Kind]:
    """One kind of place, trips if there are any, and different people if they are counted."""
    domain = plan.prepared.domain
    if domain.has_map:
        size = _size(domain)
        yield Target.read(f"1 % in squares of {size} around records").kind(plan)
        if domain.names[2:4] == DESTINATION:
            yield Target.read(f"1 % in trips between squares of {size}").kind(plan)
    if domain.outlined or plan.prepared.around is not None:
        yield Target.read("1 % in zones").kind(plan)
    elif not domain.has_map:
        yield ByNames.of(domain, domain.names[0])
    if len(domain.outlined) > 1:
        yield Target.read("1 % by " + ",".join(domain.names[at] for at in domain.outlined)).kind(
            plan
        )
    yield from (kind for kind in plan.kinds if isinstance(kind, DifferentPeople))


def _size(domain: Domain) -> str:
    """Squares of 1 km where they fit the map and its cells."""
    metres = cell_metres(domain)
    fits = metres is not None and all(
        FINEST * one <= 1000 <= one * cells / FINEST
        for one, cells in zip(metres, domain.shape, strict=False)
    )
    if fits:
        return "1 km"
    share = max(1, *(100 / cells for cells in domain.shape[:2]))
    return "1 % of the map" if share == 1 else "1 cell"
