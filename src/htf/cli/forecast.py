"""`htf forecast`: simulate a release to see what error to expect, without the data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from htf.cli.declared import option_of
from htf.cli.forecast_people import Crowd, PeopleOptions, people_options, read_crowd
from htf.cli.forecast_target import (
    CITY_IS_ROUGH,
    Answer,
    TargetOptions,
    search,
    show,
    target_options,
)
from htf.cli.meaning import say_meaning
from htf.cli.options import json_option, points_about_option
from htf.cli.points import take_written, written_options
from htf.cli.screen import console, progress_bar, say_json, show_table, warn_if_not_private
from htf.cli.types import FileName, WholeNumber
from htf.errors import InputError
from htf.files import is_file
from htf.privacy.protection import different_people, explain_people
from htf.recipes.maps import MapOptions, read_cells, read_domain
from htf.recipes.recipe import Recipe, read_settings

if TYPE_CHECKING:
    from htf.forecasts.datasets import DataSet
    from htf.forecasts.simulation import Area, Forecast, Outlook, Simulation
    from htf.forecasts.specs import Spec
    from htf.forecasts.targets import Target
    from htf.frame.domain import Domain, FloatArray
    from htf.ingest.reading import Written
    from htf.release.release import Release

POINTS = 2_000_000
CELLS = "1024"
RUNS_USUAL = 5
START = "1"  # the epsilon of a plan that looks for another
MUST_BE_PUBLIC = (
    "{} must be public and must NOT be the data that you will release: the guarantee does not cover a choice "
    "of epsilon, grid or mechanism that depends on them."
)
CAVEAT = (
    "This was a simulation: it spent no budget and kept nothing. The error of the real release depends on the "
    "real data and will differ."
)
SCATTERED = (
    "Within the leaves of the release, records were scattered at random, about as unevenly as its leaves "
    "differ. Real records may cluster more, so real errors may be larger, especially where leaves are large."
)


@click.command()
@option_of(Recipe, "epsilon", help="Privacy budget to simulate.")
@target_options
@option_of(
    MapOptions,
    "cells",
    default=None,
    help="Cells of the grid per side.  [default: 1024, or those of the release]",
)
@points_about_option(
    f"Roughly how many points you have.  [default: {POINTS}, or as many as the stand-in has]"
)
@click.option(
    "--like",
    type=FileName(),
    metavar="RELEASE|FILE",
    help="Stand-in: an earlier release, or a file of PUBLIC points.  [default: a made-up city]",
)
@people_options
@option_of(MapOptions, "x_column", default="lon", show_default=True, help="Column of x in FILE.")
@option_of(MapOptions, "y_column", default="lat", show_default=True, help="Column of y in FILE.")
@written_options
@option_of(
    MapOptions, "bounds", help="Bounds of the map: for FILE, or to stretch the made-up city over."
)
@option_of(MapOptions, "around")
@option_of(
    MapOptions, "map_crs", help="Reference system of --bounds.  [default: degrees, OGC:CRS84]"
)
@option_of(Recipe, "mechanism", help="See `htf mechanisms`.  [default: that of `htf release`]")
@option_of(Recipe, "settings")
@click.option(
    "--runs",
    type=WholeNumber(1, 1000),
    help="Number of releases to simulate.  [default: 5; with --target 3 at the epsilon that it finds]",
)
@json_option
def forecast(
    epsilon: str | None,
    points_about: int | None,
    like: Path | None,
    mechanism: str | None,
    settings: tuple[str, ...],
    runs: int | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Simulate a release to see what error to expect, before you spend any budget.

    The simulation does not need the data that you will release, and you must not use them here. A made-up
    city stands in for them; with --like, an earlier release or a file of public points does.

    With --people, or if the earlier release protects people, people are simulated: what is kept and measured of them,
    and how far counts are then from those of all records or split people.
    """
    from htf.forecasts.search import RUNS
    from htf.forecasts.simulation import Simulation
    from htf.privacy.epsilon import Epsilon

    aim = TargetOptions(**_those_of(TargetOptions, given))
    target = aim.read(epsilon, (like,))
    total = Epsilon.of(START if epsilon is None else epsilon)
    spec = _read_mechanism(mechanism, settings)
    written = take_written(given)
    options = PeopleOptions(**_those_of(PeopleOptions, given))
    source, stand_in, crowd = _read_stand_in(
        like, points_about, options, MapAsked(**given, written=written)
    )
    counted = None if crowd is None else crowd.counted
    usual = RUNS_USUAL if target is None else RUNS
    plan = Simulation(stand_in, spec, total, runs or usual, counted=counted)
    if target is not None:
        _show_target(source, plan, target, aim, as_json)
        return
    outcome = _run(plan)
    if as_json:
        say_json(json.dumps(_as_object(source, plan, outcome), indent=2, ensure_ascii=False))
    else:
        _show(source, plan, outcome)


