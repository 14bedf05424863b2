"""Points given as geometries, and coordinates of another reference system. Sensitive.

Functions that the engine calls on whole columns compute both: shapely reads well-known binary, and
pyproj projects.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from ibis.expr.types import FloatingValue, Value
from numpy.typing import NDArray

from htf.base.extras import need
from htf.base.processes import once_per_process
from htf.errors import InputError
from htf.frame.crs import CRS84, name_of_crs, parse_crs, transformer
from htf.frame.domain import FloatArray
from htf.ingest.columns import OF_GEOMETRY
from htf.ingest.engines import ARROW
from htf.ingest.expressions import as_number

GEO_KEY = b"geo"
POINT_BYTES = 21  # byte order, kind, x, y
LITTLE_ENDIAN_POINT = b"\x01\x01\x00\x00\x00"


def read_geo_metadata(path: Path) -> tuple[str | None, str | None]:
    """The column of points of a GeoParquet file and its reference system; (None, None) for other files."""
    text = (pq.read_schema(path).metadata or {}).get(GEO_KEY)
    if text is None:
        return None, None
    said = json.loads(text)
    column = said["primary_column"]
    about = said["columns"][column]
    kinds = set(about.get("geometry_types", []))
    if kinds - {"Point", "Point Z"}:
        raise InputError(
            f"{path.name} holds {', '.join(sorted(kinds))} in its column {column!r}: points are needed"
        )
    crs = about.get("crs", CRS84)  # the default of GeoParquet
    return column, None if crs is None else name_of_crs(crs)


def coordinate(column: Value, part: str, columns_as: str) -> FloatingValue:
    """x or y of a column of points: structs of both, or well-known binary."""
    if column.type().is_struct():
        return as_number(column[part], f"{column.get_name()}.{part}", text=False)
    return _decoder(part, columns_as)(column.cast("binary"))


def projected(xy: Sequence[Value], source: str, target: str, columns_as: str) -> list[Any]:
    """Coordinates of one reference system in another. Those that cannot be computed are infinite, and
    so outside the map."""
    return [_projection(source, target, n, columns_as)(*xy) for n in (0, 1)]


def decode_points(values: NDArray[Any], number: int) -> FloatArray:
    """Coordinate `number` of points in well-known binary; missing ones, and empty points, are NaN."""
    import shapely

    missing = np.array([value is None for value in values], dtype=bool)
    there = values[~missing]
    if all(len(value) == POINT_BYTES for value in there):  # each, not just their total
        kept = np.frombuffer(b"".join(there), dtype=np.uint8).reshape(-1, POINT_BYTES)
        start = np.frombuffer(LITTLE_ENDIAN_POINT, dtype=np.uint8)
        if np.all(kept[:, :5] == start):
            first = 5 + 8 * number
            coordinates = np.full(len(values), np.nan)
            coordinates[~missing] = np.ascontiguousarray(kept[:, first : first + 8]).view("<f8")[
                :, 0
            ]
            return coordinates
    points = shapely.from_wkb(values, on_invalid="ignore")
    return np.asarray(shapely.get_x(points) if number == 0 else shapely.get_y(points))


@lru_cache
def _decoder(part: str, columns_as: str) -> Any:
    need("Reading geometries", "shapely")

    def decode(values: NDArray[Any]) -> FloatArray:
        return decode_points(values, OF_GEOMETRY.index(part))

    return column_function(decode, f"htf_point_{part}", "binary", 1, columns_as)


@lru_cache
def _projection(source: str, target: str, number: int, columns_as: str) -> Any:
    parse_crs(source), parse_crs(target)

    def project(x: FloatArray, y: FloatArray) -> FloatArray:
        moved = _thread().submit(transformer(source, target).transform, x, y).result()
        return np.asarray(moved[number], dtype=np.float64)

    name = f"htf_project_{abs(hash((source, target)))}_{number}"
    return column_function(project, name, "float64", 2, columns_as)


def column_function(
    work: Callable[..., FloatArray], name: str, kind: str, number: int, columns_as: str
) -> Any:
    """A function of `number` columns, for an engine that passes columns as `columns_as`."""
    type_ = np.float64 if kind == "float64" else object

    def on_arrow(*columns):  # type: ignore[no-untyped-def]

        arrays = (np.asarray(column.to_numpy(), dtype=type_) for column in columns)
        return pa.array(work(*arrays))

    def on_pandas(*columns):  # type: ignore[no-untyped-def]
        import pandas as pd

        return pd.Series(work(*(np.asarray(column, dtype=type_) for column in columns)))

    # DuckDB calls a function with side effects once for each row; it would repeat others in every filter.
    made, vectorised, more = (
        (on_arrow, ibis.udf.scalar.pyarrow, {"side_effects": True})
        if columns_as == ARROW
        else (on_pandas, ibis.udf.scalar.pandas, {})
    )
    named = [Parameter(f"column{n}", Parameter.POSITIONAL_OR_KEYWORD) for n in range(number)]
    made.__signature__ = Signature(named)  # type: ignore[attr-defined]
    return vectorised(made, name=name, signature=((kind,) * number, "float64"), **more)


@once_per_process
def _thread() -> ThreadPoolExecutor:
    """A thread started by Python: in a thread of DuckDB's, pyproj ends the process."""
    return ThreadPoolExecutor(1)
