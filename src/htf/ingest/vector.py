"""Points in files of layers: GeoJSON, GeoPackage, shapefile, FlatGeobuf. Sensitive.

One record must not change how others are read. A GeoJSON file has no header, so its columns are known by the names that
the curator gives, and not by those that records have. Common readers give a column of GeoJSON the type that fits all its
values, and read text in a column of numbers of a GeoPackage as 0. So these two are read here, value by value, as text. The
columns of a shapefile or FlatGeobuf have types by themselves, and pyogrio reads them.
"""

from __future__ import annotations

import json
import math
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from htf.base.extras import need
from htf.errors import InputError
from htf.frame.crs import CRS84, name_of_crs
from htf.ingest import sqlite
from htf.ingest.engines import quietly
from htf.ingest.geometry import decode_points
from htf.ingest.sqlite import ROWS_AT_ONCE

GEOJSON_FILES = (".geojson", ".json")
GEOPACKAGES = (".gpkg",)
BY_PYOGRIO = (".shp", ".fgb")
LAYER_FILES = (*GEOJSON_FILES, *GEOPACKAGES, *BY_PYOGRIO)
SIDECARS = (".dbf", ".shx")  # of a shapefile
BLANKS = (" ", "\t", "\r", "\n")
ENVELOPES = {0: 0, 1: 32, 2: 48, 3: 48, 4: 64}  # bytes, by the number in the header of a geometry
HEADER = 8
GEOMETRY = "geometry"
OTHER_KINDS = (
    "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon", "GeometryCollection",
)  # fmt: skip
POINTS_NEEDED = "{} holds {}, and points are needed: give a layer of points, such as their centres"


class LayerFile(NamedTuple):
    """A layer of points: its columns, and a function that reads some of them."""

    columns: tuple[str, ...]
    geometry: str
    crs: str | None
    text: bool
    read: Callable[[Sequence[str]], pa.RecordBatchReader | pa.Table]
    # Where there is no header: the names that records have. `read` gives an empty column for any other.
    of_records: tuple[str, ...] | None = None
    unfit: str = ""  # where no record has a point: what they have instead
    of_query: bool = False  # the records are the rows of a view


def layer_paths(path: Path) -> tuple[Path, ...]:
    """The files that hold the records of a layer."""
    of_shape = SIDECARS if path.suffix.lower() == ".shp" else ()
    beside = map(path.with_suffix, of_shape)
    return (path, *(one for one in beside if one.exists()))


def open_layer(path: Path, name: str, layer: str | None) -> LayerFile:
    """Open a layer by the ending of its file's name. `name` is for messages."""
    suffix = path.suffix.lower()
    if suffix in GEOJSON_FILES:
        if layer is not None:
            raise InputError(f"{name} has one layer: leave out --read table")
        return quietly(lambda: _open_geojson(path, name), name)
    opener = _open_geopackage if suffix in GEOPACKAGES else _open_by_pyogrio
    return quietly(lambda: opener(path, name, layer), name)


def _choose(layers: Sequence[str], wanted: str | None, name: str) -> str:
    there = ", ".join(map(repr, layers))
    if wanted is not None and wanted not in layers:
        raise InputError(f"{name} has no layer {wanted!r}; it has {there or 'none'}")
    if wanted is None and len(layers) != 1:
        raise InputError(
            f"{name} has {len(layers)} layers: name one with --read table, of {there or 'none'}"
        )
    return layers[0] if wanted is None else wanted


# GeoJSON -----------------------------------------------------------------------------------------


