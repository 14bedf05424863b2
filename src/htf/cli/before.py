"""What a curator sees before epsilon is spent: facts that do not depend on the data, and a simulated error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htf.cli.meaning import say_meaning
from htf.cli.screen import say
from htf.privacy.protection import RECORD

if TYPE_CHECKING:
    from htf.frame.domain import Domain
    from htf.mechanisms.base import Mechanism
    from htf.privacy.budget import BudgetFile
    from htf.recipes.quote import Quote

POINTS = 100_000  # assumed where nothing is said
FINEST = 4  # cells along a square, at least
MOST_CELLS = 2048 * 2048  # of a map that is simulated here, so that it takes a second or two


def say_before(domain: Domain, quote: Quote, budget: BudgetFile | None) -> None:
    """Say what will be spent, on what map, and what that means."""
    left = ""
    if budget is not None:
        account = budget.account()
        left = f"; {account.left} of {account.cap} remains in {budget.path}"
    say(f"Map{_size(domain)}, unit: {quote.unit.name}, ε {quote.epsilon}{left}.", err=True)
    if quote.prices:
        parts = ", ".join(f"{kind} ε {price}" for kind, price in quote.prices.items())
        say(f"Of that: {parts}, map ε {quote.left}.", err=True)
    say_meaning(quote.epsilon, quote.unit, err=True)


def say_error(domain: Domain, quote: Quote, mechanism: Mechanism, points: int | None) -> None:
    """Say what error to expect, by a short simulation on the made-up city."""
    from htf.forecasts.datasets import City
    from htf.forecasts.simulation import Simulation
    from htf.forecasts.specs import Spec
    from htf.forecasts.targets import Squares, Target, ask_once

    unit, epsilon = quote.unit, quote.left
    is_plain = unit.unit == RECORD and unit.weight is None and domain.dimensions == 2
    if not (is_plain and domain.has_map and FINEST**2 <= domain.size <= MOST_CELLS):
        say("The error is not simulated here for this release: see `htf forecast`.", err=True)
        return
    number = points or POINTS
    stand_in = City("city", number, map=domain)
    spec = Spec.of(mechanism.name, mechanism.parameters())
    target = Target.read(f"1 % in {_squares(domain)}")
    plan = Simulation(stand_in, spec, epsilon, 1)
    errors = ask_once(plan, Squares.of(target, domain), epsilon, 0)
    told = f"{number:,} records" + ("" if points else ", assumed: say it with --points-about")
    say(
        f"Expected error in {target.place} around records: about {100 * errors.relative:.2g} %, by one simulated release of "
        f"the made-up city stretched over this map ({told}). Real data differ, by up to three times.",
        err=True,
    )


def _squares(domain: Domain) -> str:
    """Squares of 1 km where they fit the map and its cells."""
    from htf.frame.areas import cell_metres

    metres = cell_metres(domain)
    fits = metres is not None and all(
        FINEST * one <= 1000 <= one * cells / FINEST
        for one, cells in zip(metres, domain.shape, strict=True)
    )
    return "squares of 1 km" if fits else "squares of 1 % of the map"


def _size(domain: Domain) -> str:
    from htf.forecasts.targets import length_text
    from htf.frame.areas import cell_metres

    cells = " x ".join(map(str, domain.shape))
    metres = cell_metres(domain)
    if metres is None:
        return f" of {cells} cells"
    sides = " x ".join(length_text(m * n) for m, n in zip(metres, domain.shape, strict=False))
    return f" {sides}, {cells} cells of {' x '.join(length_text(m) for m in metres)}"
