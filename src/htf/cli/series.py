"""`htf series`: one recipe released period after period. Its commands are init, add, adopt, show and revise."""

from __future__ import annotations

from dataclasses import MISSING, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

import htf
from htf.base.options import argument, option
from htf.cli import declared
from htf.cli.charging import BUDGET as CHARGED
from htf.cli.charging import notes_charges
from htf.cli.making import Asking, Run, make_release
from htf.cli.options import JSON
from htf.cli.screen import console, remark, say, say_json, show_table, working
from htf.cli.types import Folder
from htf.errors import InputError, NothingInsideError
from htf.recipes.files import read_fields
from htf.recipes.recipe import Recipe
from htf.series.periods import KINDS

if TYPE_CHECKING:
    from htf.series.folder import Addition

SERIES = argument("SERIES")


@click.group()
def series() -> None:
    """Release the same recipe again and again, with one plan for its budget."""


@declared.command(series)
def init(
    folder: Folder = SERIES,
    recipe_file: Path = argument("RECIPE"),
    period: str = option("What each release is of.", default="month", choices=KINDS),
    releases: int = option("How many periods there will be, at most.", default=MISSING),
    epsilon_total: str | None = option(
        "What one unit loses in the whole series, at most. It is final.  [default: what the releases cost]"
    ),
) -> None:
    """Write down the plan of a series in the new folder SERIES.

    RECIPE (.toml) says what each release is made of: the map or the zones, what is counted and what is bought (`htf
    release --save-recipe` writes one). The plan keeps it without its source, and is final: `htf series add` needs no more
    than the points of a period.

    One release costs the epsilon of RECIPE. Without one it costs all that the unit allows: the total, and for persons the
    total divided by the number of releases.
    """
    from htf.series.plan import share_of_total

    fields = read_fields(recipe_file)
    if "epsilon" not in fields:
        if epsilon_total is None:
            raise InputError(
                "say what the series may cost: give --epsilon-total, or an epsilon in the recipe"
            )
        fields["epsilon"] = epsilon_total
        fields["epsilon"] = share_of_total(Recipe(**fields), releases)
    made = htf.Series.create(
        folder, Recipe(**fields), period, releases=releases, total=epsilon_total
    )
    say(f"Made the series {folder}. {' '.join(made.plan.told)}")


@declared.command(series)
@notes_charges
def add(
    folder: Folder = SERIES,
    points: str = argument(),
    period: str = option("The period, e.g. 2026-03.", "PERIOD", default=MISSING),
    noise: str = option(
        "Source of noise. Seeded noise is not private, so a series has none.",
        "opendp|fast",
        default="opendp",
    ),
    allow_empty: bool = option(
        "Release the period even if no record is in it: a missing release would tell that nobody was there."
    ),
    correct: bool = option("Release the period once more, as a correction. It is charged again."),
    resume: bool = option(
        "Resume an interrupted release of this period under its own charge. Only if nobody saw anything of it."
    ),
    take_from_later: bool = option(
        "Correct a period of a series of persons although later periods can then not all be released."
    ),
    asking: Asking = declared.record_of(Asking),
) -> None:
    """Charge and release one more period of SERIES, from POINTS.

    If the recipe names a column of times, only records of the period are counted. Else all of POINTS must be of the
    period. A period without any record is refused, since a mistake is likelier, and nothing is charged.
    """

    opened = htf.Series(folder)
    if resume and asking.dry_run:
        raise InputError("--resume is under a charge that was made: leave out --dry-run")
    asking = replace(asking, yes=asking.yes or resume)  # nothing is charged then
    asked = {"correct": correct, "resume": resume, "take_from_later": take_from_later}
    with opened.adding(period, **asked, dry_run=asking.dry_run) as addition:
        if isinstance(addition, htf.Release):
            say(
                f"{period} was released by a run that was stopped; its entry in the budget is complete now."
            )
            return
        click.get_current_context().meta[CHARGED] = addition.budget
        recipe = opened.fill(addition, points, allow_empty=allow_empty, dry_run=asking.dry_run)
        if addition.told:
            say(addition.told)
        try:
            make_release(recipe, noise, _run(opened, addition), asking)
        except NothingInsideError as error:
            raise NothingInsideError(_nothing(error, addition, recipe)) from None