@dataclass(frozen=True)
class MapAsked:
    """What the command line says about the map."""

    cells: str | None
    x_column: str
    y_column: str
    bounds: str | None
    around: str | None
    map_crs: str | None
    written: Written

    @property
    def is_placed(self) -> bool:
        return bool(self.bounds or self.around)

    def read(self) -> Domain:
        return read_domain(self.bounds, self.around, self.cells or CELLS, self.map_crs)


def _those_of(declaration: type, given: dict[str, Any]) -> dict[str, Any]:
    """Takes the values of a dataclass out of what the command line gave."""
    return {field.name: given.pop(field.name) for field in fields(declaration)}


def _read_stand_in(
    like: Path | None, points: int | None, options: PeopleOptions, map_asked: MapAsked
) -> tuple[Source, DataSet, Crowd | None]:
    if map_asked.map_crs is not None and not map_asked.bounds:
        raise InputError(f"--crs {map_asked.map_crs} is that of --bounds: give these too")
    if like is None:
        crowd = _read_crowd(options, None, points)
        source, stand_in = _city(points, map_asked)
    elif (release := _load_release(like, map_asked.is_placed)) is not None:
        crowd = _read_crowd(options, release, points)
        source, stand_in = _use_release(like, release, points, map_asked.cells, crowd)
    else:
        crowd = _read_crowd(options, None, points)
        columns = map_asked.x_column, map_asked.y_column
        source, stand_in = _use_points(like, points, columns, map_asked.read(), map_asked.written)
    if crowd is not None:
        source, stand_in = _with_people(source, stand_in, crowd)
    return source, stand_in, crowd


def _show_target(
    source: Source, plan: Simulation, target: Target, aim: TargetOptions, as_json: bool
) -> None:
    from htf.forecasts.population import Population
    from htf.forecasts.simulation import records_of
    from htf.privacy.protection import RECORDS

    quantity = RECORDS if plan.counted is None else plan.counted.quantity
    target.check_counted(quantity)
    found = search(plan, aim.places(target, plan.stand_in.domain), target)
    records = records_of(plan)
    who, people = "", {}
    if isinstance(plan.stand_in, Population):
        who = f"{plan.stand_in.people:,} {_units(plan)} with about "
        people = {"people": plan.stand_in.people}
    rough = (CITY_IS_ROUGH,) if source.kind == "city" else ()
    answer = Answer(
        plan,
        found,
        quantity,
        {"kind": source.kind, "name": source.name, "records": records, **people},
        f"{source.words}: {who}{records:,} records",
        (*source.notes, *rough, CAVEAT),
    )
    show(answer, aim, as_json=as_json)


@dataclass(frozen=True)
class Source:
    """The origin of the stand-in, in words, with notes about it."""

    kind: str
    name: str
    words: str
    notes: tuple[str, ...] = ()


def _read_mechanism(mechanism: str | None, settings: tuple[str, ...]) -> Spec:
    from htf.forecasts.specs import Spec
    from htf.publication import DEFAULT_MECHANISM

    return Spec.of(mechanism or DEFAULT_MECHANISM, read_settings(settings))


def _city(points: int | None, asked: MapAsked) -> tuple[Source, DataSet]:
    from htf.forecasts.datasets import CITY, City

    number, words = points or POINTS, "the made-up city of `htf demo`"
    if asked.is_placed:
        stretched = City(CITY, number, map=asked.read())
        return Source("city", CITY, f"{words}, stretched over the bounds"), stretched
    made_up = City(CITY, number, read_cells(asked.cells or CELLS))
    _ = made_up.domain  # refuses an impossible grid now
    return Source("city", CITY, words), made_up


def _read_crowd(
    options: PeopleOptions, release: Release | None, points: int | None
) -> Crowd | None:
    crowd = read_crowd(options, release)
    if crowd is not None and points is not None:
        raise InputError(
            "where people are simulated, the number of points follows from --people and --records-per-person: leave out "
            f"--points-about {points}"
        )
    return crowd


