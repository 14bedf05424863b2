"""Commands of the curator, who has the data: `htf release`, `htf mechanisms`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from htf.cli.budget import check_charge, open_budget, tell_charge
from htf.cli.screen import console, progress_bar, show_table, warn_if_not_private
from htf.errors import InputError
from htf.files import check_writable
from htf.query.texts import read_numbers

if TYPE_CHECKING:
    from htf.curator.budget import BudgetFile
    from htf.curator.noise import NoiseSource
    from htf.domain import Domain
    from htf.epsilon import Epsilon
    from htf.mechanisms.base import Mechanism
    from htf.prior import Prior
    from htf.release import Release


@click.command()
@click.argument("points", type=click.Path(path_type=Path))
@click.option("--x", "x_column", default="lon", show_default=True, help="Column of the x axis.")
@click.option("--y", "y_column", default="lat", show_default=True, help="Column of the y axis.")
@click.option("--bounds", metavar="W,S,E,N", help="Bounds of the map, chosen without the data.")
@click.option("--around", metavar="LAT,LON,KM", help="Instead: a square of KM km around a point.")
@click.option("--cells", default="1024", show_default=True, metavar="N|NX,NY", help="Grid cells.")
@click.option("--epsilon", required=True, help="Privacy budget of the release.")
@click.option("--mechanism", help="See `htf mechanisms`.  [default: htf]")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A parameter of it.")
@click.option(
    "--prior", metavar="FILE", help="Public weights, points or release; never these points."
)
@click.option(
    "--noise",
    default="opendp",
    show_default=True,
    metavar="opendp|fast|seeded:N",
    help="Where noise comes from; seeded is for tests and not private.",
)
@click.option(
    "--ledger", type=click.Path(path_type=Path), help="Charge this file; see `htf budget`."
)
@click.option("--dataset", metavar="NAME", help="Name of the points' budget in it.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="The release.")
def release(
    points: Path,
    x_column: str,
    y_column: str,
    bounds: str | None,
    around: str | None,
    cells: str,
    epsilon: str,
    mechanism: str | None,
    settings: tuple[str, ...],
    prior: str | None,
    noise: str,
    ledger: Path | None,
    dataset: str | None,
    output: Path,
) -> None:
    """Publish the points of a CSV or Parquet file as a differentially private map.

    Points outside the bounds (the upper edges are outside), missing, NaN or infinite are left out
    and not reported.
    """
    from htf.curator.noise import noise_from_text
    from htf.epsilon import Epsilon
    from htf.mechanisms import make_mechanism
    from htf.publication import DEFAULT_MECHANISM

    domain = read_domain(bounds, around, cells)
    total = Epsilon.of(epsilon)
    chosen = make_mechanism(mechanism or DEFAULT_MECHANISM, read_settings(settings))
    source = noise_from_text(noise)
    check_writable(output)
    chosen.check_prior(prior)
    budget = open_budget(ledger, dataset, output)
    if budget is not None:
        check_charge(budget, total, chosen, source)
    columns = (x_column, y_column)
    known = None if prior is None else _read_prior(prior, points, domain, columns)
    made = _make_release(points, domain, columns, total, chosen, known, source, output, budget)
    click.echo(
        f"Wrote {output}: {len(made):,} boxes by {made.mechanism}, epsilon {made.epsilon} "
        "for each record."
    )
    tell_charge(budget, made)
    warn_if_not_private(made)


def _read_prior(source: str, points: Path, domain: Domain, columns: tuple[str, str]) -> Prior:
    """Before the data, so that what is wrong with it is said before any budget is spent."""
    from filecmp import cmp

    from htf.ingest.prior import read_prior, split_key

    path, _ = split_key(source)
    if path.is_file() and points.is_file() and cmp(path, points, shallow=False):
        raise InputError(
            f"--prior {path.name} is the data to be released: a prior must be public and made without them"
        )
    return read_prior(source, domain, columns)


def _make_release(
    points: Path,
    domain: Domain,
    columns: tuple[str, str],
    epsilon: Epsilon,
    mechanism: Mechanism,
    prior: Prior | None,
    noise: NoiseSource,
    output: Path,
    budget: BudgetFile | None,
) -> Release:
    """Read, publish and write, with a progress bar that tells labels and no numbers of the data."""
    from htf.ingest.points import read_points
    from htf.publication import publish

    with progress_bar() as bar:
        task = bar.add_task(f"reading {points.name}", total=1.0)

        def tell(label: str) -> None:
            bar.update(task, description=label)

        matrix = read_points(
            points, domain, columns, progress=lambda share: bar.update(task, completed=share)
        )
        bar.update(task, total=None)
        made = publish(
            matrix,
            epsilon,
            mechanism,
            prior=prior,
            noise=noise,
            ledger=budget,
            label=output.name,
            progress=tell,
        )
        tell(f"writing {output.name}")
        if budget is None:
            made.save(output)
        else:
            budget.save(made, output)
    return made


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def mechanisms(as_json: bool) -> None:
    """List the mechanisms, their parameters with defaults, and where they come from."""
    from htf.mechanisms import registry

    found = [mechanism.describe() for mechanism in registry().values()]
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    for mechanism in found:
        console().print(f"[bold]{mechanism['name']}[/bold]  {mechanism['summary']}")
        console().print(f"  {mechanism['citation']}")
        rows = [(p["name"], p["default"], p["help"]) for p in mechanism["parameters"]]
        show_table(("parameter", ">default", "meaning"), rows)


def read_domain(bounds: str | None, around: str | None, cells: str) -> Domain:
    from htf.domain import Domain

    grid = read_cells(cells)
    if (bounds is None) == (around is None):
        raise InputError("give the map's place: either --bounds W,S,E,N or --around LAT,LON,KM")
    if bounds is not None:
        west, south, east, north = read_numbers(bounds, "--bounds", 4, "W,S,E,N")
        return Domain.from_bounds(west, south, east, north, grid)
    latitude, longitude, side = read_numbers(str(around), "--around", 3, "LAT,LON,KM")
    return Domain.square(latitude, longitude, side, grid)


def read_cells(text: str) -> int | tuple[int, int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) == 1:
        return numbers[0]
    if len(numbers) == 2:
        return numbers[0], numbers[1]
    raise InputError(f"--cells takes N or NX,NY, whole numbers, got {text!r}")


def read_settings(settings: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"--set takes NAME=VALUE, got {setting!r}")
        if name in found:
            raise InputError(f"--set {name} is given twice")
        found[name] = value
    return found
