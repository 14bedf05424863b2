"""What was asked, joined with what was answered: tables of Arrow, frames of pandas and GeoPandas.

Columns that came with the boxes or polygons keep their names. If the answers have a column of the same
name, `given_` is put before it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import geopandas
    import pandas
    import pyarrow as pa

TAKEN_BY_LAYERS = ("geometry", "bbox")
PREFIX = "given_"


def join_columns(
    asked: Mapping[str, Any], given: Mapping[str, pa.Array], answers: Mapping[str, Any]
) -> pa.Table:
    """One table of the query, the columns that came with it, and the answers. Names that differ only in
    case count as the same, as they do in SQL and in GeoPackages."""
    import pyarrow as pa

    taken = {name.casefold() for name in (*asked, *answers, *TAKEN_BY_LAYERS)}
    kept: dict[str, Any] = {}
    for name, column in given.items():
        free = free_name(name, taken)
        taken.add(free.casefold())
        kept[free] = column
    return pa.table({**asked, **kept, **answers})


def free_name(name: str, taken: Container[str]) -> str:
    """The name of a column that came with the question, beside others, which are given in lower case."""
    while name.casefold() in taken:
        name = PREFIX + name
    return name


def as_layer(table: pa.Table, shapes: Any, crs: Any) -> geopandas.GeoDataFrame:
    """A frame of GeoPandas with a shape for each row."""
    import geopandas

    return geopandas.GeoDataFrame(as_frame(table), geometry=shapes, crs=crs)


def as_frame(table: pa.Table) -> pandas.DataFrame:
    """A frame of pandas, in which whole numbers and truth values stay such where some are missing."""
    import pandas
    import pyarrow as pa

    nullable = {pa.int64(): pandas.Int64Dtype(), pa.bool_(): pandas.BooleanDtype()}
    return table.to_pandas(types_mapper=nullable.get)


def first_rows_html(table: pa.Table, most: int = 20) -> str:
    """The first rows as HTML without scripts, styled by the notebook."""
    shown = table.slice(0, most)
    head = "".join(f"<th>{escape(name)}</th>" for name in table.column_names)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(_show(value))}</td>" for value in row.values()) + "</tr>"
        for row in shown.to_pylist()
    )
    more = f"<p>{table.num_rows:,} rows, of which the first {most} are shown.</p>"
    foot = more if table.num_rows > most else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{foot}"


def _show(value: Any) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else "" if value is None else str(value)


def property_columns(properties: Sequence[Any]) -> dict[str, pa.Array]:
    """The properties of GeoJSON as columns, in the order in which they first occur."""
    names = list(dict.fromkeys(str(name) for one in properties for name in one or {}))
    return {name: _plain_column([(one or {}).get(name) for one in properties]) for name in names}


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
    if pa.types.is_boolean(kind) or pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        return array
    for is_such, plain in (
        (pa.types.is_integer, pa.int64()),
        (pa.types.is_floating, pa.float64()),
        (pa.types.is_string, pa.string()),
        (pa.types.is_large_string, pa.string()),
    ):
        if is_such(kind):
            with suppress(pa.ArrowInvalid):  # such as whole numbers beyond 64 bits
                return array.cast(plain)
    return _texts(column)


def _texts(column: Iterable[Any]) -> pa.Array:
    import pyarrow as pa

    return pa.array([_as_text(value) for value in column], pa.string())


def _as_text(value: Any) -> str | None:
    """Lists and objects as JSON, bytes by hexadecimal digits, shapes as WKT."""
    plain = plain_value(value)
    if plain is None or isinstance(plain, str):
        return plain
    return json.dumps(plain, ensure_ascii=False)


def plain_value(value: Any) -> Any:
    """A value that JSON can represent, for any value, however it is nested."""
    if hasattr(value, "tolist"):  # an array or a number of NumPy
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain_value(one) for name, one in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [plain_value(one) for one in value]
    if isinstance(value, bytes):
        return value.hex()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return None if str(value) in ("NaT", "<NA>") else str(value)
