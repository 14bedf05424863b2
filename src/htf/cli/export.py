"""`htf export`: a release as a layer or a raster for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from htf.base.options import option
from htf.cli.declared import from_signature
from htf.cli.options import OUTPUT, OVERWRITE, RELEASE, WHERE
from htf.cli.screen import progress_bar, say, warn_if_not_private
from htf.errors import InputError
from htf.files import check_output
from htf.query.texts import read_numbers, read_where

if TYPE_CHECKING:
    from rich.progress import Progress

    from htf.frame.domain import Domain
    from htf.query.question import Question
    from htf.query.where import Where
    from htf.release.release import Release

DEFAULT_GRID = "16,16"  # of a series
RASTERS = (".tif", ".tiff")
TILES = ".pmtiles"
MOST_PIXELS = 8192  # per side; drawing that many takes about 3 GB of memory


@click.command()
@from_signature
def export(
    release_file: Path = RELEASE,
    output: Path = OUTPUT,
    pixels: int | None = option(
        "For a .tif: pixels per side, at most, and never more than cells.  [default: 1024]",
        within=(1, MOST_PIXELS),
    ),
    max_zoom: int | None = option(
        "For .pmtiles: the deepest zoom.  [default: where all is shown]", within=(0, 24)
    ),
    resolution: int | None = option("H3 hexagons instead of leaves.", flag="--h3", within=(0, 15)),
    grid: str | None = option("A grid of NX x NY rectangles instead of leaves.", "NX,NY"),
    where: tuple[str, ...] = WHERE,
    overwrite: bool = OVERWRITE,
) -> None:
    """Turn a release into a layer, a raster or map tiles for GIS tools. The ending sets the format.

    .geojson, .fgb, .gpkg, .parquet (GeoParquet), .xlsx and .csv hold the leaves of the release, with count,
    std_error, low and high (the interval), density per km², the bounds along every axis, and what is counted. .tif is a
    cloud-optimised GeoTIFF of expected counts per pixel, and .pmtiles an archive of vector tiles for web maps; further axes
    are summed, or cut by --where. Each file carries the privacy statement; for a .csv it is in a text file beside it. With --h3 or --grid a
    layer holds these zones, cut at the edge of the map, so that their counts add up to the release's.

    Of the folder of a series, the file is a long table: a row for each period and zone of --h3, of --grid, or of a
    grid of 16 rectangles along each side. A series of zones has a row for each period and cell.
    """
    from htf.release.release import Release
    from htf.series.plan import is_series

    is_zones = resolution is not None or grid is not None
    _check_export(output, pixels, resolution, grid, where)
    if max_zoom is not None and output.suffix.lower() != TILES:
        raise InputError(f"--max-zoom is for {TILES}, and {output.name} has no zooms")
    _check_output(output, release_file, overwrite)
    ranges = read_where(where)
    if is_series(release_file):
        _export_series(release_file, output, resolution, grid, ranges, overwrite)
        return
    release = Release.load(release_file)
    with progress_bar() as bar:
        bar.add_task(f"writing {output.name}", total=None)
        if is_zones:
            content = _write_zones(release, output, resolution, grid, ranges, overwrite)
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
    resolution: int | None,
    grid: str | None,
    where: tuple[str, ...],
) -> None:
    if resolution is not None and grid is not None:
        raise InputError("give --h3 or --grid, not both")
    is_zones = resolution is not None or grid is not None
    if output.suffix.lower() in RASTERS:
        if is_zones:
            raise InputError(
                f"zones are a layer, but {output.name} is a raster: write another format, such as .gpkg"
            )
        return
    if output.suffix.lower() == TILES:
        if is_zones or pixels is not None:
            raise InputError(
                f"{output.name} holds leaves and squares: --h3 and --grid are for layers, such as .gpkg, and "
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
    from htf.export.tables import CSV, SHEET, write_table
    from htf.export.vector import write_layer

    about = provenance(release, leaves_rule(release.quantity))
    if output.suffix.lower() in (CSV, SHEET):  # which need neither a GIS package nor a map
        table = pa.table(leaf_columns(release))
        write_table(table, output, about, is_export=True, overwrite=overwrite)
    else:
        write_layer(leaf_layer(release), output, about, LEAVES, overwrite=overwrite)
    return f"{len(release):,} leaves"


def _write_zones(
    release: Release,
    output: Path,
    resolution: int | None,
    grid: str | None,
    where: Where,
    overwrite: bool,
) -> str:
    from htf.export.answers import export_answer

    answer = release.ask(_tiling(release.domain, resolution, str(grid), where))
    export_answer(answer, output, overwrite=overwrite)
    return f"{len(answer):,} zones"


def _export_series(
    folder: Path,
    output: Path,
    resolution: int | None,
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
        question = _tiling(opened.domain, resolution, grid or DEFAULT_GRID, where)
    elif resolution is not None or grid is not None:
        raise InputError(
            f"{folder} is a series of zones, which are exported as they are: leave out --h3 and --grid"
        )
    else:
        question = Question.by(*opened.domain.names, where=where)  # every cell by its names
    answer = ask(f"counting {output.name}", lambda: opened.ask(question))
    export_answer(answer, output, opened.plan.told, overwrite=overwrite)
    number = len(answer.releases)
    say(f"Wrote {output}: {number:,} periods of {len(answer) // number:,} rows.")
    warn_if_not_private(answer.releases[-1])


def _tiling(domain: Domain, resolution: int | None, grid: str, where: Where) -> Question:
    """Hexagons or rectangles that tile the map."""
    from htf.query.question import Question
    from htf.query.tilings import grid_zones, h3_zones

    if resolution is not None:
        return Question.polygons(h3_zones(domain, resolution), where=where)
    columns, rows = _read_grid(grid)
    return Question.polygons(grid_zones(domain, columns=columns, rows=rows), where=where)


def _read_grid(text: str) -> tuple[int, int]:
    columns, rows = read_numbers(text, "--grid", 2, "NX,NY")
    if not (columns.is_integer() and rows.is_integer()):  # which NaN and infinity are not either
        raise InputError(f"--grid takes NX,NY, whole numbers of columns and rows, got {text!r}")
    return int(columns), int(rows)