def _load_release(path: Path, placed: bool) -> Release | None:
    """None if the file must be one of public points."""
    from htf.release.file import is_release
    from htf.release.release import Release

    if not is_file(path):
        raise InputError(f"--like: there is no file {path}")
    if is_release(path):
        if placed:
            raise InputError(
                f"{path} is a release and has its own map: leave out --bounds and --around"
            )
        release = Release.load(path)
        if release.protection.weight is not None:
            raise InputError(
                f"{path} counts {release.counted}, and sums cannot be forecast yet: give a release of records or split people"
            )
        warn_if_not_private(release)
        return release
    if not placed:
        raise InputError(
            f"{path} is not a release, so it must be a file of public points: say where their map is, with "
            "--bounds W,S,E,N or --around LAT,LON,KM"
        )
    return None


def _use_points(
    path: Path,
    points: int | None,
    columns: tuple[str, str],
    domain: Domain,
    written: Written,
) -> tuple[Source, DataSet]:
    from htf.forecasts.standins import PublicPoints

    warning = MUST_BE_PUBLIC.format(path.name)
    console(stderr=True).print(f"WARNING: {warning}", style="bold yellow", markup=False)
    source = Source("points", path.name, f"the points of {path.name}", (warning,))
    return source, PublicPoints(path.stem, path.resolve(), columns, domain, points, written)


def _use_release(
    path: Path, release: Release, points: int | None, cells: str | None, crowd: Crowd | None
) -> tuple[Source, DataSet]:
    from htf.forecasts.population import places_wanted
    from htf.forecasts.standins import PastRelease

    grid: tuple[int, ...] | None = None
    if cells is not None:
        read = read_cells(cells)
        grid = (read,) * release.domain.dimensions if isinstance(read, int) else read
    words = f"the release {path.name} ({release.mechanism}, epsilon {release.epsilon})"
    if crowd is not None:
        points = places_wanted(crowd.people)
    return Source("release", path.name, words, (SCATTERED,)), PastRelease(
        path.stem, release, points, grid, of_leaves=crowd is not None
    )


def _with_people(source: Source, places: DataSet, crowd: Crowd) -> tuple[Source, DataSet]:
    from htf.forecasts.population import Population

    people = Population(places.name, places, crowd.people, crowd.records)
    return replace(source, notes=(*source.notes, *crowd.notes)), people


def _run(plan: Simulation) -> Forecast:
    from htf.forecasts.simulation import simulate

    with progress_bar() as bar:
        task = bar.add_task("starting", total=None)

        def tell(done: int, total: int, label: str) -> None:
            bar.update(task, completed=done, total=total, description=label)

        return simulate(plan, tell)


def _as_object(source: Source, plan: Simulation, outcome: Forecast) -> dict[str, Any]:
    from htf.privacy.meaning import Meaning

    return {
        "simulation": True,
        "budget_spent": 0,
        "caveat": CAVEAT,
        "notes": list(source.notes),
        "stand_in": {
            "kind": source.kind,
            "name": source.name,
            "records": outcome.records,
            **({} if outcome.people is None else {"people": outcome.people}),
        },
        **({} if plan.counted is None else {"counted": outcome.counted}),
        "grid": list(plan.stand_in.domain.shape),
        "mechanism": plan.spec.mechanism,
        "parameters": plan.spec.parameters,
        "epsilon": str(plan.epsilon),
        "meaning": Meaning(plan.epsilon, plan.protection).to_dict(),
        "runs": plan.runs,
        "areas_asked_in_each_run": plan.bench.queries,
        "summary": [_in_words(area, outcome.quantity) for area in outcome.main.areas],
        "outlooks": [
            {**outlook.to_dict(), "error_compared": _compared(outcome, outlook)}
            for outlook in outcome.outlooks
        ],
    }


def _compared(outcome: Forecast, outlook: Outlook) -> float | None:
    return outcome.change(outlook) if outlook.areas else None


def _show(source: Source, plan: Simulation, outcome: Forecast) -> None:
    grid = " x ".join(map(str, plan.stand_in.domain.shape))
    screen = console()
    screen.print(
        f"What to expect of {plan.spec.label} at epsilon {plan.epsilon} on {grid} cells\n",
        style="bold",
        markup=False,
    )
    say_meaning(plan.epsilon, plan.protection, briefly=True)
    who = "" if outcome.people is None else f"{outcome.people:,} {_units(plan)} with about "
    screen.print(
        f"Simulated {_times(plan.runs)} on {source.words}: {who}{outcome.records:,} records. "
        f"Each time, {plan.bench.queries:,} areas of each kind were counted.",
        markup=False,
    )
    if outcome.people is not None:
        screen.print(
            f"Counted: {outcome.counted}. Errors are those against all {outcome.quantity}. "
            f"{explain_people(outcome.quantity)}".strip(),
            markup=False,
        )
    _show_areas(outcome.main.areas, outcome.quantity)
    for area in outcome.main.areas:
        if area.workload.at_records:
            screen.print(f"• {_in_words(area, outcome.quantity)}", markup=False)
    if outcome.people is not None:
        _show_parts(outcome)
    _show_budgets(outcome)
    for note in (*source.notes, CAVEAT):
        screen.print(note, markup=False)


