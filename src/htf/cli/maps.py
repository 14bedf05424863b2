"""`htf map`: a release, or two, as a picture or as a map for a browser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from htf.cli.screen import overwrite_option, progress_bar, say, warn_if_not_private, where_option
from htf.cli.types import FileName
from htf.errors import InputError
from htf.files import check_output, write_whole
from htf.query.texts import read_where

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from htf.maps.comparison import Named


@dataclass(frozen=True)
class Order:
    """What was asked for."""

    output: Path
    axes: tuple[str, ...]
    where: dict[str, tuple[float, float]]
    by: str | None
    boxes: bool
    as_difference: bool
    style: str | None
    overwrite: bool


@click.command(name="map")
@click.argument("release_files", metavar="RELEASE [SECOND]", nargs=-1, type=FileName())
@click.option(
    "-o",
    "--output",
    required=True,
    type=FileName(),
    help="The file to write: .html, .png or .svg.",
)
@where_option
@click.option(
    "--axes",
    default="x,y",
    show_default=True,
    metavar="FIRST,SECOND",
    help="The two axes to draw, such as dest_x,dest_y.",
)
@click.option("--by", metavar="AXIS", help="A panel for each step of this axis, up to 24.")
@click.option("--boxes", is_flag=True, help="Add the outlines of the boxes.")
@click.option("--difference", is_flag=True, help="Of two releases: what the first has more of.")
@click.option(
    "--style",
    metavar="URL",
    help="For .html: a base map, a MapLibre style or tiles; the file then fetches it.",
)
@overwrite_option
def draw_map(
    release_files: tuple[Path, ...],
    output: Path,
    where: tuple[str, ...],
    axes: str,
    by: str | None,
    boxes: bool,
    difference: bool,
    style: str | None,
    overwrite: bool,
) -> None:
    """Draw a release as a map, axes that are not drawn being summed; or compare two.

    Places where the counts cannot be told from noise stay blank. An .html file is a map to pan and
    zoom, with counts and intervals; it works without a network.
    """
    drawn = tuple(name.strip() for name in axes.split(","))
    order = Order(output, drawn, read_where(where), by, boxes, difference, style, overwrite)
    write = _writer(output)
    _check(order, release_files)
    check_output(output, overwrite=overwrite, inputs=release_files)
    with progress_bar() as bar:
        task = bar.add_task("reading", total=None)
        maps = _load(release_files)
        bar.update(task, description="drawing the map")
        write(maps, order)
    shown = " and ".join(f"{len(one.release):,} boxes by {one.release.mechanism}" for one in maps)
    say(f"Wrote {output}: {shown}.")
    for one in maps:
        warn_if_not_private(one.release)


def _check(order: Order, files: Sequence[Path]) -> None:
    """What cannot be, said before anything is read."""
    from htf.maps.browser.document import check_style

    is_html = order.output.suffix.lower() == ".html"
    if len(files) not in (1, 2):
        raise InputError(f"a map is of one release or of two, got {len(files)}")
    if order.as_difference and len(files) == 1:
        raise InputError("--difference needs two releases, got one")
    if order.by is not None and (is_html or len(files) > 1):
        raise InputError("--by makes panels of one release, as .png or .svg")
    if order.as_difference and order.boxes and not is_html:
        raise InputError("a picture of a difference has no outlines of boxes: leave --boxes out")
    if order.style is not None and not is_html:
        raise InputError("--style is for a map for a browser: write .html")
    check_style(order.style)


def _load(files: Sequence[Path]) -> list[Named]:
    """By the names of the files; in full where they are the same."""
    from htf.maps.comparison import Named
    from htf.release.release import Release

    is_plain = len({path.stem for path in files}) == len(files)
    names = [path.stem if is_plain else str(path) for path in files]
    return [Named(Release.load(path), name) for path, name in zip(files, names, strict=True)]


def _figure(maps: Sequence[Named], order: Order) -> Figure:
    options: dict[str, Any] = {"axes": order.axes, "where": order.where}
    if len(maps) == 1:
        return maps[0].release.plot(**options, by=order.by, boxes=order.boxes)
    from htf.maps.plot_compare import plot_comparison, plot_difference

    if order.as_difference:
        return plot_difference(maps, **options)
    return plot_comparison(maps, **options, boxes=order.boxes)


def _write_picture(maps: Sequence[Named], order: Order) -> None:
    """The picture carries the privacy statement in its metadata too. The same release gives the same
    file: names within an SVG are not random, and it has no date."""
    kind = order.output.suffix.lower().removeprefix(".")
    figure = _figure(maps, order)
    from matplotlib import rc_context  # after `plot`, which says so where it is missing

    said: dict[str, Any] = {
        "Title": "; ".join(repr(one.release) for one in maps),
        "Description": "\n".join(one.release.statement for one in maps),
    }
    if kind == "svg":
        said["Date"] = None
    with rc_context({"svg.hashsalt": "htf"}):
        write_whole(
            order.output,
            lambda unfinished: figure.savefig(unfinished, format=kind, dpi=150, metadata=said),
            overwrite=order.overwrite,
        )


def _write_html(maps: Sequence[Named], order: Order) -> None:
    from htf.maps.browser.document import Wish, html_map

    wish = Wish(cast(tuple[str, str], order.axes), order.where, order.boxes, order.style)
    text = html_map(maps, wish, as_difference=order.as_difference)

    def write(unfinished: Path) -> None:
        unfinished.write_text(text, encoding="utf-8")

    write_whole(order.output, write, overwrite=order.overwrite)


# What writes a file, by the end of its name. Another kind of map is one more line.
WRITERS: dict[str, Callable[[Sequence[Named], Order], None]] = {
    ".html": _write_html,
    ".png": _write_picture,
    ".svg": _write_picture,
}


def _writer(output: Path) -> Callable[[Sequence[Named], Order], None]:
    writer = WRITERS.get(output.suffix.lower())
    if writer is None:
        raise InputError(f"a map is written as {' or '.join(WRITERS)}, got {output.name!r}")
    return writer
