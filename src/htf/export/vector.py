"""Writes layers of polygons for GIS tools, each with the privacy statement of the release in it.

| ending | where the statement is |
| --- | --- |
| .geojson | members "description" and "htf-export" of the collection (RFC 7946, foreign members) |
| .gpkg, .fgb | metadata of the layer: DESCRIPTION and htf-export |
| .parquet | metadata of the schema: htf-export |
| .xlsx | a second sheet |
| .csv | a text file beside it: comments would break CSV |
"""

from __future__ import annotations

import errno
import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from htf.base.extras import need
from htf.errors import InputError
from htf.export.provenance import EXPORT, as_metadata, beside
from htf.export.qgis import STYLES, style_table
from htf.export.tables import CSV, SHEET, write_table
from htf.files import check_output, write_whole
from htf.frame.crs import CRS84

if TYPE_CHECKING:
    import pandas
    import pyarrow as pa
    from geopandas import GeoDataFrame

About = dict[str, Any]
# By default GeoJSON rounds to 7 places, a centimetre, but leaves may be smaller.
GEOJSON_PLACES = 10
PLAIN = (SHEET, CSV)  # without shapes


def write_layer(
    layer: GeoDataFrame, path: Path, about: About, name: str = "layer", *, overwrite: bool = False
) -> None:
    """Write a layer in the format of the file's ending, whole or not at all.

    `about` is the result of `htf.export.provenance.provenance`.
    """
    check_layer_name(path, overwrite=overwrite)
    write = WRITERS[path.suffix.lower()]
    write_whole(path, lambda new: write(layer, new, about, name), overwrite=overwrite)


def write_rows(
    table: Callable[[], pa.Table],
    layer: Callable[[], GeoDataFrame],
    path: Path,
    about: About,
    name: str,
    *,
    overwrite: bool = False,
) -> None:
    """Write a layer or, where the format has no shapes, its table, which needs neither a GIS package nor a map."""
    if path.suffix.lower() in PLAIN:
        write_table(table(), path, about, is_export=True, overwrite=overwrite)
    else:
        write_layer(layer(), path, about, name, overwrite=overwrite)


def check_layer_name(
    path: Path,
    others: Sequence[str] = (),
    *,
    overwrite: bool = False,
    inputs: Iterable[Path | None] = (),
) -> None:
    """Refuse a file that cannot be written, before any work. `others` are endings that the caller handles."""
    suffix = path.suffix.lower()
    if suffix not in (*WRITERS, *PLAIN):
        endings = ", ".join([*WRITERS, *PLAIN, *others])
        raise InputError(
            f"cannot tell the format of {path.name!r}: the name must end in one of {endings}"
        )
    for output in (path, beside(path)) if suffix == CSV else (path,):
        check_output(output, overwrite=overwrite, inputs=inputs)


def _write_parquet(layer: GeoDataFrame, path: Path, about: About, _: str) -> None:
    """Write with GeoPandas, which knows GeoParquet, and then add the metadata it has no argument for."""
    import pyarrow.parquet as pq

    buffer = BytesIO()
    layer.to_parquet(buffer, index=False, compression=None, write_covering_bbox=True)
    table = pq.read_table(buffer)
    metadata = {**table.schema.metadata, **as_metadata(EXPORT, about)}
    table = table.replace_schema_metadata(metadata)
    pq.write_table(table, path, compression="zstd")


def _write_geojson(layer: GeoDataFrame, path: Path, about: About, name: str) -> None:
    if layer.crs is None:
        raise InputError(
            "GeoJSON is in longitude and latitude by its standard, and this layer has no reference "
            "system to turn them from: write .gpkg or .csv"
        )
    members = {"type": "FeatureCollection", EXPORT: about}
    options = {
        "RFC7946": "YES",
        "COORDINATE_PRECISION": str(GEOJSON_PLACES),
        "DESCRIPTION": about["statement"],
        "NATIVE_DATA": json.dumps(members),
        "NATIVE_MEDIA_TYPE": "application/vnd.geo+json",
    }
    _write_by_gdal(layer.to_crs(CRS84), path, "GeoJSON", name, options)


def _write_geopackage(layer: GeoDataFrame, path: Path, about: About, name: str) -> None:
    geometry = _free_name("geom", layer)
    options = {
        "VERSION": "1.3",  # 1.4 is unknown to many tools
        "layer_metadata": _metadata(about),
        "FID": _free_name("fid", layer),
        "GEOMETRY_NAME": geometry,
    }
    style = style_table(layer, name, geometry)
    _write_by_gdal(_with_known_code(layer), path, "GPKG", name, options, style)


def _write_flatgeobuf(layer: GeoDataFrame, path: Path, about: About, name: str) -> None:
    # The index has no place for features without a geometry.
    index = "NO" if (layer.geometry.isna() | layer.geometry.is_empty).any() else "YES"
    options = {"layer_metadata": _metadata(about), "SPATIAL_INDEX": index}
    _write_by_gdal(_with_known_code(layer), path, "FlatGeobuf", name, options)


def _free_name(name: str, layer: GeoDataFrame) -> str:
    """A name for the format's own column that no column of the layer has; SQL ignores case."""
    taken = {str(column).casefold() for column in layer.columns}
    while name in taken:
        name = f"layer_{name}"
    return name


def _metadata(about: About) -> dict[str, str]:
    return {"DESCRIPTION": about["statement"], EXPORT: json.dumps(about)}


def _with_known_code(layer: GeoDataFrame) -> GeoDataFrame:
    """The layer with EPSG:4326, which every tool knows. These formats put longitude first for any code."""
    if layer.crs is not None and layer.crs.to_string() == CRS84:
        return layer.set_crs("EPSG:4326", allow_override=True)
    return layer


def _write_by_gdal(
    layer: GeoDataFrame,
    path: Path,
    driver: str,
    name: str,
    options: dict[str, Any],
    style: pandas.DataFrame | None = None,
) -> None:
    pyogrio = need(f"Writing {driver}", "pyogrio")

    try:
        with warnings.catch_warnings():
            # A map without a reference system is the curator's choice.
            warnings.filterwarnings("ignore", "'crs' was not provided")
            # GeoJSON has no infinite numbers: such an attribute of the analyst's is null there.
            warnings.filterwarnings("ignore", "NaN of Infinity value found")
            pyogrio.write_dataframe(layer, path, layer=name, driver=driver, **options)
            if style is not None:
                pyogrio.write_dataframe(
                    style, path, layer=STYLES, driver=driver, append=True, FID="id"
                )
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError) as error:
        raise OSError(errno.EIO, f"{error} (is the disk full?)") from None


WRITERS: dict[str, Callable[[Any, Path, About, str], None]] = {
    ".geojson": _write_geojson,
    ".fgb": _write_flatgeobuf,
    ".gpkg": _write_geopackage,
    ".parquet": _write_parquet,
}
