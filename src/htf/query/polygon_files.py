"""Files of polygons: any format that GDAL reads, what to call each polygon, and what may be a mistake."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from htf.base.extras import need
from htf.errors import InputError
from htf.files import is_file, is_folder

if TYPE_CHECKING:
    import geopandas

    from htf.query.answer import Answer

PARQUET = (".parquet", ".geoparquet", ".pq")
POLYGONS, ZONES = "polygons", "zones"
FORMATS = "GeoJSON, GeoParquet, GeoPackage, FlatGeobuf and shapefiles (also zipped)"
MOST_NAMED = 5


def read_layer(path: Path, what: str = POLYGONS) -> geopandas.GeoDataFrame:
    """The only layer in a file of polygons, or of zones: these are of a public map, which may have other layers too."""
    geopandas = need(f"Reading {what}", "geopandas", "pyogrio")
    if is_folder(path):
        raise InputError(
            f"{path} is a folder: name the file in it, such as the .shp of a shapefile"
        )
    if not is_file(path):
        raise InputError(f"there is no file {path}")
    try:
        if path.suffix.lower() in PARQUET:
            frame = geopandas.read_parquet(path)
        else:
            # Warnings are of corners that are not closed, and the like: outlines are repaired.
            with warnings.catch_warnings(action="ignore"):
                frame = geopandas.read_file(path, layer=_only_layer(path, what))
    except InputError:
        raise
    except Exception as error:  # whatever the reader makes of a file from outside
        # GDAL adds advice about its own tools.
        reason = str(error).strip().partition("\n")[0].partition("; It might help")[0].rstrip(".")
        raise InputError(
            f"cannot read {what} from {path}: {reason or type(error).__name__:.300}. The formats are {FORMATS}"
        ) from None
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise InputError(f"{path} has two columns {str(twice[0])!r}: rename one of them")
    return frame


def _only_layer(path: Path, what: str) -> str:
    """The only layer with geometry. A GeoPackage from QGIS, for one, may hold tables of styles too."""
    import pyogrio

    layers = [(str(name), str(kind)) for name, kind in pyogrio.list_layers(path)]
    names = [name for name, kind in layers if kind != "None"]
    if what == ZONES:
        names = [name for name, kind in layers if "Polygon" in kind or kind == "Unknown"]
    if not names:
        missing = (
            "polygons: zones are areas" if what == ZONES else "geometry, but polygons are needed"
        )
        raise InputError(f"{path} has no {missing}")
    if len(names) > 1:
        of = " of polygons" if what == ZONES else ""
        raise InputError(
            f"{path} has several layers{of} ({', '.join(names)}): save the one to count as a separate file"
        )
    return names[0]


def label_column(frame: geopandas.GeoDataFrame, by: str | None, path: Path) -> str | None:
    """The column that names the polygons. By default it is the only column of text."""
    columns = [str(name) for name in frame.columns if name != frame.geometry.name]
    if by is None:
        texts = [name for name in columns if _is_text(frame[name])]
        return texts[0] if len(texts) == 1 else None
    if by not in columns:
        names = ", ".join(map(repr, columns)) or "none"
        raise InputError(f"{path} has no column {by!r}; its columns are {names}")
    return by


def labels_of(frame: geopandas.GeoDataFrame, by: str | None) -> list[str]:
    """The values of that column, or row numbers counted from 0."""
    if by is None:
        return [str(number) for number in range(len(frame))]
    pairs = zip(frame[by].tolist(), frame[by].isna(), strict=True)
    return ["" if missing else str(value) for value, missing in pairs]


def _is_text(column: Any) -> bool:
    values = column.dropna()
    return len(values) > 0 and all(isinstance(value, str) for value in values)


def odd_polygons(frame: geopandas.GeoDataFrame, answer: Answer) -> list[str]:
    """What may be a mistake, in sentences: an answer of 0 looks like any other."""
    import numpy as np
    import shapely

    asked, inside, shapes = answer.asked, answer.inside, frame.geometry
    assert asked is not None
    labels = asked.texts()[0][1]
    missing = (shapes.isna() | shapes.is_empty).to_numpy()
    crossed = ~(shapes.is_valid.to_numpy() | missing)
    outside = (inside == 0) & (shapely.area(shapes.to_numpy()) > 0) & inside.any()
    notes = []
    for what, rows in (
        ("Repaired, because their outlines cross themselves", crossed),
        ("Counted as 0, because they have no outline", missing),
        ("Counted as 0, because they lie off the map", outside),
    ):
        if rows.any():
            numbers = np.flatnonzero(rows)
            names = ", ".join(labels[row] or f"row {row}" for row in numbers[:MOST_NAMED])
            more = ", …" if len(numbers) > MOST_NAMED else ""
            notes.append(f"{what}: {len(numbers):,} of {len(frame):,} polygons ({names}{more}).")
    if not missing.all() and not inside.any():
        reason = (
            "their file names no reference system, so the map's was assumed"
            if shapes.crs is None
            else f"their file says that they are in {shapes.crs.name}"
        )
        notes.append(f"No polygon lies on the map ({asked.domain.crs}); {reason}.")
    return notes
