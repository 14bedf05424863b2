"""`htf map`: one or two releases, or a series, as a picture or as a map for a browser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from htf.cli.options import overwrite_option, where_option
from htf.cli.screen import progress_bar, say, warn_if_not_private
from htf.cli.types import FileName
from htf.errors import InputError
from htf.files import check_output, write_whole
from htf.query.texts import read_where

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from htf.maps.comparison import Named
    from htf.query.where import Where
    from htf.release.release import Release
    from htf.series.series import Series


@dataclass(frozen=True)
class MapRequest:
    """The options of the command."""

    output: Path
    axes: tuple[str, ...]
    where: Where
    by: str | None
    level: str | None
    boxes: bool
    as_difference: bool
    distinct: bool
    style: str | None
    title: str | None
    basemap: bool | Path
    overwrite: bool


@click.command(name="map")
@click.argument("release_files", metavar="RELEASE [SECOND] | SERIES", nargs=-1, type=FileName())
@click.option(
    "-o",
    "--output",
    required=True,
    type=FileName(),
    help="File to write: .html, .png, .svg or .pdf.",
)
@where_option
@click.option(
    "--axes",
    default="x,y",
    show_default=True,
    metavar="FIRST,SECOND",
    help="The two axes to draw, e.g. dest_x,dest_y.",
)
@click.option(
    "--by",
    metavar="AXIS",
    help="Draw one panel per step or name of this axis, at most 24.",
)
@click.option(
    "--level", metavar="LEVEL", help="Level of zones, e.g. district. [default: the lowest]"
)
@click.option("--boxes", is_flag=True, help="Add the outlines of the leaves.")
@click.option("--difference", is_flag=True, help="Draw the first release minus the second.")
@click.option(
    "--distinct",
    is_flag=True,
    help="Draw the table of different people in the boxes of a fixed grid, if the release has one.",
)
@click.option(
    "--style",
    metavar="URL",
    help="For .html: a base map (a MapLibre style or tiles), which the page then downloads.",
)
@click.option("--title", metavar="TEXT", help="A title above the map.")
@click.option(
    "--basemap",
    type=FileName(),
    help="For .html: a .pmtiles file of vector tiles, such as streets. The page carries those around its map.",
)
@click.option(
    "--no-basemap",
    is_flag=True,
    help="Leave out water, borders and names of places.",
)
@overwrite_option
def draw_map(
    release_files: tuple[Path, ...],
    output: Path,
    where: tuple[str, ...],
    axes: str,
    by: str | None,
    level: str | None,
    boxes: bool,
    difference: bool,
    distinct: bool,
    style: str | None,
    title: str | None,
    basemap: Path | None,
    no_basemap: bool,
    overwrite: bool,
) -> None:
    """Draw a release as a map, compare two, or go through a series. Axes that are not drawn are summed.

    Places stay blank where counts cannot be distinguished from noise. An .html file is a map to pan and
    zoom, with counts and intervals. It works offline.

    A release of zones is drawn by zones. Trips between zones are lines; `--where zone=NAME` draws where trips from
    there go, `--where dest_zone=NAME` where trips to there come from.

    A series, the folder that `htf series` made, is a page with a slider through its periods and their changes, or a
    picture with a panel for each of the latest 24.
    """
    drawn = tuple(name.strip() for name in axes.split(","))
    request = MapRequest(
        output=output,
        axes=drawn,
        where=read_where(where),
        by=by,
        level=level,
        boxes=boxes,
        as_difference=difference,
        distinct=distinct,
        style=style,
        title=title,
        basemap=_read_basemap(basemap, no_basemap, style, output),
        overwrite=overwrite,
    )
    write = _writer(output)
    if is_one_series(release_files):
        draw_series(release_files[0], request)
        return
    _check(request, release_files)
    check_output(output, overwrite=overwrite, inputs=release_files)
    with progress_bar() as bar:
        task = bar.add_task("reading", total=None)
        maps = _load(release_files, level)
        bar.update(task, description="drawing the map")
        write(maps, request)
    say(f"Wrote {output}: {_shown(maps, request)}.")
    for one in maps:
        warn_if_not_private(one.release)


def _read_basemap(
    basemap: Path | None, no_basemap: bool, style: str | None, output: Path
) -> bool | Path:
    """Which base map is wanted. An archive that cannot be drawn is refused before anything is read."""
    if basemap is None:
        return not no_basemap
    for what, is_given in {"--no-basemap": no_basemap, "--style": style is not None}.items():
        if is_given:
            raise InputError(f"--basemap and {what} exclude each other: leave one out")
    if output.suffix.lower() != ".html":
        raise InputError("--basemap is for maps in a browser: write .html, or leave it out")
    from htf.maps.browser.street_tiles import Archive

    Archive(basemap).close()
    return basemap


def _shown(maps: Sequence[Named], request: MapRequest) -> str:
    if request.distinct:
        return f"{len(maps[0].release.count_distinct()):,} boxes of different people"
    return " and ".join(f"{len(one.release):,} leaves by {one.release.mechanism}" for one in maps)


def _check_distinct(request: MapRequest, files: Sequence[Path]) -> None:
    """The table has a fixed grid over the first two axes."""
    given = {
        "a second release": len(files) > 1,
        "--difference": request.as_difference,
        "--by": request.by is not None,
        "--where": bool(request.where),
        "--axes": request.axes != ("x", "y"),
    }
    for what, is_given in given.items():
        if is_given:
            raise InputError(
                "--distinct draws the table of different people of one release, on its own grid over the first two axes: "
                f"leave out {what}"
            )


def _check(request: MapRequest, files: Sequence[Path]) -> None:
    """Refuse what is impossible before anything is read."""
    from htf.maps.browser.document import check_style

    is_html = request.output.suffix.lower() == ".html"
    if len(files) not in (1, 2):
        raise InputError(f"a map shows one release or two, got {len(files)}")
    if request.distinct:
        _check_distinct(request, files)
    if request.as_difference and len(files) == 1:
        raise InputError("--difference needs two releases, got one")
    if request.by is not None and (is_html or len(files) > 1):
        raise InputError("--by draws panels of one release, as .png, .svg or .pdf")
    if request.as_difference and request.boxes and not is_html:
        raise InputError("a picture of a difference shows no outlines: leave out --boxes")
    if request.style is not None and not is_html:
        raise InputError("--style is for maps in a browser: write .html")
    check_style(request.style)


def _load(files: Sequence[Path], level: str | None) -> list[Named]:
    """Releases with the names of their files, or with full paths if the names are the same. With a level, the zones of a
    map that is inside of some."""
    from htf.maps.comparison import Named
    from htf.release.release import Release

    is_plain = len({path.stem for path in files}) == len(files)
    names = [path.stem if is_plain else str(path) for path in files]
    releases = [Release.load(path) for path in files]
    if level is not None:
        releases = [one.zones or one for one in releases]
    return [Named(one, name) for one, name in zip(releases, names, strict=True)]


def _figure(maps: Sequence[Named], request: MapRequest) -> Figure:
    if request.distinct:
        from htf.maps.plot_distinct import plot_distinct

        return plot_distinct(maps[0].release, boxes=request.boxes)
    options: dict[str, Any] = {
        "axes": request.axes,
        "where": request.where,
        "level": request.level,
    }
    if len(maps) == 1:
        return maps[0].release.plot(**options, by=request.by, boxes=request.boxes)
    from htf.maps.plot_compare import plot_comparison, plot_difference

    if request.as_difference:
        return plot_difference(maps, **options)
    return plot_comparison(maps, **options, boxes=request.boxes)


def _write_picture(maps: Sequence[Named], request: MapRequest) -> None:
    from htf.maps.plot_basemap import add_basemap

    figure = _figure(maps, request)
    if request.basemap:
        add_basemap(figure)
    _save_figure(figure, [one.release for one in maps], request)


def _save_figure(figure: Figure, releases: Sequence[Release], request: MapRequest) -> None:
    """Write a picture with the privacy statement in its metadata."""
    from htf.base.figures import add_title, save_picture

    kind = request.output.suffix.lower().removeprefix(".")
    title = request.title or "; ".join(repr(one) for one in releases)
    words = "\n".join(dict.fromkeys(one.statement for one in releases))
    add_title(figure, request.title)
    write_whole(
        request.output,
        lambda unfinished: save_picture(figure, unfinished, kind, title, words),
        overwrite=request.overwrite,
    )


def _write_html(maps: Sequence[Named], request: MapRequest) -> None:
    from htf.maps.browser.document import Wish, html_distinct, html_map

    axes = cast(tuple[str, str], request.axes)
    wish = Wish(
        axes,
        request.where,
        request.boxes,
        request.style,
        request.level,
        request.title,
        request.basemap,
    )
    if request.distinct:
        text = html_distinct(maps[0], wish)
    else:
        text = html_map(maps, wish, as_difference=request.as_difference)
    _save_text(text, request)


def _save_text(text: str, request: MapRequest) -> None:
    def write(unfinished: Path) -> None:
        unfinished.write_text(text, encoding="utf-8")

    write_whole(request.output, write, overwrite=request.overwrite)


def is_one_series(files: Sequence[Path]) -> bool:
    """Whether the command is about a series; an error if it is about something else too."""
    from htf.series.plan import is_series

    found = [path for path in files if is_series(path)]
    if found and len(files) > 1:
        raise InputError(
            f"{found[0]} is a series, which is drawn alone: name the files of releases in it to compare them"
        )
    return bool(found)


def draw_series(folder: Path, request: MapRequest) -> None:
    """A series as a page, or as small multiples."""
    from htf.series.series import Series

    is_html = request.output.suffix.lower() == ".html"
    series = Series(folder)
    _check_series(request, is_html, of_zones=series.plan.of_zones)
    files = [one.path for one in series.released]
    check_output(request.output, overwrite=request.overwrite, inputs=files)
    with progress_bar() as bar:
        bar.add_task("drawing the series", total=None)
        if is_html:
            _write_series_page(series, request)
        else:
            _write_series_picture(series, request)
    say(f"Wrote {request.output}: {len(series.periods)} {series.plan.period}s.")
    for period in series.periods:
        warn_if_not_private(series.release(period))


def _check_series(request: MapRequest, is_html: bool, *, of_zones: bool) -> None:
    """Refuse what a series is not drawn with."""
    if of_zones and is_html:
        raise InputError(
            "a page of a series needs a map, and this one is of zones: draw a picture such as .png, or a page of one of "
            "its releases"
        )
    given = {
        "--difference (the page has a switch for changes)": request.as_difference,
        "--by": request.by is not None,
        "--level": request.level is not None and not of_zones,
        "--where": bool(request.where) and of_zones,
        "--distinct": request.distinct,
        "--boxes": request.boxes and not is_html,
        "--style": request.style is not None and not is_html,
    }
    for what, is_given in given.items():
        if is_given:
            kind = "page" if is_html else "picture"
            raise InputError(f"a {kind} of a series is drawn without {what}: leave it out")


def _write_series_page(series: Series, request: MapRequest) -> None:
    from htf.maps.browser.document import Wish
    from htf.maps.browser.series_document import html_series

    axes = cast(tuple[str, str], request.axes)
    wish = Wish(
        axes,
        request.where,
        request.boxes,
        request.style,
        title=request.title,
        basemap=request.basemap,
    )
    _save_text(html_series(series, wish), request)


def _write_series_picture(series: Series, request: MapRequest) -> None:
    from htf.maps.plot_series import plot_series

    axes = cast(tuple[str, str], request.axes)
    figure = plot_series(series, axes=axes, where=request.where, level=request.level)
    _save_figure(figure, [series.release(period) for period in series.periods], request)


# By the ending of the file's name.
WRITERS: dict[str, Callable[[Sequence[Named], MapRequest], None]] = {
    ".html": _write_html,
    ".png": _write_picture,
    ".svg": _write_picture,
    ".pdf": _write_picture,
}


def _writer(output: Path) -> Callable[[Sequence[Named], MapRequest], None]:
    writer = WRITERS.get(output.suffix.lower())
    if writer is None:
        raise InputError(f"a map is a {' or '.join(WRITERS)} file, got {output.name!r}")
    return writer