def _nothing(error: NothingInsideError, addition: Addition, recipe: Recipe) -> str:
    """What to say if nobody was there in a period. What the reader found out about the columns is of all periods."""
    found = str(error).partition(" Check ")[0].removeprefix("No record is ")
    found = found if recipe.time is None else f"{found.partition('.')[0]}."
    looked = [] if recipe.time is None else [f"the times (the column {recipe.time})"]
    looked += ["--period", "the columns of places and their reference system"]
    return (
        f"No record of {addition.period.name} is {found} Check {', '.join(looked[:-1])} and {looked[-1]}. If there truly is "
        "none, release the period anyway with --allow-empty: it costs as much as any other, but a missing release "
        "tells everyone who waits for it that nobody was there. (This message is for your eyes: it is a fact about the data.)"
    )


def _run(opened: htf.Series, addition: Addition) -> Run:
    return Run(
        output=addition.output,
        overwrite=False,
        budget=addition.budget,
        finish=lambda made: opened.finish(made, addition.period, remark),
        remains="" if opened.plan.adds_up else f" for corrections of {addition.period.name}",
        adopt=f"htf series adopt {quote(str(opened.folder))}",
    )


@declared.command(series)
def adopt(folder: Folder = SERIES, release_file: Path = argument("FILE")) -> None:
    """Bring a release of SERIES in that was saved elsewhere: FILE.

    That happens if its place in the folder could not be written when the release was done. FILE names its charge, which
    says which period it is of. It is checked against that charge, and copied. Nothing is charged.
    """

    opened = htf.Series(folder)
    opened.adopt(release_file)
    say(f"{release_file} is in {folder} now. Nothing was charged. You can delete {release_file}.")


@declared.command(series)
def revise(
    folder: Folder = SERIES,
    output: Folder = option(
        "New folder for the revised releases.", default=MISSING, flag="-o --output"
    ),
) -> None:
    """Estimate all periods of SERIES anew, with what later ones have told too. This costs nothing.

    The releases of the series stay as they are. The revised ones are written to another folder.
    """
    from htf.files import make_folder
    from htf.series.borrowing import borrows

    opened = htf.Series(folder)
    if output.exists():
        raise InputError(f"{output} exists: give the name of a new folder")
    if len(opened.periods) < 2:
        raise InputError(f"{folder} has fewer than two releases, so there is nothing to revise")
    if not borrows(opened.plan.recipe):
        raise InputError(f"{folder} borrows nothing, so there is nothing to revise")
    make_folder(output)
    with working("revising", total=len(opened.periods)) as step:
        for number, period in enumerate(opened.periods):
            step(number)
            opened.revised(period).save(output / f"{period}.revised-{opened.periods[-1]}.parquet")
    say(f"Wrote {len(opened.periods):,} revised releases to {output}. They cost nothing.")


@declared.command(series)
def show(folder: Folder = SERIES, as_json: bool = JSON) -> None:
    """Show the plan of SERIES, its releases, and what is left of its budget."""

    opened = htf.Series(folder)
    accounts = {account.dataset: account for account in opened.accounts()}
    entries = [_entry(entry) for account in accounts.values() for entry in account.entries]
    if as_json:
        say_json({"plan": opened.plan.to_dict(), "entries": entries})
        return
    console().print(f"{folder}: a release for every {opened.plan.period}\n", style="bold")
    console().print(" ".join(opened.plan.told) + "\n")
    rows = [[value or "" for value in entry.values()] for entry in entries]
    show_table(("release", "charged", ">epsilon", "state", "file"), rows, "Releases")
    left = [f"{account.left} of {account.cap}" for account in accounts.values()]
    if opened.plan.adds_up:
        console().print(f"Left: {left[0]} for {accounts[next(iter(accounts))].unit}.")
    planned = opened.plan.releases - len(opened.used)
    told = f"{len(opened.periods)} of {opened.plan.releases} periods were released."
    if opened.plan.adds_up and (possible := opened.affordable()) < planned:
        told += f" The budget allows {possible} of the {planned} that are planned."
    console().print(told)


def _entry(entry: Any) -> dict[str, Any]:
    return {
        "release": entry.label,
        "charged": entry.charged,
        "epsilon": str(entry.epsilon),
        "state": entry.state,
        "file": entry.file,
    }
