"""The error to expect of a release that is ready to be made, by one simulated release. For a dry run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from htf.forecasts.plan import Assumed, simulation
from htf.forecasts.questions import DifferentPeople, Kind
from htf.forecasts.simulation import Made, Simulation
from htf.forecasts.targets import Target
from htf.frame.areas import cell_metres
from htf.frame.domain import Domain
from htf.ingest.columns import DESTINATION
from htf.recipes.make import Prepared

FINEST = 4  # cells along a square, at least


def expect(prepared: Prepared, points: int) -> tuple[Simulation, dict[str, float]]:
    """Simulate a release of so many made-up records, in place of the data of the recipe. Gives typical errors relative to
    true counts, by place."""
    recipe = replace(prepared.recipe, source=(), prior=())
    plan = simulation(replace(prepared, recipe=recipe, priors=()), Assumed(points_about=points))
    made = Made.of(plan, plan.epsilon, 0)
    return plan, {kind.place: made.typical_errors(kind).relative for kind in _kinds(plan)}


def _kinds(plan: Simulation) -> Iterator[Kind]:
    """One kind of place, trips if there are any, and different people if they are counted."""
    domain, wanted = plan.prepared.domain, []
    if domain.has_map:
        wanted.append(f"in squares of {_size(domain)}")
        if domain.names[2:4] == DESTINATION:
            wanted.append(f"in trips between squares of {_size(domain)}")
    if domain.outlined or plan.prepared.around is not None:
        wanted.append("in zones")
    if len(domain.outlined) > 1:
        wanted.append("by " + ",".join(domain.names[at] for at in domain.outlined))
    yield from (Target.read(f"1 % {place}").kind(plan) for place in wanted)
    yield from (kind for kind in plan.kinds if isinstance(kind, DifferentPeople))


def _size(domain: Domain) -> str:
    """Squares of 1 km where they fit the map and its cells."""
    metres = cell_metres(domain)
    sides = zip(metres or (), domain.shape, strict=False)
    if metres and all(FINEST * one <= 1000 <= one * cells / FINEST for one, cells in sides):
        return "1 km"
    share = max(1, *(100 / cells for cells in domain.shape[:2]))
    return "1 % of the map" if share == 1 else "1 cell"