def _open_geojson(path: Path, name: str) -> LayerFile:
    said: dict[str, Any] = {}
    batches: list[dict[str, pa.Array]] = []
    kinds: set[str] = set()
    features = _features(path, name, said)
    while batch := list(islice(features, ROWS_AT_ONCE)):
        kinds |= {str(_part(one, "geometry").get("type")) for one in batch}
        rows = [_part(one, "properties") for one in batch]
        found = {
            key: pa.array([_as_text(row.get(key)) for row in rows], pa.string())
            for key in dict.fromkeys(key for row in rows for key in row)
        }
        # A property of this name is never read: else a record with one would move everybody's points.
        found[GEOMETRY] = pa.array([_point(one.get("geometry")) for one in batch], sqlite.POINT)
        batches.append(found)

    def read(names: Sequence[str]) -> pa.Table:
        schema = sqlite.schema_of(names, GEOMETRY)
        tables = [schema.empty_table()]
        for batch in batches:
            empty = pa.nulls(len(batch[GEOMETRY]), pa.string())
            tables.append(pa.table([batch.get(key, empty) for key in names], schema=schema))
        return pa.concat_tables(tables)

    there = dict.fromkeys(key for batch in batches for key in batch if key != GEOMETRY)
    others = sorted(kinds.intersection(OTHER_KINDS)) if "Point" not in kinds else []
    return LayerFile(
        (GEOMETRY,),
        GEOMETRY,
        _geojson_crs(said.get("crs")),
        True,
        read,
        of_records=tuple(there),
        unfit=POINTS_NEEDED.format(name, " and ".join(others)) if others else "",
    )


def _part(feature: dict[str, Any], name: str) -> dict[str, Any]:
    found = feature.get(name)
    return found if isinstance(found, dict) else {}


def _point(geometry: Any) -> dict[str, float] | None:
    """x and y of a point; NaN for what is none, and None for nothing."""
    if geometry is None:
        return None
    try:
        x, y = geometry["coordinates"][:2]
        if geometry["type"] == "Point" and isinstance(x, _Digits) and isinstance(y, _Digits):
            return {"x": float(x), "y": float(y)}
    except (KeyError, TypeError, ValueError):
        pass
    return {"x": math.nan, "y": math.nan}


def _as_text(value: Any) -> str | None:
    """A value as it is written. Numbers were never read as such."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value, ensure_ascii=False)


def _geojson_crs(said: Any) -> str:
    """The reference system that older files name; else that of the standard."""
    try:
        return name_of_crs(said["properties"]["name"])
    except (KeyError, TypeError):
        return CRS84


class _Digits(str):
    """A number as it is written."""

    __slots__ = ()


class _Reader:
    """Reads JSON values one after another, so that not all of them are held at once."""

    def __init__(self, text: str) -> None:
        self.text, self.place = text, 0
        self.values = json.JSONDecoder(
            parse_int=_Digits, parse_float=_Digits, parse_constant=_Digits
        )

    def next_sign(self) -> str:
        """The next character that is not blank, which stays; empty at the end."""
        while self.text[self.place : self.place + 1] in BLANKS:
            self.place += 1
        return self.text[self.place : self.place + 1]

    def take(self, sign: str) -> bool:
        """Whether the next character is this one, which is then behind us."""
        found = self.next_sign() == sign
        self.place += found
        return found

    def value(self) -> Any:
        self.next_sign()
        value, self.place = self.values.raw_decode(self.text, self.place)
        return value


def _features(path: Path, name: str, said: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The features of a collection; `said` gets its other members."""
    reader = _Reader(path.read_text(encoding="utf-8-sig"))
    is_object = reader.take("{")
    while is_object and not reader.take("}"):
        key = reader.value()
        if not reader.take(":"):
            raise ValueError
        if key == "features" and reader.take("["):
            said[key] = True
            while not reader.take("]"):
                feature = reader.value()
                yield feature if isinstance(feature, dict) else {}
                if reader.next_sign() != "]" and not reader.take(","):
                    raise ValueError
        else:
            said[key] = reader.value()
        if reader.next_sign() != "}" and not reader.take(","):
            raise ValueError
    if said.get("type") != "FeatureCollection" or "features" not in said:
        raise InputError(f"{name} must be a GeoJSON FeatureCollection of points")


# GeoPackage --------------------------------------------------------------------------------------