def _units(plan: Simulation) -> str:
    """Who is simulated, not what is counted."""
    return different_people(None if plan.counted is None else plan.counted.per)


def _show_parts(outcome: Forecast) -> None:
    """Bias and noise apart, if there is any bias."""
    parts = [(area, area.biases, area.noises) for area in outcome.main.areas]
    rows = [
        (
            area.name,
            _rounded(float(bias.mean())),
            _rounded(float(noise.mean())),
            _rounded(area.error),
        )
        for area, bias, noise in parts
        if bias is not None and noise is not None
    ]
    console().print()
    if not any(bias is not None and bias.any() for _, bias, _ in parts):
        console().print("All of the error is noise: no record is dropped, so there is no bias.")
        return
    headers = (f"typical error, in {outcome.quantity}", ">bias", ">noise", ">both")
    show_table(headers, rows, "Where the error comes from")
    console().print(
        "The bias is the error of the exact counts of what is kept, multiplied as in the release. The noise is the rest. "
        "All three are medians, so they do not add up."
    )


def _show_areas(areas: Sequence[Area], quantity: str) -> None:
    from htf.forecasts.accuracy import show_number, show_value
    from htf.forecasts.simulation import RELATIVE_TO

    rows = [
        (
            area.name,
            f"{show_number(100 * area.share)} %",
            _rounded(area.count, 3),
            _with_spread(area.errors),
            _rounded(area.large_error),
            show_value(area.relative_errors),
        )
        for area in areas
    ]
    headers = (
        "area", ">share of map", ">true count", ">typical error", ">1 in 20 above", ">mean error, %",
    )  # fmt: skip
    show_table(headers, rows)
    console().print(
        f"Share and count are medians. The typical error is the median, in {quantity}; ± is the standard deviation "
        f"between releases. In the last column, {RELATIVE_TO}.\n"
    )


def _in_words(area: Area, quantity: str) -> str:
    """One sentence for readers who skip the table."""
    ratio = f" ({100 * area.error / area.count:.2g} %)" if area.count >= 1 else ""
    return (
        f"{_subject(area)}: off by about {_rounded(area.error)} of {_rounded(area.count, 3)} {quantity}"
        f"{ratio}; one in twenty by more than {_rounded(area.large_error)}."
    )


def _subject(area: Area) -> str:
    if area.workload.share is None:
        return "Rectangles of any size, anywhere"
    where = "around records" if area.workload.at_records else "anywhere"
    return f"Squares of {100 * area.workload.share:g} % of the map {where}{_size(area)}"


def _size(area: Area) -> str:
    if area.km is None:
        return ""
    if min(area.km) < 1:
        return f" ({' x '.join(_rounded(1000 * side) for side in area.km)} m)"
    return f" ({' x '.join(f'{side:.2g}' for side in area.km)} km)"


def _with_spread(values: FloatArray) -> str:
    mean = _rounded(float(values.mean()))
    return f"{mean} ± {_rounded(float(values.std(ddof=1)))}" if len(values) > 1 else mean


def _rounded(value: float, figures: int = 2) -> str:
    """Rounded to the few digits that a forecast can give."""
    text = f"{value:.{figures}g}"
    return text if abs(value) < 10 else f"{float(text):,.0f}"


def _show_budgets(outcome: Forecast) -> None:
    shown = [outlook for outlook in outcome.outlooks if outlook.areas]
    if len(shown) > 1:
        rows = [
            (same[0].name, *(_rounded(area.error) for area in same))
            for same in zip(*(outlook.areas for outlook in shown), strict=True)
        ]
        headers = (
            f"typical error, in {outcome.quantity}",
            *(f">epsilon {o.epsilon}" for o in shown),
        )
        console().print()
        show_table(headers, rows, "Errors with more budget, and with less")
    for outlook in outcome.outlooks:
        if outlook is outcome.main:
            continue
        if outlook.failure:
            effect = f"is not possible: {outlook.failure}"
        else:
            effect = f"makes typical errors about {outcome.change(outlook):.2g} times as large."
        console().print(f"Epsilon {outlook.epsilon} {effect}", markup=False)
    console().print()


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
