"""Answers as tables and files: the analyst's own columns, the query, and the answer of the release.

| ending | boxes | polygons |
| --- | --- | --- |
| .csv, .xlsx, .json | a table | a table |
| .parquet | a table | GeoParquet |
| .geojson, .gpkg, .fgb | rectangles | polygons |

Columns that came with the boxes or polygons keep their names. If the answers have a column of the same
name, `given_` is put before it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from htf.errors import InputError, MissingExtraError
from htf.export.provenance import EXPORT, as_metadata
from htf.export.vector import write_layer
from htf.files import write_whole
from htf.query.columns import describe_columns

if TYPE_CHECKING:
    import geopandas
    import pyarrow as pa

    from htf.frame.domain import Domain, FloatArray

TABLES = (".csv", ".xlsx", ".json", ".parquet")
LAYERS = (".geojson", ".gpkg", ".fgb")
TAKEN_BY_LAYERS = ("geometry", "bbox")
PREFIX = "given_"
MOST_SHEET_ROWS, LONGEST_CELL = 2**20, 32_767  # of .xlsx
SHEET_LESS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # what its texts cannot hold
NAMES = ("name", "id", "label")  # names of columns that tell rows apart on the screen


def boxes_rule(quantity: str) -> str:
    """How answers for boxes were computed, for their provenance."""
    return (
        "One row per box that was asked for, with what the release answers for it. "
        f"{describe_columns(quantity)}"
    )


def check_ending(path: Path) -> None:
    """Refuse a file whose format is unknown or cannot be written, before anything is counted."""
    if path.suffix.lower() not in (*TABLES, *LAYERS):
        endings = ", ".join((*TABLES, *LAYERS))
        raise InputError(
            f"cannot tell the format of {path.name!r}: the name must end in one of {endings}"
        )
    if path.suffix.lower() == ".xlsx":
        need_openpyxl()


def check_layer(path: Path, crs: Any, has_map: bool = True) -> None:
    """Refuse a layer that this map cannot have, before anything is counted."""
    suffix = path.suffix.lower()
    if suffix not in LAYERS:
        return
    if not has_map:
        raise InputError(
            f"a layer needs a map with axes x and y, but this one has none: write one of {', '.join(TABLES)}"
        )
    if suffix == ".geojson" and crs is None:
        raise InputError(
            "GeoJSON is in longitude and latitude by its standard, and there is no reference system to "
            "turn them from: write .gpkg or .csv"
        )
    for package in ("geopandas", "pyogrio"):
        try:
            __import__(package)
        except ImportError:
            raise MissingExtraError(package, "geo", f"Writing {suffix}") from None


def join_columns(
    asked: Mapping[str, Any], given: Mapping[str, pa.Array], answers: Mapping[str, Any]
) -> pa.Table:
    """One table of the query, the columns that came with it, and the answers. Names that differ only in
    case count as the same, as they do in SQL and in GeoPackages."""
    import pyarrow as pa

    taken = {name.casefold() for name in (*asked, *answers, *TAKEN_BY_LAYERS)}
    kept: dict[str, Any] = {}
    for name, column in given.items():
        free = name
        while free.casefold() in taken:
            free = PREFIX + free
        taken.add(free.casefold())
        kept[free] = column
    return pa.table({**asked, **kept, **answers})


def as_objects(table: pa.Table) -> list[dict[str, Any]]:
    """Rows for JSON, with dates as ISO text and numbers that are not finite as null."""
    return [{name: _for_json(value) for name, value in row.items()} for row in table.to_pylist()]


def to_json(table: pa.Table) -> str:
    return json.dumps(as_objects(table), indent=2, ensure_ascii=False, allow_nan=False)


def naming_column(given: Mapping[str, pa.Array]) -> tuple[str, list[str]] | None:
    """The column that tells rows apart on the screen: `name`, `id` or `label`, or the first text column."""
    import pyarrow as pa

    found = {name.casefold(): name for name in [*given][::-1]}  # the first of several
    texts = [name for name, column in given.items() if pa.types.is_string(column.type)]
    for name in (*(found[one] for one in NAMES if one in found), *texts):
        return name, ["" if value is None else str(value) for value in given[name].to_pylist()]
    return None


def write_table(
    table: pa.Table, path: Path, about: dict[str, Any], *, overwrite: bool = False
) -> None:
    """Write a table as .csv, .json or .parquet. Only Parquet has room for the provenance."""
    import pyarrow.parquet as pq
    from pyarrow import csv

    def write(unfinished: Path) -> None:
        match path.suffix.lower():
            case ".csv":
                csv.write_csv(table, unfinished)
            case ".json":
                unfinished.write_text(to_json(table) + "\n", encoding="utf-8")
            case ".xlsx":
                _write_sheet(table, unfinished, about)
            case _:
                metadata = as_metadata(EXPORT, about)
                pq.write_table(table.replace_schema_metadata(metadata), unfinished)

    write_whole(path, write, overwrite=overwrite)


def need_openpyxl() -> Any:
    """The openpyxl package, or an error that names what to install."""
    try:
        import openpyxl
    except ImportError:
        raise MissingExtraError("openpyxl", "tables", "Writing .xlsx") from None
    return openpyxl


def _write_sheet(table: pa.Table, path: Path, about: dict[str, Any]) -> None:
    """A workbook with the table, and a second sheet that says where it comes from. Names that look like formulas
    stay texts."""
    if len(table) >= MOST_SHEET_ROWS:
        raise InputError(
            f"a sheet of .xlsx has room for {MOST_SHEET_ROWS:,} rows, but there are {len(table):,}: write .csv or .parquet"
        )
    book = need_openpyxl().Workbook(write_only=True)
    sheet = book.create_sheet("answers")
    sheet.freeze_panes = "A2"
    sheet.append(table.column_names)
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        sheet.append([_cell(sheet, value) for value in row])
    notes = book.create_sheet("about")
    for name, value in about.items():
        notes.append([name, _cell(notes, value)])
    book.save(path)


def _cell(sheet: Any, value: Any) -> Any:
    from openpyxl.cell import WriteOnlyCell

    plain = value if isinstance(value, (bool, int, date)) else _plain(value)
    if not isinstance(plain, (bool, int, float, date, str, type(None))):
        plain = json.dumps(plain, ensure_ascii=False)
    if isinstance(plain, str):
        cell = WriteOnlyCell(sheet, SHEET_LESS.sub("", plain)[:LONGEST_CELL])
        cell.data_type = "s"
        return cell
    return plain


def write_shapes(
    table: pa.Table,
    shapes: Any,
    crs: Any,
    path: Path,
    about: dict[str, Any],
    name: str,
    *,
    overwrite: bool = False,
) -> None:
    """Write the rows of the table with their shapes, as a layer."""
    write_layer(_layer(table, shapes, crs), path, about, name, overwrite=overwrite)


def rectangles(domain: Domain, rows: FloatArray) -> Any:
    """The boxes of full rows along the first two axes, as polygons."""
    import shapely

    size = domain.dimensions
    return shapely.box(rows[:, 0], rows[:, 1], rows[:, size], rows[:, size + 1])


def _layer(table: pa.Table, shapes: Any, crs: Any) -> geopandas.GeoDataFrame:
    import geopandas
    import pandas
    import pyarrow as pa

    nullable = {pa.int64(): pandas.Int64Dtype(), pa.bool_(): pandas.BooleanDtype()}
    frame = table.to_pandas(types_mapper=nullable.get)
    return geopandas.GeoDataFrame(frame, geometry=shapes, crs=crs)


def attributes(frame: geopandas.GeoDataFrame) -> dict[str, pa.Array]:
    """The columns of a layer but its geometry: truth values, numbers, text and times as they are, all else
    (lists, objects, bytes, further geometries) as text."""
    return {
        str(name): _plain_column(frame[name])
        for name in frame.columns
        if name != frame.geometry.name
    }


def _plain_column(column: Any) -> pa.Array:
    import pyarrow as pa

    try:
        array = pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return _texts(column)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind = array.type
    if pa.types.is_integer(kind):
        return _cast(array, pa.int64(), column)
    if pa.types.is_floating(kind):
        return _cast(array, pa.float64(), column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _cast(array, pa.string(), column)
    if pa.types.is_boolean(kind) or pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        return array
    return _texts(column)


def _cast(array: pa.Array, kind: pa.DataType, column: Any) -> pa.Array:
    import pyarrow as pa

    try:
        return array.cast(kind)
    except pa.ArrowInvalid:  # such as whole numbers beyond 64 bits
        return _texts(column)


def _texts(column: Iterable[Any]) -> pa.Array:
    import pyarrow as pa

    return pa.array([_as_text(value) for value in column], pa.string())


def _as_text(value: Any) -> str | None:
    """Lists and objects as JSON, bytes by hexadecimal digits, shapes as WKT."""
    plain = _plain(value)
    if plain is None or isinstance(plain, str):
        return plain
    return json.dumps(plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """A value that JSON can represent, for any value, however it is nested."""
    if hasattr(value, "tolist"):  # an array or a number of NumPy
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [_plain(one) for one in value]
    if isinstance(value, bytes):
        return value.hex()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return None if str(value) in ("NaT", "<NA>") else str(value)


def _for_json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else _plain(value)