def _open_geopackage(path: Path, name: str, wanted: str | None) -> LayerFile:
    found = "SELECT table_name, column_name, geometry_type_name, srs_id FROM gpkg_geometry_columns"
    with closing(sqlite.connect(str(path))) as connection:
        layers = {str(row[0]): row[1:] for row in connection.execute(found)}
        layer = _choose(list(layers), wanted, name)
        geometry, kind, srs = layers[layer]
        columns = sqlite.columns_of(connection, sqlite.query_of_table(connection, layer, name))
        crs, of_query = _geopackage_crs(connection, srs), sqlite.is_view(connection, layer)
    if str(kind).upper().split()[0] not in ("POINT", "GEOMETRY"):
        raise InputError(POINTS_NEEDED.format(f"the layer {layer} of {name}", str(kind).title()))

    def read(names: Sequence[str]) -> pa.RecordBatchReader:
        chosen = ", ".join(map(sqlite.quoted, names))
        query = f"SELECT {chosen} FROM {sqlite.quoted(layer)}"
        return sqlite.read_as_text(str(path), query, names, str(geometry), _points)

    return LayerFile(columns, str(geometry), crs, True, read, of_query=of_query)


def _geopackage_crs(connection: sqlite3.Connection, number: int) -> str | None:
    query = "SELECT organization, organization_coordsys_id, definition FROM gpkg_spatial_ref_sys WHERE srs_id = ?"
    row = connection.execute(query, (number,)).fetchone()
    if row is None or number in (0, -1):  # undefined
        return None
    return name_of_crs(f"EPSG:{row[1]}" if str(row[0]).upper() == "EPSG" else str(row[2]))


def _points(blobs: Sequence[Any]) -> Any:
    """x and y of geometries of a GeoPackage; NaN for what is no point, and missing for nothing."""
    binary = np.array([_well_known(blob) for blob in blobs], dtype=object)
    x, y = (pa.array(decode_points(binary, number)) for number in (0, 1))
    missing = pa.array([blob is None for blob in blobs])
    return pa.StructArray.from_arrays([x, y], ["x", "y"], mask=missing)


def _well_known(blob: Any) -> bytes | None:
    """The well-known binary after the header of a GeoPackage."""
    if not isinstance(blob, bytes) or len(blob) < HEADER or blob[:2] != b"GP":
        return None
    size = ENVELOPES.get((blob[3] >> 1) & 7)
    return None if size is None else blob[HEADER + size :]


# By pyogrio --------------------------------------------------------------------------------------


def _open_by_pyogrio(path: Path, name: str, wanted: str | None) -> LayerFile:
    pyogrio = need(f"Reading {path.suffix} files", "pyogrio")
    with _without_warnings():
        layer = _choose([str(one) for one, _ in pyogrio.list_layers(path)], wanted, name)
        info = pyogrio.read_info(path, layer=layer)
    kind = str(info["geometry_type"])
    if kind.split(maxsplit=1)[0] not in ("Point", "Unknown", "2.5D"):
        raise InputError(POINTS_NEEDED.format(name, kind))
    fields = tuple(map(str, info["fields"]))
    geometry = "geometry"
    while geometry in fields:
        geometry += "_"
    crs = None if info["crs"] is None else name_of_crs(info["crs"])

    def read(names: Sequence[str]) -> Any:
        """A table, whose columns have no metadata: engines would give geometries a type of their own."""
        asked = {"columns": [n for n in names if n != geometry], "read_geometry": geometry in names}
        with _without_warnings():
            meta, table = pyogrio.read_arrow(path, layer=layer, **asked)
        stored = meta["geometry_name"] or "wkb_geometry"
        arrays = [table[stored if name == geometry else name] for name in names]
        return pa.table([_without_extension(one) for one in arrays], names=list(names))

    return LayerFile((*fields, geometry), geometry, crs, False, read)


def _without_warnings() -> warnings.catch_warnings[None]:
    """pyogrio warns of values that it cannot read, and quotes them."""
    return warnings.catch_warnings(action="ignore")


def _without_extension(column: Any) -> Any:
    return column.cast(pa.binary()) if isinstance(column.type, pa.BaseExtensionType) else column
