"""`htf forecast`: simulate a release to see what error to expect, without the data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from htf.cli.declared import option_of, take_typed
from htf.cli.options import json_option, points_about_option
from htf.cli.screen import console, progress_bar, say, say_json, warn_if_not_private
from htf.cli.types import FileName, WholeNumber
from htf.errors import InputError
from htf.files import check_output
from htf.recipes.files import read_fields
from htf.recipes.recipe import Recipe

if TYPE_CHECKING:
    from htf.forecasts.plan import Assumed
    from htf.forecasts.targets import Target

MOST_PEOPLE = 20_000_000
ENDINGS = (".png", ".svg", ".pdf")
START = "1"  # the epsilon of a plan that looks for another
ONE_OF_BOTH = (
    "give --epsilon to see what error to expect, or --target '5 % in squares of 1 km' to find the epsilon for an "
    "error: one of them"
)


@click.command()
@click.argument("recipe_file", metavar="[RECIPE]", required=False, type=FileName())
# What a person types instead of a recipe, or to change one.
@option_of(Recipe, "epsilon", help="Privacy budget to simulate.")
@option_of(
    Recipe,
    "bounds",
    help="Bounds of the map.  [default: those of the made-up city, or of the release]",
)
@option_of(Recipe, "cells")
@option_of(Recipe, "zones")
@option_of(Recipe, "by")
@option_of(Recipe, "max_records")
@option_of(Recipe, "mechanism")
# What is assumed about the records.
@points_about_option(
    "Roughly how many records you have.  [default: 2000000, or as many as the stand-in has]"
)
@click.option(
    "--like",
    type=FileName(),
    metavar="RELEASE|FILE",
    help="Stand-in: an earlier release, or a file of PUBLIC points.  [default: a made-up city]",
)
@click.option(
    "--people",
    type=WholeNumber(1, MOST_PEOPLE),
    metavar="N",
    help="Roughly how many people you have. Epsilon then protects people, not single records. If the recipe has periods "
    "(per): how many person-days, person-weeks or person-months.",
)
@click.option(
    "--records-per-person",
    metavar="SHARE:RECORDS,…",
    help="How many records people have: 0.5:5,0.9:40 if half of them have up to 5 and nine in ten up to 40. Or one number "
    "for all.",
)
@click.option(
    "--target",
    metavar="TEXT",
    help="Find the least epsilon for this error: '5 % in squares of 1 km', '20 records in squares of 500 m', "
    "'10 % in zones', '10 % by district'. Instead of --epsilon.",
)
@click.option(
    "--runs",
    type=WholeNumber(1, 1000),
    help="Number of releases to simulate.  [default: 5; with --target 3 at the epsilon that it finds]",
)
@json_option
@click.option(
    "-o",
    "--output",
    type=FileName(),
    metavar="FILE",
    help="With --target: draw the curve of errors as .png, .svg or .pdf.",
)
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
def forecast(
    recipe_file: Path | None,
    target: str | None,
    runs: int | None,
    as_json: bool,
    output: Path | None,
    overwrite: bool,
    **given: Any,
) -> None:
    """Simulate a release to see what error to expect, before you spend any budget.

    RECIPE is a recipe (.toml), as `htf release` takes it, of a map, zones or trips. Its data are not read, and you must not
    use them here. The options give or change the usual parts of one.

    A made-up city stands in for the data; with --like, an earlier release or a file of public points does. Without a map,
    the forecast takes that of the earlier release, with all that it counts and protects, or that of the city.
    """
    from htf.cli.forecast_shown import draw_found, show_forecast, show_found
    from htf.forecasts.plan import plan_of
    from htf.forecasts.search import RUNS, find_epsilon
    from htf.forecasts.simulation import RUNS_USUAL, simulate
    from htf.forecasts.targets import Target

    aim = None if target is None else Target.read(target)
    fields = _fields(recipe_file, given, aim)
    _check_output(output, aim, overwrite, [recipe_file, given["like"], fields.get("zones")])
    assumed = _assumed(given)
    plan = plan_of(Recipe(**fields), assumed, runs or (RUNS_USUAL if aim is None else RUNS))
    with progress_bar() as bar:
        task = bar.add_task("starting", total=None)
        if aim is None:
            expected = simulate(
                plan,
                lambda done, total, step: bar.update(
                    task, completed=done, total=total, description=step
                ),
            )
        else:
            found = find_epsilon(plan, aim, lambda step: bar.update(task, description=step))
    if as_json:
        shown = expected.to_dict() if aim is None else found.to_dict()
        say_json(json.dumps(shown, indent=2, ensure_ascii=False))
    elif aim is None:
        show_forecast(expected)
    else:
        show_found(found)
    if output is not None and aim is not None:
        draw_found(found, output, overwrite)
        say(f"Wrote {output}.", err=as_json)


def _fields(path: Path | None, given: dict[str, Any], aim: Target | None) -> dict[str, Any]:
    """The fields of the recipe: those of the file, and what the options change."""
    fields = {"source": None, **({} if path is None else read_fields(path))}
    typed = take_typed(Recipe, given)
    if aim is not None and "epsilon" in typed:
        raise InputError(ONE_OF_BOTH)
    fields |= typed
    if aim is not None:
        fields["epsilon"] = START
    if fields.get("epsilon") is None:
        raise InputError(ONE_OF_BOTH)
    about_people = (given["people"], given["records_per_person"], given["max_records"])
    if any(one is not None for one in about_people):
        fields.setdefault("user", "person")
    return fields


def _check_output(
    output: Path | None, aim: Target | None, overwrite: bool, inputs: list[Any]
) -> None:
    if output is None:
        return
    if aim is None:
        raise InputError("--output is for a target: give --target, or leave it out")
    if output.suffix.lower() not in ENDINGS:
        raise InputError(f"the curve is drawn as .png, .svg or .pdf, got {output.name}")
    check_output(output, overwrite=overwrite, inputs=[*inputs, aim.layer])


def _assumed(given: dict[str, Any]) -> Assumed:
    """What is assumed about the records. Warns of a stand-in that is not what it should be."""
    from htf.forecasts.people import RecordsEach
    from htf.forecasts.plan import MUST_BE_PUBLIC, Assumed

    like, each = given["like"], given["records_per_person"]
    assumed = Assumed(
        like=like,
        points_about=given["points_about"],
        people=given["people"],
        records_per_person=None if each is None else RecordsEach.read(each),
    )
    if assumed.release is not None:
        warn_if_not_private(assumed.release)
    elif like is not None:
        warning = MUST_BE_PUBLIC.format(like.name)
        console(stderr=True).print(f"WARNING: {warning}", style="bold yellow", markup=False)
    return assumed
