"""`htf demo`: the whole way from points to a private map, with a city that does not exist."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import htf
from htf.base.options import option
from htf.cli import declared
from htf.cli.options import MOST_POINTS
from htf.cli.screen import say, show_notes, show_table, working
from htf.cli.types import Folder
from htf.errors import MissingExtraError, OutputError
from htf.estimation.level import LEVEL_TEXT
from htf.files import check_output, make_folder, write_whole
from htf.query.answer_texts import show_count, show_interval

if TYPE_CHECKING:
    from htf.frame.domain import FloatArray
    from htf.synthetic.city import CityPoints

EPSILON = "0.5"
CELLS = 1024
POINTS, RELEASE, MAP = "points.parquet", "release.parquet", "map.png"
MADE_UP = b"htf-demo"  # in the metadata of the points: marks a folder as ours
# Shares of the map's width and height: west, south, east, north.
SAMPLE_BOXES = {
    "the whole map": (0.0, 0.0, 1.0, 1.0),
    "the middle quarter": (0.25, 0.25, 0.75, 0.75),
    "a tenth of the width, in the middle": (0.45, 0.45, 0.55, 0.55),
    "a small square, in the middle": (0.49, 0.49, 0.51, 0.51),
    "the north-west corner": (0.0, 0.8, 0.2, 1.0),
    "a strip along the southern edge": (0.0, 0.0, 1.0, 0.1),
}


@declared.command()
def demo(
    out: Folder = option("Folder for the results.", default="htf-demo"),
    points: int = option("Number of made-up points.", default=1_000_000, within=(1, MOST_POINTS)),
    overwrite: bool = option("Replace the results of an earlier `htf demo`."),
) -> None:
    """Release a made-up city, compare counts with the truth, and draw the map."""

    make_folder(out)
    _check_folder(out, overwrite)
    with working("imagining a city") as step:
        city = htf.synthetic_city(points)
        domain = htf.Domain.from_bounds(*city.domain_bounds, cells=CELLS)
        write_whole(out / POINTS, lambda path: _write_points(city, path), overwrite=overwrite)
        step("counting records per cell")
        matrix = htf.read_points(out / POINTS, domain)
        release = htf.publish(matrix, EPSILON, progress=step)
        release.save(out / RELEASE, overwrite=overwrite)
        step("drawing the map")
        picture = _draw(release, out / MAP, overwrite)
    _show_answers_beside_truth(city, release)
    _show_files(out, release, picture)


def _check_folder(out: Path, overwrite: bool) -> None:
    """Replace only what an earlier demo wrote: anyone's files may have these names."""
    existing = [name for name in (POINTS, RELEASE, MAP) if os.path.lexists(out / name)]
    if existing and overwrite and not _is_made_up(out / POINTS):
        raise OutputError(
            f"cannot write {out / existing[0]}: this version's `htf demo` did not make that folder. "
            "Give another --out"
        )
    for name in (POINTS, RELEASE, MAP):
        check_output(out / name, overwrite=overwrite, by_release=name == RELEASE)


def _is_made_up(path: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return MADE_UP in (pq.read_schema(path).metadata or {})
    except (pa.ArrowException, OSError):
        return False


def _write_points(city: CityPoints, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"lon": city.x, "lat": city.y}, metadata={MADE_UP: b"made-up points"})
    pq.write_table(table, path, compression="zstd")


def _draw(release: htf.Release, path: Path, overwrite: bool) -> str:
    """Returns where the picture is, or why there is none."""
    try:
        figure = release.plot()
    except MissingExtraError as error:
        return str(error)
    write_whole(
        path,
        lambda unfinished: figure.savefig(unfinished, format="png", dpi=150),
        overwrite=overwrite,
    )
    return str(path)


def _show_answers_beside_truth(city: CityPoints, release: htf.Release) -> None:
    boxes = _sample_boxes(release)
    found = release.count(boxes)
    answers = found.to_dicts()
    rows = []
    for name, box, answer in zip(SAMPLE_BOXES, boxes, answers, strict=True):
        truth = _true_count(city, box)
        error = abs(answer["count"] - truth) / max(truth, 20)
        interval = show_interval(answer)
        partial = f"{answer['partial']:.1%}"
        rows.append(
            (name, f"{truth:,}", show_count(answer["count"]), interval, partial, f"{error:.1%}")
        )
    headers = ("box", ">truth", ">released", f">{LEVEL_TEXT} interval", ">partial", ">error")
    show_table(
        headers,
        rows,
        f"Counts of {release.quantity} beside the truth, which may be shown because nobody lives here",
    )
    show_notes(found, answers)


def _sample_boxes(release: htf.Release) -> FloatArray:
    import numpy as np

    x, y = release.domain.axes
    low, size = np.array([x.low, y.low] * 2), np.array([x.high - x.low, y.high - y.low] * 2)
    boxes: FloatArray = low + np.array(list(SAMPLE_BOXES.values())) * size
    return boxes


def _true_count(city: CityPoints, box: FloatArray) -> int:
    west, south, east, north = box
    inside = (city.x >= west) & (city.x < east) & (city.y >= south) & (city.y < north)
    return int(inside.sum())


def _show_files(out: Path, release: htf.Release, picture: str) -> None:
    west, south, east, north = _sample_boxes(release)[2]
    say(f"The release ({len(release):,} leaves): {out / RELEASE}")
    say(f"The map:                 {picture}")
    say(f"The made-up points:      {out / POINTS}\n")
    say("Try next:")
    command = "htf" if shutil.which("htf") else sys.argv[0]  # as typed, where it is not on the path
    say(f"  {command} info {out / RELEASE}")
    say(f"  {command} verify {out / RELEASE}")
    box = f"{west:.4f},{south:.4f},{east:.4f},{north:.4f}"
    say(f"  {command} query {out / RELEASE} --box {box}")
