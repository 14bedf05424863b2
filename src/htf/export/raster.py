"""A release as a raster: a cloud-optimised GeoTIFF of counts per pixel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from htf.base.extras import need
from htf.export.provenance import EXPORT, provenance
from htf.files import write_whole
from htf.frame.crs import CRS84
from htf.maps.views import View, view
from htf.query.where import Where
from htf.release.release import Release

RULE = (
    "Expected {quantity} of each pixel: the sum of the parts of the release, each by the share of it that lies "
    "in the pixel. Overviews are averages of pixels, not sums."
)


def write_raster(
    release: Release,
    path: Path,
    pixels: int | None = None,
    where: Where | None = None,
    *,
    overwrite: bool = False,
) -> View:
    """Write the counts of a view of the release, at most `pixels` per side, and return the view.

    Every pixel has a value, even if its count is below zero. NaN stands for no data, for tools that
    rotate or clip the raster.
    """
    rasterio = need("Writing a GeoTIFF", "rasterio")
    seen = view(release, where=where, cells=pixels)
    plain = RULE.format(quantity=release.quantity)
    rule = f"{plain} Summed: {seen.summed}." if seen.summed else plain
    about = provenance(release, rule)
    # The running sums of a view leave rounding errors where the count is 0.
    rounding = 1e-12 * np.abs(release.derived.parts.estimates).sum()
    counts = np.where(np.abs(seen.counts) > rounding, seen.counts, 0.0)
    rows = np.ascontiguousarray(counts.T[::-1], dtype=np.float32)  # north first

    def write(unfinished: Path) -> None:
        # We write the file ourselves: on a full disk GDAL raises an error that no public name catches.
        with rasterio.MemoryFile() as memory:
            with memory.open(**_profile(seen)) as file:
                file.write(rows, 1)
                file.set_band_description(1, "count")
                file.update_tags(1, units=f"{release.quantity} per pixel")
                file.update_tags(
                    TIFFTAG_IMAGEDESCRIPTION=about["statement"],
                    TIFFTAG_SOFTWARE=about["software"],
                    **{EXPORT: json.dumps(about)},
                )
            unfinished.write_bytes(memory.read())

    write_whole(path, write, overwrite=overwrite)
    return seen


def _profile(seen: View) -> dict[str, Any]:
    from affine import Affine

    x, y = seen.domain.axes
    crs = seen.domain.crs
    return {
        "driver": "COG",
        "width": x.cells,
        "height": y.cells,
        "count": 1,
        "dtype": "float32",
        "nodata": np.nan,
        # A raster has longitude first whatever the code says, and GeoTIFF knows no OGC:CRS84.
        "crs": "EPSG:4326" if crs == CRS84 else crs,
        "transform": Affine(x.cell_width, 0.0, x.low, 0.0, -y.cell_width, y.high),
        "compress": "DEFLATE",
        "predictor": 3,  # for floating-point numbers
        "overview_resampling": "AVERAGE",
    }
