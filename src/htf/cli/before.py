"""What a curator sees before epsilon is spent: facts that do not depend on the data, and a simulated error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import htf
from htf.cli.meaning import say_meaning
from htf.cli.screen import remark, working
from htf.errors import HtfError

if TYPE_CHECKING:
    from htf.recipes.make import Prepared
    from htf.recipes.quote import Quote

POINTS = 100_000  # assumed where nothing is said


def say_before(domain: htf.Domain, quote: Quote, budget: htf.BudgetFile | None) -> None:
    """Say what will be spent, on what map, and what that means."""
    left = ""
    if budget is not None:
        account = budget.account()
        left = f"; {account.left} of {account.cap} remains in {budget.path}"
    remark(f"Map{_size(domain)}, unit: {quote.unit.name}, ε {quote.epsilon}{left}.")
    if quote.prices:
        parts = ", ".join(f"{kind} ε {price}" for kind, price in quote.prices.items())
        remark(f"Of that: {parts}, map ε {quote.left}.")
    say_meaning(quote.epsilon, quote.unit, tell=remark)


def say_error(prepared: Prepared, points: int | None) -> None:
    """Say what error to expect, by a short simulation on the made-up city."""
    from htf.forecasts.expected import expect
    from htf.privacy.protection import different_people

    with working("simulating a release of made-up records"):
        try:
            plan, errors = expect(prepared, points or POINTS)
        except HtfError as error:
            remark(f"The error is not simulated here: {error}.")
            return
    crowd, who = plan.stand_in.crowd, ""
    if crowd is not None:
        who = f" of {crowd.people:,} {different_people(prepared.quote.unit.per)}"
    told = f"{plan.records:,} records{who}"
    told += "" if points else ", assumed: say it with --points-about"
    places = ", and in ".join(f"{place}: about {100 * off:.2g} %" for place, off in errors.items())
    remark(
        f"Expected error in {places}, by one simulated release of {plan.stand_in.words} ({told}). Real data differ, by up to "
        "three times.",
    )


def _size(domain: htf.Domain) -> str:
    from htf.frame.areas import cell_metres, length_text

    cells = " x ".join(map(str, domain.shape))
    metres = cell_metres(domain)
    if metres is None:
        return f" of {cells} cells"
    sides = " x ".join(length_text(m * n) for m, n in zip(metres, domain.shape, strict=False))
    return f" {sides}, {cells} cells of {' x '.join(length_text(m) for m in metres)}"
