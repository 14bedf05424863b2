"""`htf series`: a map released period after period. Its commands are init, add, adopt, show and revise."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from htf.base.options import AUTO
from htf.cli.charging import BUDGET as CHARGED
from htf.cli.charging import notes_charges
from htf.cli.declared import options_of, take
from htf.cli.making import Asking, Run, asking_options, make_release
from htf.cli.options import json_option, noise_option, unit_option
from htf.cli.screen import console, progress_bar, say, say_json, show_table
from htf.cli.types import FileName, WholeNumber
from htf.errors import InputError, NothingInsideError
from htf.ingest.reading import Reading
from htf.privacy.protection import PERSON
from htf.recipes.maps import MapOptions
from htf.recipes.recipe import Recipe, fields_of
from htf.series.periods import KINDS

if TYPE_CHECKING:
    from htf.series.folder import Addition
    from htf.series.series import Series

OF_PERSON = f"{PERSON}-"
BY_PERIOD = {"since": None, "until": None}  # what the period says, so that no option does

folder_argument = click.argument("folder", type=FileName(file_okay=False), metavar="SERIES")


@click.group()
def series() -> None:
    """Release a map again and again, with one plan for its budget."""


@series.command()
@folder_argument
@options_of(MapOptions)
@click.option(
    "--period",
    type=click.Choice(list(KINDS)),
    default="month",
    show_default=True,
    help="What each release is of.",
)
@unit_option
@click.option(
    "--epsilon-total",
    required=True,
    help="What one unit loses in the whole series, at most. It is final.",
)
@click.option(
    "--epsilon-each",
    help="What one release costs.  [default: all that the unit allows: the total, and for persons the total divided by "
    "the number of releases]",
)
@click.option(
    "--releases",
    type=WholeNumber(1),
    required=True,
    help="How many periods there will be, at most.",
)
def init(
    folder: Path,
    period: str,
    unit: str,
    epsilon_total: str,
    epsilon_each: str | None,
    releases: int,
    **given: Any,
) -> None:
    """Write down the plan of a series in the new folder SERIES.

    The map, the periods, the unit and the budget are fixed here. `htf series add` makes the releases.
    """
    from htf.series.plan import SeriesPlan
    from htf.series.series import Series

    options = MapOptions(**take(MapOptions, given))
    if options.is_map_inside:
        raise InputError(
            "a series covers a map or zones, not both: leave out --zones, or --bounds and --around"
        )
    domain, _ = options.read()
    if domain.dimensions != (2 if options.zones is None else 1):
        raise InputError(
            "a series covers a map with the axes x and y alone, or zones alone: leave out --axis, --dest x and --category"
        )
    plan = SeriesPlan.of(
        domain, period, unit, total=epsilon_total, releases=releases, each=epsilon_each
    )
    made = Series.create(folder, plan)
    if options.zones is not None:
        made.pin_layer(options.zones)
    what = f" of {domain.size:,} zones" if plan.of_zones else ""
    say(f"Made the series {folder}{what}. {' '.join(plan.told)}")


@series.command()
@folder_argument
@click.argument("points")
@click.option(
    "--period", "period", required=True, metavar="PERIOD", help="The period, e.g. 2026-03."
)
@click.option("--x", "x_column", metavar="COLUMN", help="Column of the x axis.  [default: guessed]")
@click.option("--y", "y_column", metavar="COLUMN", help="Column of the y axis.  [default: guessed]")
@options_of(Reading, without=tuple(BY_PERIOD))
@noise_option("opendp|fast", "Source of noise. Seeded noise is not private, so a series has none.")
@click.option(
    "--correct",
    is_flag=True,
    help="Release the period once more, as a correction. It is charged again.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Take up a release of this period that was interrupted, under its own charge. Only if nothing of it was seen.",
)
@click.option(
    "--take-from-later",
    is_flag=True,
    help="Correct a period of a series of persons although later periods can then not all be released.",
)
@asking_options
@notes_charges
def add(
    folder: Path,
    points: str,
    period: str,
    x_column: str | None,
    y_column: str | None,
    correct: bool,
    resume: bool,
    take_from_later: bool,
    **given: Any,
) -> None:
    """Charge and release one more period of SERIES, from POINTS.

    With --time, only records of the period are counted. Without it, all of POINTS must be of the period. A period without
    any record is refused, since a mistake is likelier, and nothing is charged; with --allow-empty it is released.
    """
    from htf.release.release import Release
    from htf.series.plan import period_of
    from htf.series.series import Series

    opened, asking = Series(folder), Asking.of(given)
    if resume and asking.dry_run:
        raise InputError("--resume is under a charge that was made: leave out --dry-run")
    asking = replace(asking, yes=asking.yes or resume)  # nothing is charged then
    wanted = period_of(opened.plan, period)
    reading = _of_period(
        opened, Reading((x_column, y_column), **take(Reading, given | BY_PERIOD)), wanted.seconds
    )
    _check_one_charge(reading)
    opened.check_unit(reading.protection)
    asked = {"correct": correct, "resume": resume, "take_from_later": take_from_later}
    with opened.adding(period, **asked, dry_run=asking.dry_run) as addition:
        if isinstance(addition, Release):
            say(
                f"{period} was released by a run that was stopped; its entry in the budget is complete now."
            )
            return
        click.get_current_context().meta[CHARGED] = addition.budget
        recipe = _recipe(opened, addition, points, reading)
        opened.check_not_layer(recipe.files)
        if not asking.dry_run:
            opened.pin_clock(_clock(reading), reading.user)
        if addition.told:
            say(addition.told)
        try:
            _make(opened, addition, recipe, given["noise"], asking)
        except NothingInsideError as error:
            raise NothingInsideError(_nothing(error, addition, reading)) from None


def _nothing(error: NothingInsideError, addition: Addition, reading: Reading) -> str:
    """What to say if nobody was there in a period. What the reader found out about the columns is of all periods."""
    found = str(error).partition(" Check ")[0].removeprefix("No record is ")
    found = found if reading.time is None else f"{found.partition('.')[0]}."
    looked = [] if reading.time is None else [f"the times (--time {reading.time})"]
    looked += [
        "--period",
        "the columns (--x, --y)",
        "the reference system of the points (--read points-crs)",
    ]
    return (
        f"No record of {addition.period.name} is {found} Check {', '.join(looked[:-1])} and {looked[-1]}. If there truly is "
        "none, release the period anyway with --allow-empty: it costs as much as any other, but a missing release "
        "tells everyone who waits for it that nobody was there. (This message is for your eyes: it is a fact about the data.)"
    )


def _clock(reading: Reading) -> dict[str, Any]:
    """By which times records are put into periods."""
    if reading.time is None:
        return {"time": None}
    clock = {
        "time": reading.time,
        "time_unit": reading.time_unit,
        "utc_offset": reading.utc_offset,
    }
    # Only if they are not as usual: files of versions that did not have them stay the same.
    usual = Reading((None, None))
    forms = {name: getattr(reading, name) for name in ("time_format", "decimal")}
    return clock | {name: value for name, value in forms.items() if value != getattr(usual, name)}


def _of_period(opened: Series, reading: Reading, seconds: tuple[int, int]) -> Reading:
    unit = opened.plan.unit
    if unit.startswith(OF_PERSON) and reading.user is not None and reading.per is None:
        reading = replace(reading, per=unit.removeprefix(OF_PERSON))
    if reading.time is None:
        return reading
    return replace(reading, since=seconds[0], until=seconds[1])


def _check_one_charge(reading: Reading) -> None:
    """Refuse what is charged in several parts: a release of a series is taken up as a whole, or not at all."""
    if reading.max_records == AUTO:
        raise InputError(
            "a series keeps the same number of records of each person in every period: give a number with --max-records"
        )


def _make(opened: Series, addition: Addition, recipe: Recipe, noise: str, asking: Asking) -> None:
    run = Run(
        output=addition.output,
        overwrite=False,
        budget=addition.budget,
        finish=lambda made: opened.finish(made, addition.period, lambda text: say(text, err=True)),
        remains="" if opened.plan.adds_up else f" for corrections of {addition.period.name}",
        adopt=f"htf series adopt {quote(str(opened.folder))}",
    )
    make_release(recipe, noise, run, asking)


def _recipe(opened: Series, addition: Addition, points: str, reading: Reading) -> Recipe:
    """The release of one period. It buys nothing, which would have a charge of its own."""
    from htf.series.borrowing import mechanism_of

    x, y = reading.columns or (None, None)
    kinds = {"activity": reading.max_records is not None, "clipped": reading.weight is not None}
    return Recipe(
        source=points,
        domain=opened.plan.domain,
        x=x,
        y=y,
        **fields_of(reading),
        epsilon=opened.plan.each,
        mechanism=mechanism_of(opened.plan.domain, addition.priors),
        prior=addition.priors,
        spend={kind: 0 for kind, is_usual in kinds.items() if is_usual},
        label=addition.label,
    )


@series.command()
@folder_argument
@click.argument("release_file", type=FileName(), metavar="FILE")
def adopt(folder: Path, release_file: Path) -> None:
    """Bring a release of SERIES in that was saved elsewhere: FILE.

    That happens if its place in the folder could not be written when the release was done. FILE names its charge, which
    says which period it is of. It is checked against that charge, and copied. Nothing is charged.
    """
    from htf.series.series import Series

    opened = Series(folder)
    opened.adopt(release_file)
    say(f"{release_file} is in {folder} now. Nothing was charged. You can delete {release_file}.")


@series.command()
@folder_argument
@click.option(
    "-o",
    "--output",
    type=FileName(file_okay=False),
    required=True,
    help="New folder for the revised releases.",
)
def revise(folder: Path, output: Path) -> None:
    """Estimate all periods of SERIES anew, with what later ones have told too. This costs nothing.

    The releases of the series stay as they are. The revised ones are written to another folder.
    """
    from htf.files import make_folder
    from htf.series.series import Series

    opened = Series(folder)
    if output.exists():
        raise InputError(f"{output} exists: give the name of a new folder")
    if len(opened.periods) < 2:
        raise InputError(f"{folder} has fewer than two releases, so there is nothing to revise")
    if opened.plan.of_zones:
        raise InputError("a series of zones borrows nothing, so there is nothing to revise")
    make_folder(output)
    with progress_bar() as bar:
        task = bar.add_task("revising", total=len(opened.periods))
        for period in opened.periods:
            opened.revised(period).save(output / f"{period}.revised-{opened.periods[-1]}.parquet")
            bar.advance(task)
    say(f"Wrote {len(opened.periods):,} revised releases to {output}. They cost nothing.")


@series.command()
@folder_argument
@json_option
def show(folder: Path, as_json: bool) -> None:
    """Show the plan of SERIES, its releases, and what is left of its budget."""
    from htf.series.series import Series

    opened = Series(folder)
    accounts = {account.dataset: account for account in opened.accounts()}
    entries = [entry for account in accounts.values() for entry in account.entries]
    if as_json:
        said = {"plan": opened.plan.to_dict(), "entries": [_entry(entry) for entry in entries]}
        say_json(json.dumps(said, indent=2))
        return
    console().print(f"{folder}: a release for every {opened.plan.period}\n", style="bold")
    console().print(" ".join(opened.plan.told) + "\n")
    rows = [
        (entry.label, entry.charged, str(entry.epsilon), entry.state, entry.file or "")
        for entry in entries
    ]
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
