"""`htf forecast`: the curator's first question, what error to expect, answered without the data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from htf.cli.curator import read_settings
from htf.cli.points import read_cells, read_domain
from htf.cli.screen import console, progress_bar, say_json, show_table, warn_if_not_private
from htf.cli.types import FileName, WholeNumber
from htf.errors import InputError
from htf.files import is_file

if TYPE_CHECKING:
    from htf.evaluation.datasets import DataSet
    from htf.evaluation.forecast import Area, Forecast, Outlook, Simulation
    from htf.evaluation.specs import Spec
    from htf.frame.domain import FloatArray

POINTS = 2_000_000
CELLS = "1024"
MOST_POINTS = 50_000_000
MUST_BE_PUBLIC = (
    "{} must be public and must NOT be the data to be released: choosing epsilon, a grid or a mechanism "
    "by those is not covered by the guarantee."
)
CAVEAT = (
    "A simulation: no budget was spent, and nothing was kept. The error of the real release depends on the "
    "real data, and will differ."
)
STREWN = (
    "Within the boxes of the release records were strewn at random, about as unevenly as its boxes differ. "
    "Real ones may cluster more, so real errors may be larger, the more so the larger its boxes are."
)


@click.command()
@click.option("--epsilon", required=True, help="Privacy budget to ask about.")
@click.option(
    "--cells", metavar="N|NX,NY", help="Grid cells.  [default: 1024, or those of the release]"
)
@click.option(
    "--points-about",
    type=WholeNumber(1, MOST_POINTS),
    metavar="N",
    help=f"Roughly how many points you have.  [default: {POINTS}, or as many as the stand-in has]",
)
@click.option(
    "--like",
    type=FileName(),
    metavar="RELEASE|FILE",
    help="Stand-in: an earlier release, or a file of PUBLIC points.  [default: a made-up city]",
)
@click.option("--x", "x_column", default="lon", show_default=True, help="Column of x in FILE.")
@click.option("--y", "y_column", default="lat", show_default=True, help="Column of y in FILE.")
@click.option("--bounds", metavar="W,S,E,N", help="Bounds of the map for FILE.")
@click.option("--around", metavar="LAT,LON,KM", help="Instead: a square of KM km around a point.")
@click.option("--mechanism", help="See `htf mechanisms`.  [default: that of `htf release`]")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A parameter of it.")
@click.option(
    "--runs",
    default=5,
    show_default=True,
    type=WholeNumber(1, 1000),
    help="Releases to simulate.",
)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def forecast(
    epsilon: str,
    cells: str | None,
    points_about: int | None,
    like: Path | None,
    x_column: str,
    y_column: str,
    bounds: str | None,
    around: str | None,
    mechanism: str | None,
    settings: tuple[str, ...],
    runs: int,
    as_json: bool,
) -> None:
    """Simulate what error to expect, before any budget is spent.

    The data to be released are not needed and must not be used: a made-up city stands in for them,
    or, with --like, an earlier release or a file of points that are public.
    """
    from htf.evaluation.forecast import Simulation
    from htf.privacy.epsilon import Epsilon

    total = Epsilon.of(epsilon)
    spec = _read_mechanism(mechanism, settings)
    if like is None:
        if bounds or around:
            raise InputError(
                "the made-up city has a map of its own: leave --bounds and --around out, or give "
                "--like FILE with public points"
            )
        source, stand_in = _city(points_about, cells)
    else:
        source, stand_in = _open_like(
            like, points_about, cells, (x_column, y_column), bounds, around
        )
    plan = Simulation(stand_in, spec, total, runs)
    found = _run(plan)
    if as_json:
        say_json(json.dumps(_as_object(source, plan, found), indent=2, ensure_ascii=False))
    else:
        _show(source, plan, found)


@dataclass(frozen=True)
class Source:
    """Where the stand-in comes from, in words, and what must be said about it."""

    kind: str
    name: str
    words: str
    notes: tuple[str, ...] = ()


def _read_mechanism(mechanism: str | None, settings: tuple[str, ...]) -> Spec:
    from htf.evaluation.specs import Spec
    from htf.mechanisms import make_mechanism
    from htf.publication import DEFAULT_MECHANISM

    name, chosen = mechanism or DEFAULT_MECHANISM, read_settings(settings)
    make_mechanism(name, chosen)  # names what is wrong; the bench's own floor `zero` is not one
    return Spec.of(name, chosen)


def _city(points: int | None, cells: str | None) -> tuple[Source, DataSet]:
    from htf.evaluation.datasets import CITY, City

    made_up = City(CITY, points or POINTS, read_cells(cells or CELLS))
    _ = made_up.domain  # a grid that cannot be is named now
    return Source("city", CITY, "the made-up city of `htf demo`"), made_up


def _open_like(
    path: Path,
    points: int | None,
    cells: str | None,
    columns: tuple[str, str],
    bounds: str | None,
    around: str | None,
) -> tuple[Source, DataSet]:
    from htf.evaluation.standins import PublicPoints
    from htf.release.file import is_release

    if not is_file(path):
        raise InputError(f"--like: there is no file {path}")
    placed = bool(bounds or around)
    if is_release(path):
        if placed:
            raise InputError(
                f"{path} is a release and has a map of its own: leave --bounds and --around out"
            )
        return _open_release(path, points, cells)
    if not placed:
        raise InputError(
            f"{path} is not a release, so it is taken for a file of public points: give their map, "
            "--bounds W,S,E,N or --around LAT,LON,KM"
        )
    domain = read_domain(bounds, around, cells or CELLS)
    warning = MUST_BE_PUBLIC.format(path.name)
    console(stderr=True).print(f"WARNING: {warning}", style="bold yellow", markup=False)
    source = Source("points", path.name, f"the points of {path.name}", (warning,))
    return source, PublicPoints(path.stem, path.resolve(), columns, domain, points)


def _open_release(path: Path, points: int | None, cells: str | None) -> tuple[Source, DataSet]:
    from htf.evaluation.standins import PastRelease
    from htf.release.release import Release

    release = Release.load(path)
    warn_if_not_private(release)
    grid: tuple[int, ...] | None = None
    if cells is not None:
        read = read_cells(cells)
        grid = (read,) * release.domain.dimensions if isinstance(read, int) else read
    words = f"the release {path.name} ({release.mechanism}, epsilon {release.epsilon})"
    return Source("release", path.name, words, (STREWN,)), PastRelease(
        path.stem, release, points, grid
    )


def _run(plan: Simulation) -> Forecast:
    from htf.evaluation.forecast import simulate

    with progress_bar() as bar:
        task = bar.add_task("starting", total=None)

        def tell(done: int, total: int, label: str) -> None:
            bar.update(task, completed=done, total=total, description=label)

        return simulate(plan, tell)


def _as_object(source: Source, plan: Simulation, found: Forecast) -> dict[str, Any]:
    return {
        "simulation": True,
        "budget_spent": 0,
        "caveat": CAVEAT,
        "notes": list(source.notes),
        "stand_in": {"kind": source.kind, "name": source.name, "records": found.records},
        "grid": list(plan.stand_in.domain.shape),
        "mechanism": plan.spec.mechanism,
        "parameters": plan.spec.parameters,
        "epsilon": str(plan.epsilon),
        "runs": plan.runs,
        "areas_asked_in_each_run": plan.bench.queries,
        "summary": [_in_words(area) for area in found.main.areas],
        "outlooks": [
            {**outlook.to_dict(), "error_compared": _compared(found, outlook)}
            for outlook in found.outlooks
        ],
    }


def _compared(found: Forecast, outlook: Outlook) -> float | None:
    return found.change(outlook) if outlook.areas else None


def _show(source: Source, plan: Simulation, found: Forecast) -> None:
    grid = " x ".join(map(str, plan.stand_in.domain.shape))
    screen = console()
    screen.print(
        f"What to expect of {plan.spec.label} at epsilon {plan.epsilon} on {grid} cells\n",
        style="bold",
        markup=False,
    )
    screen.print(
        f"Simulated {_times(plan.runs)} on {source.words}: {found.records:,} records. "
        f"Each time {plan.bench.queries:,} areas of each kind were asked for.",
        markup=False,
    )
    _show_areas(found.main.areas)
    for area in found.main.areas:
        if area.workload.at_records:
            screen.print(f"• {_in_words(area)}", markup=False)
    _show_budgets(found)
    for note in (*source.notes, CAVEAT):
        screen.print(note, markup=False)


def _show_areas(areas: Sequence[Area]) -> None:
    from htf.evaluation.forecast import RELATIVE_TO
    from htf.evaluation.summary import show_number, show_value

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
        "Share and count are medians. Typical error: the median, in records; ±: from run to run. In "
        f"the last column, {RELATIVE_TO}.\n"
    )


def _in_words(area: Area) -> str:
    """One sentence for a reader who skips the table."""
    ratio = f" ({100 * area.error / area.count:.2g} %)" if area.count >= 1 else ""
    return (
        f"{_subject(area)}: off by about {_rounded(area.error)} of {_rounded(area.count, 3)} records"
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
    """To as many figures as a forecast is worth."""
    text = f"{value:.{figures}g}"
    return text if abs(value) < 10 else f"{float(text):,.0f}"


def _show_budgets(found: Forecast) -> None:
    shown = [outlook for outlook in found.outlooks if outlook.areas]
    if len(shown) > 1:
        rows = [
            (same[0].name, *(_rounded(area.error) for area in same))
            for same in zip(*(outlook.areas for outlook in shown), strict=True)
        ]
        headers = ("typical error, in records", *(f">epsilon {o.epsilon}" for o in shown))
        show_table(headers, rows, "\nWhat more budget buys, and less costs")
    for outlook in found.outlooks:
        if outlook is found.main:
            continue
        if outlook.failure:
            told = f"is not possible: {outlook.failure}"
        else:
            told = f"makes typical errors about {found.change(outlook):.2g} times as large."
        console().print(f"Epsilon {outlook.epsilon} {told}", markup=False)
    console().print()


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
