"""`htf forecast`: simulate a release to see what error to expect, without the data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from htf.base.options import argument, option
from htf.cli import declared
from htf.cli.options import JSON, MOST_POINTS
from htf.cli.screen import warn, warn_if_not_private, working
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


@dataclass(frozen=True, kw_only=True)
class Assuming:
    """What is assumed about the records."""

    points_about: int | None = option(
        "Roughly how many records you have.  [default: 2000000, or as many as the stand-in has]",
        "N",
        within=(1, MOST_POINTS),
    )
    like: Path | None = option(
        "Stand-in: an earlier release, or a file of PUBLIC points.  [default: a made-up city]",
        "RELEASE|FILE",
    )
    people: int | None = option(
        "Roughly how many people you have. Epsilon then protects people, not single records. If the recipe has periods "
        "(per): how many person-days, person-weeks or person-months.",
        "N",
        within=(1, MOST_PEOPLE),
    )
    records_per_person: str | None = option(
        "How many records people have: 0.5:5,0.9:40 if half of them have up to 5 and nine in ten up to 40. Or one number "
        "for all.",
        "SHARE:RECORDS,…",
    )

    def read(self) -> Assumed:
        """Warns of a stand-in that is not what it should be."""
        from htf.forecasts.people import RecordsEach
        from htf.forecasts.plan import MUST_BE_PUBLIC, Assumed

        each = self.records_per_person
        read = None if each is None else RecordsEach.read(each)
        assumed = Assumed(**{**vars(self), "records_per_person": read})
        if assumed.release is not None:
            warn_if_not_private(assumed.release)
        elif self.like is not None:
            warn(MUST_BE_PUBLIC.format(self.like.name))
        return assumed


@declared.command()
def forecast(
    recipe_file: Path | None = argument("[RECIPE]", default=None),
    # These two are given for the recipe as well, and have words of their own here.
    epsilon: str | None = option("Privacy budget to simulate."),  # noqa: ARG001
    bounds: str | None = option(  # noqa: ARG001
        "Bounds of the map.  [default: those of the made-up city, or of the release]", "W,S,E,N"
    ),
    given: dict[str, Any] = declared.given_for(
        Recipe, "cells", "zones", "by", "max_records", "mechanism"
    ),
    assuming: Assuming = declared.record_of(Assuming),
    target: str | None = option(
        "Find the least epsilon for this error: '5 % in squares of 1 km', '20 records in squares of 500 m', "
        "'10 % in zones', '10 % by district'. Instead of --epsilon."
    ),
    runs: int | None = option(
        "Number of releases to simulate.  [default: 5; with --target 3 at the epsilon that it finds]",
        within=(1, 1000),
    ),
    as_json: bool = JSON,
    output: Path | None = option(
        "With --target: draw the curve of errors as .png, .svg or .pdf.", "FILE", flag="-o --output"
    ),
    overwrite: bool = option("Replace the output if it exists."),
) -> None:
    """Simulate a release to see what error to expect, before you spend any budget.

    RECIPE is a recipe (.toml), as `htf release` takes it, of a map, zones or trips. Its data are not read, and you must not
    use them here. The options give or change the usual parts of one.

    A made-up city stands in for the data; with --like, an earlier release or a file of public points does. Without a map,
    the forecast takes that of the earlier release, with all that it counts and protects, or that of the city.
    """
    from htf.cli.forecast_shown import give_out
    from htf.forecasts.plan import plan_of
    from htf.forecasts.search import RUNS, Found, find_epsilon
    from htf.forecasts.simulation import RUNS_USUAL, Forecast, simulate
    from htf.forecasts.targets import Target

    aim = None if target is None else Target.read(target)
    fields = _fields(recipe_file, given, assuming, has_target=aim is not None)
    _check_output(output, aim, overwrite, [recipe_file, assuming.like, fields.get("zones")])
    assumed = assuming.read()
    plan = plan_of(Recipe(**fields), assumed, runs or (RUNS_USUAL if aim is None else RUNS))
    with working("starting", total=1.0 if aim is None else None) as show:

        def tell(done: int, total: int, step: str) -> None:
            show(step)
            show(done / total)

        found: Forecast | Found
        found = simulate(plan, tell) if aim is None else find_epsilon(plan, aim, show)
    give_out(found, output, overwrite=overwrite, as_json=as_json)


def _fields(
    path: Path | None, given: dict[str, Any], assuming: Assuming, *, has_target: bool
) -> dict[str, Any]:
    """The fields of the recipe: those of the file, and what the options change."""
    typed = declared.take_typed(Recipe, given)
    fields = {"source": None, **({} if path is None else read_fields(path)), **typed}
    if has_target and "epsilon" in typed:
        raise InputError(ONE_OF_BOTH)
    if has_target:
        fields["epsilon"] = START
    if fields.get("epsilon") is None:
        raise InputError(ONE_OF_BOTH)
    about_people = (assuming.people, assuming.records_per_person, given["max_records"])
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
