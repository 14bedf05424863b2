"""`htf demo`: the whole way, from points to a private map, on a city that does not exist."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from htf.cli.screen import progress_bar, show_interval, show_table
from htf.cli.types import WholeNumber
from htf.errors import InputError, MissingExtraError
from htf.files import write_whole

if TYPE_CHECKING:
    from htf.domain import FloatArray
    from htf.evaluation.synthetic import City
    from htf.release import Release

EPSILON = "0.5"
CELLS = 1024
# Shares of the map's width and height: west, south, east, north.
SAMPLE_BOXES = {
    "the whole map": (0.0, 0.0, 1.0, 1.0),
    "the middle quarter": (0.25, 0.25, 0.75, 0.75),
    "a tenth of the width, in the middle": (0.45, 0.45, 0.55, 0.55),
    "a small square, in the middle": (0.49, 0.49, 0.51, 0.51),
    "the north-west corner": (0.0, 0.8, 0.2, 1.0),
    "a strip along the southern edge": (0.0, 0.0, 1.0, 0.1),
}


@click.command()
@click.option(
    "--out",
    default="htf-demo",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the results.",
)
@click.option(
    "--points",
    type=WholeNumber(),
    default=1_000_000,
    show_default=True,
    help="Size of the made-up data.",
)
def demo(out: Path, points: int) -> None:
    """Release a made-up city, ask for counts beside the truth, and draw the map."""
    from htf.domain import Domain
    from htf.evaluation.synthetic import synthetic_city
    from htf.ingest.points import read_points
    from htf.publication import publish

    if points < 1:
        raise InputError(f"--points must be at least 1, got {points}")
    _make_folder(out)
    with progress_bar() as bar:
        task = bar.add_task("imagining a city", total=None)
        city = synthetic_city(points)
        domain = Domain.from_bounds(*city.domain_bounds, cells=CELLS)
        write_whole(out / "points.parquet", lambda path: _write_points(city, path))
        bar.update(task, description="counting points per cell")
        matrix = read_points(out / "points.parquet", domain)
        release = publish(
            matrix, EPSILON, progress=lambda label: bar.update(task, description=label)
        )
        release.save(out / "release.parquet")
        bar.update(task, description="drawing the map")
        picture = _draw(release, out / "map.png")
    _show_answers_beside_truth(city, release)
    _show_files(out, release, picture)


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {out}: {error.strerror}") from None


def _write_points(city: City, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"lon": city.x, "lat": city.y}), path, compression="zstd")


def _draw(release: Release, path: Path) -> str:
    """Where the picture is, or why there is none."""
    try:
        figure = release.plot()
    except MissingExtraError as error:
        return str(error)
    write_whole(path, lambda unfinished: figure.savefig(unfinished, format="png", dpi=150))
    return str(path)


def _show_answers_beside_truth(city: City, release: Release) -> None:
    boxes = _sample_boxes(release)
    answers = release.count(boxes).to_dicts()
    rows = []
    for name, box, answer in zip(SAMPLE_BOXES, boxes, answers, strict=True):
        truth = _true_count(city, box)
        error = abs(answer["count"] - truth) / max(truth, 20)
        interval = show_interval(answer)
        partial = f"{answer['partial']:.1%}"
        rows.append(
            (name, f"{truth:,}", f"{answer['count']:,.0f}", interval, partial, f"{error:.1%}")
        )
    headers = ("box", ">truth", ">released", ">95 % interval", ">partial", ">error")
    show_table(headers, rows, "Counts beside the truth, which may be shown since nobody lives here")


def _sample_boxes(release: Release) -> FloatArray:
    import numpy as np

    x, y = release.domain.axes
    low, size = np.array([x.low, y.low] * 2), np.array([x.high - x.low, y.high - y.low] * 2)
    boxes: FloatArray = low + np.array(list(SAMPLE_BOXES.values())) * size
    return boxes


def _true_count(city: City, box: FloatArray) -> int:
    west, south, east, north = box
    inside = (city.x >= west) & (city.x < east) & (city.y >= south) & (city.y < north)
    return int(inside.sum())


def _show_files(out: Path, release: Release, picture: str) -> None:
    west, south, east, north = _sample_boxes(release)[2]
    click.echo(f"The release ({len(release):,} boxes):  {out / 'release.parquet'}")
    click.echo(f"The map:                 {picture}")
    click.echo(f"The made-up points:      {out / 'points.parquet'}\n")
    click.echo("Try next:")
    htf = "htf" if shutil.which("htf") else sys.argv[0]  # as typed, where it is not on the path
    click.echo(f"  {htf} info {out / 'release.parquet'}")
    click.echo(f"  {htf} verify {out / 'release.parquet'}")
    box = f"{west:.4f},{south:.4f},{east:.4f},{north:.4f}"
    click.echo(f"  {htf} query {out / 'release.parquet'} --box {box}")
