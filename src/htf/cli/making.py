"""How a command makes a release of a recipe: it asks, charges, makes, writes and reports. For `htf release` and `htf series`."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

import htf
from htf.base.options import option
from htf.cli import streams
from htf.cli.charging import note_account, report_charge
from htf.cli.meaning import say_meaning
from htf.cli.options import MOST_POINTS
from htf.cli.priors import say_trust
from htf.cli.screen import remark, say, warn_if_not_private, working
from htf.errors import HtfError, OutputError
from htf.files import SPARE, check_output, spare_folders

if TYPE_CHECKING:
    from htf.recipes.make import Prepared
    from htf.recipes.quote import Quote

POINTS = 100_000  # assumed where nothing is said
NOT_TRIED = (
    "Not tried: whether numbers and times can be read, and whether places are on the map. `htf check` tries that, "
    "of a recipe too (--save-recipe), for your eyes only."
)


@dataclass(frozen=True, slots=True)
class Asking:
    """Whether the curator sees before a charge what it buys, and may stop."""

    dry_run: bool = option(
        "Say what would be spent and what error to expect. Counts no record, charges nothing, makes no release.",
        default=False,
    )
    yes: bool = option("Do not ask before a charge at a terminal.", default=True)
    points_about: int | None = option(
        "Roughly how many records you have, for the error that is simulated.",
        "N",
        within=(1, MOST_POINTS),
    )


@dataclass(frozen=True)
class Run:
    """Where a release goes, what it is charged to, and what is said of it."""

    output: Path
    overwrite: bool
    budget: htf.BudgetFile | None
    inputs: tuple[str | Path | None, ...] = ()  # which it must not replace
    # What becomes of it before it is written.
    finish: Callable[[htf.Release], htf.Release] | None = None
    remains: str = ""  # what is left of the budget is for this
    adopt: str = ""  # the command that brings in a release of a series that was saved elsewhere


def make_release(recipe: htf.Recipe, noise: str, run: Run, asking: Asking) -> None:
    """Check, ask, make, write and report. A dry run ends before it makes anything."""
    from htf.recipes.listener import Listener

    _check_output(recipe, run)
    if run.budget is not None:
        note_account(run.budget, recipe.reading().told_apart)
    # What noise has told is said once the release is written: until then, an interrupted run may be made again.
    found: list[str] = []
    listen = Listener(
        reading=lambda name: working(f"reading {name}", total=1.0),
        remark=cache(remark),  # once each, though data may be read twice
        found=found.append,
    )
    prepared = recipe.prepare(budget=run.budget, noise=noise, listen=listen)
    if _goes_on(prepared, asking):
        _report(run, _make(prepared, run), found)


def _check_output(recipe: htf.Recipe, run: Run) -> None:
    """Check it before the data are read and anything is charged: a release that cannot be written costs
    as much as one that can."""
    from htf.release.file import check_release_name

    check_release_name(run.output)
    check_output(
        run.output,
        overwrite=run.overwrite,
        inputs=[*recipe.inputs, *run.inputs],
        by_release=True,
        budget=run.budget,
    )


def _goes_on(prepared: Prepared, asking: Asking) -> bool:
    """Say what a charge buys, and ask. Without a terminal nothing is said or asked, except in a dry run."""
    quote, budget = prepared.quote, prepared.budget
    at_terminal = sys.stdin.isatty() and sys.stderr.isatty()
    if not asking.dry_run and (asking.yes or budget is None or not at_terminal):
        return True
    if asking.dry_run:
        prepared.try_source()
    _say_before(prepared.domain, quote, budget)
    _say_error(prepared, asking.points_about)
    if asking.dry_run:
        remark(f"This was a dry run: nothing was charged, and no release was made. {NOT_TRIED}")
        return False
    streams.let_interrupt()
    click.confirm(f"Charge ε {quote.epsilon} and make the release?", abort=True, err=True)
    return True


def _say_before(domain: htf.Domain, quote: Quote, budget: htf.BudgetFile | None) -> None:
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


def _say_error(prepared: Prepared, points: int | None) -> None:
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
        "three times."
    )


def _size(domain: htf.Domain) -> str:
    from htf.frame.areas import cell_metres, length_text

    cells = " x ".join(map(str, domain.shape))
    metres = cell_metres(domain)
    if metres is None:
        return f" of {cells} cells"
    sides = " x ".join(length_text(m * n) for m, n in zip(metres, domain.shape, strict=False))
    return f" {sides}, {cells} cells of {' x '.join(length_text(m) for m in metres)}"


def _make(prepared: Prepared, run: Run) -> htf.Release:
    """Make and write. The progress bar shows labels, and no numbers from the data."""
    from htf.privacy.budget import still_charged

    with ExitStack() as stack:
        # It appears with the first step: while the data are read, there is another.
        bar = cache(lambda: stack.enter_context(working("starting")))

        def step(label: str) -> None:
            bar()(label)

        made = replace(prepared, listen=replace(prepared.listen, step=step)).make()
        if run.finish is not None:
            step("borrowing from earlier releases")
            with still_charged(run.budget):
                made = run.finish(made)
        step(f"writing {run.output.name}")
        _save(run, made)
    return made


def _report(run: Run, made: htf.Release, found: list[str]) -> None:
    with even_if_unseen():
        for message in found:
            say(message)
        say(
            f"Wrote {run.output}: {len(made):,} leaves{_of_zones(made)} by {made.mechanism}, epsilon {made.epsilon} "
            f"for {made.protection.spoken}."
        )
        say_trust(made)
        report_charge(run.budget, made, run.remains)
        if made.private:
            say_meaning(made.epsilon, made.protection, briefly=True)
        warn_if_not_private(made)


def _of_zones(made: htf.Release) -> str:
    """How many zones there are, if there are any."""
    if made.zones is not None:
        return f" inside {made.zones.domain.size:,} zones"
    numbers = [f"{made.domain.shape[axis]:,}" for axis in made.domain.outlined]
    return f" over {' x '.join(numbers)} zones" if numbers else ""


@contextmanager
def even_if_unseen() -> Iterator[None]:
    """A release that was paid for does not fail because its messages cannot be written."""
    try:
        yield
    except (OSError, OutputError) as error:
        streams.give_up()
        reason = error.strerror if isinstance(error, OSError) else error
        remark(f"Note: some messages could not be shown ({reason}).")


def _save(run: Run, made: htf.Release) -> None:
    """If the output cannot be written any more, or appeared since it was checked, save elsewhere: the
    release has been paid for and cannot be made again."""
    save = made.save if run.budget is None else partial(run.budget.save, made)
    try:
        save(run.output, overwrite=run.overwrite)
    except OutputError as error:
        name = f"{SPARE}{secrets.token_hex(4)}.parquet"
        for spare in (folder / name for folder in spare_folders(run.output)):
            with suppress(OutputError):
                save(spare)
                break
        else:
            raise
        told = f"{error}. The release is complete, as {spare}"
        if run.adopt:
            told += f". Bring it into the series: `{run.adopt} {quote(str(spare))}`"
        raise OutputError(told) from None
