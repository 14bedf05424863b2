"""An answer as a file: the analyst's own columns, the question, and the numbers of the release.

| ending | boxes and zones | polygons |
| --- | --- | --- |
| .csv, .xlsx, .json | a table | a table |
| .parquet | a table | GeoParquet |
| .geojson, .gpkg, .fgb | a layer | a layer |
| .png, .svg, .pdf | of a series: a picture over its periods | the same |
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from htf.base.figures import PICTURES
from htf.errors import InputError, MissingExtraError
from htf.export.provenance import EXPORT, as_metadata, provenance
from htf.export.sheets import SHEET, need_openpyxl, write_sheet
from htf.export.vector import CSV, write_columns, write_layer
from htf.files import write_whole
from htf.query.columns import CHANGES, MEANS, PEOPLE
from htf.query.frames import plain_value
from htf.release.file import digests

if TYPE_CHECKING:
    import pyarrow as pa

    from htf.query.answer import Answer

TABLES = (".csv", ".xlsx", ".json", ".parquet")
LAYERS = (".geojson", ".gpkg", ".fgb")
LAYER_NAMES = {"box": "boxes", "zone": "zones", "polygon": "polygons"}


def check_ending(path: Path, *, of_series: bool = False) -> None:
    """Refuse a file whose format is unknown or cannot be written, before anything is counted."""
    known = (*TABLES, *LAYERS, *(PICTURES if of_series else ()))
    if path.suffix.lower() not in known:
        raise InputError(
            f"cannot tell the format of {path.name!r}: the name must end in one of {', '.join(known)}"
        )
    if path.suffix.lower() == SHEET:
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


def about_answer(answer: Answer, plan: Sequence[str] = ()) -> dict[str, Any]:
    """The provenance of an answer. `plan` is what a series says of its budget."""
    last = answer.releases[-1]
    about = provenance(last, answer.rule)
    about |= {"quantity": answer.quantity, "counted": answer.counted}
    everyone = [*answer.releases, *(one for part in answer.parts for one in part.releases)]
    about["private"] = all(release.private for release in everyone)
    if plan:
        about["statement"] = f"{' '.join(plan)} The last release says: {last.statement}"
    others = {CHANGES: "compared_with", MEANS: "divided_by"}
    if answer.kind in others:
        other = answer.parts[1].releases[-1]
        about[others[answer.kind]] = {
            "release_digest": digests(other),
            "statement": other.statement,
        }
    return about


def write_answer(
    answer: Answer, path: Path, plan: Sequence[str] = (), *, overwrite: bool = False
) -> None:
    """Write an answer in the format of the file's ending."""
    suffix, about = path.suffix.lower(), about_answer(answer, plan)
    of_polygons = answer.asked is not None and answer.asked.what == "polygon"
    if suffix in PICTURES:
        from htf.series.plot import draw_periods

        draw_periods(answer, path, overwrite=overwrite)
    elif suffix in LAYERS or (of_polygons and suffix == ".parquet"):
        write_layer(answer.to_geopandas(), path, about, layer_name(answer), overwrite=overwrite)
    else:
        write_table(answer.to_arrow(), path, about, overwrite=overwrite)


def export_answer(
    answer: Answer, path: Path, plan: Sequence[str] = (), *, overwrite: bool = False
) -> None:
    """Write an answer as a layer. Formats without shapes, which need no GIS package, have its table."""
    about = about_answer(answer, plan)
    if path.suffix.lower() in (CSV, SHEET):
        table = answer.to_arrow()
        columns = {name: table[name] for name in table.column_names}
        write_columns(columns, path, about, overwrite=overwrite)
    else:
        write_layer(answer.to_geopandas(), path, about, "zones", overwrite=overwrite)


def layer_name(answer: Answer) -> str:
    if answer.kind in (CHANGES, PEOPLE):
        return "changes" if answer.kind == CHANGES else "distinct"
    return "answers" if answer.asked is None else LAYER_NAMES[answer.asked.what]


def as_objects(table: pa.Table) -> list[dict[str, Any]]:
    """Rows for JSON, with dates as ISO text and numbers that are not finite as null."""
    return [{name: _for_json(value) for name, value in row.items()} for row in table.to_pylist()]


def to_json(table: pa.Table) -> str:
    return json.dumps(as_objects(table), indent=2, ensure_ascii=False, allow_nan=False)


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


def _for_json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else plain_value(value)
