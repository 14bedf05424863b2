"""`htf export`: a release as a layer or a raster for other tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import htf
from htf.base import numerals
from htf.base.options import option
from htf.cli import declared
from htf.cli.options import OUTPUT, OVERWRITE, RELEASE, WHERE
from htf.cli.questions import ask
from htf.cli.screen import say, warn_if_not_private, working
from htf.errors import InputError
from htf.files import check_output
from htf.query.texts import read_numbers

if TYPE_CHECKING:
    from htf.query.where import Where

H3 = "h3:"  # before a resolution
DEFAULT_GRID = (16, 16)  # of a series
RASTERS = (".tif", ".tiff")
TILES = ".pmtiles"
PICTURES = (*RASTERS, TILES)  # no rows
MOST_PIXELS = 8192  # per side; drawing that many takes about 3 GB of memory


def read_grid(text: str) -> tuple[int, int] | int:
    """The columns and rows of a grid, or the resolution of hexagons."""
    if text.startswith(H3):
        try:
            return numerals.whole(text.removeprefix(H3))
        except ValueError:
            raise InputError(
                f"--grid takes {H3}N, N being a resolution from 0 to 15, got {numerals.shown(text)}"
            ) from None
    columns, rows = read_numbers(text, "--grid", 2, "NX,NY")
    if not (columns.is_integer() and rows.is_integer()):  # which NaN and infinity are not either
        raise InputError(f"--grid takes NX,NY, whole numbers of columns and rows, got {text!r}")
    return int(columns), int(rows)


@dataclass(frozen=True, kw_only=True)
class Exporting:
    """The options of `htf export`."""

    output: Path = OUTPUT
    pixels: int | None = option(
        "For a .tif: pixels per side, at most, and never more than cells.  [default: 1024]",
        within=(1, MOST_PIXELS),
    )
    max_zoom: int | None = option(
        "For .pmtiles: the deepest zoom.  [default: where all is shown]", within=(0, 24)
    )
    grid: tuple[int, int] | int | None = option(
        "A grid of NX x NY rectangles, or H3 hexagons of resolution N, instead of leaves.",
        "NX,NY|h3:N",
        read=read_grid,
    )
    where: Where = WHERE
    overwrite: bool = OVERWRITE

    @property
    def suffix(self) -> str:
        return self.output.suffix.lower()

    @property
    def is_zones(self) -> bool:
        return self.grid is not None

    def check(self, release_file: Path) -> None:
        """Refuse options that do not go together, and an output that cannot be written."""
        from htf.export.vector import check_layer_name

        name = self.output.name
        if self.is_zones and self.suffix in RASTERS:
            raise InputError(
                f"zones are a layer, but {name} is a raster: write another format, such as .gpkg"
            )
        if self.suffix == TILES and (self.is_zones or self.pixels is not None):
            raise InputError(
                f"{name} holds leaves and squares: --grid is for layers, such as .gpkg, and --pixels is for .tif"
            )
        is_layer = self.suffix not in PICTURES
        if is_layer and (self.pixels is not None or (self.where and not self.is_zones)):
            raise InputError(
                f"--pixels is for .tif, and --where is for .tif and zones. {name} holds leaves: select rows by their bounds "
                "along every axis"
            )
        if self.max_zoom is not None and self.suffix != TILES:
            raise InputError(f"--max-zoom is for {TILES}, and {name} has no zooms")
        check = partial(check_layer_name, others=PICTURES) if is_layer else check_output
        check(self.output, overwrite=self.overwrite, inputs=[release_file])

    def write(self, release: htf.Release, step: Callable[[str], None]) -> str:
        """Write a release, and say what the file holds."""
        if self.is_zones:
            return self.write_zones(release)
        if self.suffix in RASTERS:
            return self.write_raster(release)
        return (
            self.write_tiles(release, step) if self.suffix == TILES else self.write_leaves(release)
        )

    def write_zones(self, release: htf.Release) -> str:
        from htf.export.answers import export_answer

        answer = release.ask(self.tiling(release.domain))
        export_answer(answer, self.output, overwrite=self.overwrite)
        return f"{len(answer):,} zones"

    def write_raster(self, release: htf.Release) -> str:
        from htf.export.raster import write_raster

        seen = write_raster(release, self.output, self.pixels, self.where, overwrite=self.overwrite)
        columns, rows = seen.domain.shape
        return f"{columns:,} x {rows:,} pixels"

    def write_tiles(self, release: htf.Release, step: Callable[[str], None]) -> str:
        from htf.export.tiles import write_tiles

        made = write_tiles(
            release,
            self.output,
            self.where,
            self.max_zoom,
            overwrite=self.overwrite,
            tell=lambda zoom: step(f"writing {self.output.name}, zoom {zoom}"),
        )
        less = "" if made.shows_all else ", less than the release knows"
        return f"{made.tiles:,} tiles down to zoom {made.zoom}{less}"

    def write_leaves(self, release: htf.Release) -> str:
        import pyarrow as pa

        from htf.export.layers import LEAVES, leaf_columns, leaf_layer, leaves_rule
        from htf.export.provenance import provenance
        from htf.export.vector import write_rows

        about = provenance(release, leaves_rule(release.quantity))
        write_rows(
            lambda: pa.table(leaf_columns(release)),
            lambda: leaf_layer(release),
            self.output,
            about,
            LEAVES,
            overwrite=self.overwrite,
        )
        return f"{len(release):,} leaves"

    def write_series(self, series: htf.Series) -> tuple[str, htf.Release]:
        """A long table: a row for each period and zone of a tiling, or for each cell of a map of zones or trips between them.
        Returns what it holds, and the last release."""
        from htf.export.answers import export_answer

        if self.suffix in PICTURES:
            raise InputError(
                f"a series is exported as a table or a layer, which {self.output.name} is not: give one of its releases"
            )
        if series.domain.has_map:
            question = self.tiling(series.domain)
        elif self.is_zones:
            raise InputError(
                f"{series.folder} is a series of zones, which are exported as they are: leave out --grid"
            )
        else:
            question = htf.Question.by(
                *series.domain.names, where=self.where
            )  # every cell by its names
        answer = ask(f"counting {self.output.name}", lambda: series.ask(question))
        export_answer(answer, self.output, series.plan.told, overwrite=self.overwrite)
        number = len(answer.releases)
        return f"{number:,} periods of {len(answer) // number:,} rows.", answer.releases[-1]

    def tiling(self, domain: htf.Domain) -> htf.Question:
        """Hexagons or rectangles that tile the map."""

        grid = DEFAULT_GRID if self.grid is None else self.grid
        if isinstance(grid, int):
            return htf.Question.polygons(htf.h3_zones(domain, grid), where=self.where)
        columns, rows = grid
        zones = htf.grid_zones(domain, columns=columns, rows=rows)
        return htf.Question.polygons(zones, where=self.where)


@declared.command()
def export(release_file: Path = RELEASE, asked: Exporting = declared.record_of(Exporting)) -> None:
    """Turn a release into a layer, a raster or map tiles for GIS tools. The ending sets the format.

    .geojson, .fgb, .gpkg, .parquet (GeoParquet), .xlsx and .csv hold the leaves of the release, with count,
    std_error, low and high (the interval), density per km², the bounds along every axis, and what is counted. .tif is a
    cloud-optimised GeoTIFF of expected counts per pixel, and .pmtiles an archive of vector tiles for web maps; further axes
    are summed, or cut by --where. Each file carries the privacy statement; for a .csv it is in a text file beside it. With --grid a
    layer holds these zones, cut at the edge of the map, so that their counts add up to the release's.

    Of the folder of a series, the file is a long table: a row for each period and zone of --grid, or of a
    grid of 16 rectangles along each side. A series of zones has a row for each period and cell.
    """
    from htf.series.plan import is_series

    asked.check(release_file)
    if is_series(release_file):
        said, last = asked.write_series(htf.Series(release_file))
    else:
        last = htf.Release.load(release_file)
        with working(f"writing {asked.output.name}") as step:
            said = f"{asked.write(last, step)}, epsilon {last.epsilon}."
    say(f"Wrote {asked.output}: {said}")
    warn_if_not_private(last)
