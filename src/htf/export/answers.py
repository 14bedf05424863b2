"""Answers as tables and files: the analyst's own columns, the query, and the answer of the release.

| ending | boxes | polygons |
| --- | --- | --- |
| .csv, .xlsx, .json | a table | a table |
| .parquet | a table | GeoParquet |
| .geojson, .gpkg, .fgb | rectangles | polygons |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from htf.errors import InputError, MissingExtraError
from htf.export.provenance import EXPORT, as_metadata
from htf.export.sheets import need_openpyxl, write_sheet
from htf.export.vector import write_layer
from htf.files import write_whole
from htf.query.columns import describe_columns
from htf.query.frames import as_layer, plain_value

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = (".csv", ".xlsx", ".json", ".parquet")
LAYERS = (".geojson", ".gpkg", ".fgb")
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
                write_sheet(table, unfinished, about)
            case _:
                metadata = as_metadata(EXPORT, about)
                pq.write_table(table.replace_schema_metadata(metadata), unfinished)

    write_whole(path, write, overwrite=overwrite)


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
    write_layer(as_layer(table, shapes, crs), path, about, name, overwrite=overwrite)


def _for_json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else plain_value(value)
