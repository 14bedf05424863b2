"""`htf map`: a picture of a release."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from htf.cli.screen import (
    progress_bar,
    read_where,
    release_argument,
    warn_if_not_private,
    where_option,
)
from htf.errors import InputError
from htf.files import check_writable, write_whole

if TYPE_CHECKING:
    from htf.release import Release


@click.command(name="map")
@release_argument
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    help="The file to write: .png or .svg.",
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
def draw_map(
    release_file: Path, output: Path, where: tuple[str, ...], axes: str, by: str | None, boxes: bool
) -> None:
    """Draw a release as a map, axes that are not drawn being summed.

    Places where the counts cannot be told from noise stay blank.
    """
    from htf.release import Release

    write = _writer(output)
    check_writable(output)
    drawn = tuple(name.strip() for name in axes.split(","))
    options = {"axes": drawn, "where": read_where(where), "by": by, "boxes": boxes}
    release = Release.load(release_file)
    with progress_bar() as bar:
        bar.add_task("drawing the map", total=None)
        write(release, output, options)
    click.echo(f"Wrote {output}: {len(release):,} boxes by {release.mechanism}.")
    warn_if_not_private(release)


def _write_picture(release: Release, output: Path, options: dict[str, Any]) -> None:
    """The picture carries the privacy statement in its metadata too. The same release gives the same
    file: names within an SVG are not random, and it has no date."""
    kind = output.suffix.lower().removeprefix(".")
    figure = release.plot(**options)
    from matplotlib import rc_context  # after `plot`, which says so where it is missing

    said: dict[str, Any] = {"Title": repr(release), "Description": release.statement}
    if kind == "svg":
        said["Date"] = None
    with rc_context({"svg.hashsalt": "htf"}):
        write_whole(
            output,
            lambda unfinished: figure.savefig(unfinished, format=kind, dpi=150, metadata=said),
        )


# What writes a file, by the end of its name. Another kind of map is one more line.
WRITERS: dict[str, Callable[[Release, Path, dict[str, Any]], None]] = {
    ".png": _write_picture,
    ".svg": _write_picture,
}


def _writer(output: Path) -> Callable[[Release, Path, dict[str, Any]], None]:
    writer = WRITERS.get(output.suffix.lower())
    if writer is None:
        raise InputError(f"a map is written as {' or '.join(WRITERS)}, got {output.name!r}")
    return writer
