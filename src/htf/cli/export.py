"""`htf export`: a release as a layer or a raster for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from htf.base import numerals
from htf.cli.options import output_option, overwrite_option, release_argument, where_option
from htf.cli.screen import progress_bar, say, warn_if_not_private
from htf.cli.types import WholeNumber
from htf.errors import InputError
from htf.files import check_output
from htf.query.texts import read_numbers, read_where

if TYPE_CHECKING:
    from rich.progress import Progress

    from htf.frame.domain import Domain
    from htf.query.question import Question
    from htf.query.where import Where
    from htf.release.release import Release

H3 = "h3:"  # before a resolution
DEFAULT_GRID = "16,16"  # of a series
RASTERS = (".tif", ".tiff")
TILES = ".pmtiles"
MOST_PIXELS = 8192  # per side; drawing that many takes about 3 GB of memory


@click.command()
@release_argument
@output_option
@click.option(
    "--pixels",
    type=WholeNumber(1, MOST_PIXELS),
    help="For a .tif: pixels per side, at most, and never more than cells.  [default: 1024]",
)
@click.option(
    "--max-zoom",
    type=WholeNumber(0, 24),
    help="For .pmtiles: the deepest zoom.  [default: where all is shown]",
)
@click.option(
    "--grid",
    metavar="NX,NY|h3:N",
    help="A grid of NX x NY rectangles, or H3 hexagons of resolution N, instead of leaves.",
)
@where_option
@overwrite_option
def export(
    release_file: Path,
    output: Path,
    pixels: int | None,
    max_zoom: int | None,
    grid: str | None,
    where: tuple[str, ...],
    overwrite: bool,
) -> None:
    """Turn a release into a layer, a raster or map tiles for GIS tools. The ending sets the format.

    .geojson, .fgb, .gpkg, .parquet (GeoParquet), .xlsx and .csv hold the leaves of the release, with count,
    std_error, low and high (the interval), density per km², the bounds along every axis, and what is counted. .tif is a
    cloud-optimised GeoTIFF of expected counts per pixel, and .pmtiles an archive of vector tiles for web maps; further axes
    are summed, or cut by --where. Each file carries the privacy statement; for a .csv it is in a text file beside it. With --grid a
    layer holds these zones, cut at the edge of the map, so that their counts add up to the release's.

    Of the folder of a series, the file is a long table: a row for each period and zone of --grid, or of a
    grid of 16 rectangles along each side. A series of zones has a row for each period and cell.
    """
    from htf.release.release import Release
    from htf.series.plan import is_series

    is_zones = grid is not None
    _check_export(output, pixels, grid, where)
    if max_zoom is not None and output.suffix.lower() != TILES:
        raise InputError(f"--max-zoom is for {TILES}, and {output.name} has no zooms")
    _check_output(output, release_file, overwrite)
    ranges = read_where(where)
    if is_series(release_file):
        _export_series(release_file, output, grid, ranges, overwrite)
        return
    release = Release.load(release_file)
    with progress_bar() as bar:
        bar.add_task(f"writing {output.name}", total=None)
        if is_zones:
            content = _write_zones(release, output, grid, ranges, overwrite)
        elif output.suffix.lower() in RASTERS:
            content = _write_raster(release, output, pixels, ranges, overwrite)
        elif output.suffix.lower() == TILES:
            content = _write_tiles(release, output, max_zoom, ranges, overwrite, bar)
        else:
            content = _write_leaves(release, output, overwrite)
    say(f"Wrote {output}: {content}, epsilon {release.epsilon}.")
    warn_if_not_private(release)


def _check_export(
    output: Path,
    pixels: int | None,
    grid: str | None,
    where: tuple[str, ...],
) -> None:
    is_zones = grid is not None
    if output.suffix.lower() in RASTERS:
        if is_zones:
            raise InputError(
                f"zones are a layer, but {output.name} is a raster: write another format, such as .gpkg"
            )
        return
    if output.suffix.lower() == TILES:
        if is_zones or pixels is not None:
            raise InputError(
                f"{output.name} holds leaves and squares: --grid is for layers, such as .gpkg, and "
                "--pixels is for .tif"
            )
        return
    if pixels is not None or (where and not is_zones):
        raise InputError(
            f"--pixels is for .tif, and --where is for .tif and zones. {output.name} holds leaves: select "
            "rows by their bounds along every axis"
        )


def _check_output(output: Path, release_file: Path, overwrite: bool) -> None:
    from htf.export.vector import check_layer_name

    if output.suffix.lower() in (*RASTERS, TILES):
        check_output(output, overwrite=overwrite, inputs=[release_file])
    else:
        check_layer_name(output, (*RASTERS, TILES), overwrite=overwrite, inputs=[release_file])


def _write_raster(
    release: Release,
    output: Path,
    pixels: int | None,
    where: Where,
    overwrite: bool,
) -> str:
    from htf.export.raster import write_raster

    seen = write_raster(release, output, pixels, where, overwrite=overwrite)
    columns, rows = seen.domain.shape
    return f"{columns:,} x {rows:,} pixels"


def _write_tiles(
    release: Release,
    output: Path,
    max_zoom: int | None,
    where: Where,
    overwrite: bool,
    bar: Progress,
) -> str:
    from htf.export.tiles import write_tiles

    (task,) = bar.task_ids
    made = write_tiles(
        release,
        output,
        where,
        max_zoom,
        overwrite=overwrite,
        tell=lambda zoom: bar.update(task, description=f"writing {output.name}, zoom {zoom}"),
    )
    less = "" if made.shows_all else ", less than the release knows"
    return f"{made.tiles:,} tiles down to zoom {made.zoom}{less}"


def _write_leaves(release: Release, output: Path, overwrite: bool) -> str:
    import pyarrow as pa

    from htf.export.layers import LEAVES, leaf_columns, leaf_layer, leaves_rule
    from htf.export.provenance import provenance
    from htf.export.vector import write_rows

    about = provenance(release, leaves_rule(release.quantity))
    write_rows(
        lambda: pa.table(leaf_columns(release)),
        lambda: leaf_layer(release),
        output,
        about,
        LEAVES,
        overwrite=overwrite,
    )
    return f"{len(release):,} leaves"


def _write_zones(
    release: Release,
    output: Path,
    grid: str | None,
    where: Where,
    overwrite: bool,
) -> str:
    from htf.export.answers import export_answer

    answer = release.ask(_tiling(release.domain, str(grid), where))
    export_answer(answer, output, overwrite=overwrite)
    return f"{len(answer):,} zones"


def _export_series(
    folder: Path,
    output: Path,
    grid: str | None,
    where: Where,
    overwrite: bool,
) -> None:
    """A long table: a row for each period and zone of a tiling, or for each cell of a map of zones or trips between them."""
    from htf.cli.questions import ask
    from htf.export.answers import export_answer
    from htf.query.question import Question
    from htf.series.series import Series

    if output.suffix.lower() in (*RASTERS, TILES):
        raise InputError(
            f"a series is exported as a table or a layer, which {output.name} is not: give one of its releases"
        )
    opened = Series(folder)
    if opened.domain.has_map:
        question = _tiling(opened.domain, grid or DEFAULT_GRID, where)
    elif grid is not None:
        raise InputError(
            f"{folder} is a series of zones, which are exported as they are: leave out --grid"
        )
    else:
        question = Question.by(*opened.domain.names, where=where)  # every cell by its names
    answer = ask(f"counting {output.name}", lambda: opened.ask(question))
    export_answer(answer, output, opened.plan.told, overwrite=overwrite)
    number = len(answer.releases)
    say(f"Wrote {output}: {number:,} periods of {len(answer) // number:,} rows.")
    warn_if_not_private(answer.releases[-1])


def _tiling(domain: Domain, grid: str, where: Where) -> Question:
    """Hexagons or rectangles that tile the map."""
    from htf.query.question import Question
    from htf.query.tilings import grid_zones, h3_zones

    if grid.startswith(H3):
        return Question.polygons(h3_zones(domain, _read_resolution(grid)), where=where)
    columns, rows = _read_grid(grid)
    return Question.polygons(grid_zones(domain, columns=columns, rows=rows), where=where)


def _read_resolution(text: str) -> int:
    try:
        return numerals.whole(text.removeprefix(H3))
    except ValueError:
        raise InputError(
            f"--grid takes {H3}N, N being a resolution from 0 to 15, got {numerals.shown(text)}"
        ) from None


def _read_grid(text: str) -> tuple[int, int]:
    columns, rows = read_numbers(text, "--grid", 2, "NX,NY")
    if not (columns.is_integer() and rows.is_integer()):  # which NaN and infinity are not either
        raise InputError(f"--grid takes NX,NY, whole numbers of columns and rows, got {text!r}")
    return int(columns), int(rows)
