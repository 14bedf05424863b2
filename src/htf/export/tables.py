"""Tables as .csv, .xlsx, .json and .parquet. Only Parquet has room for the provenance in metadata; a workbook has it in a
second sheet, and an export as CSV in a text file beside it."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from htf.base.extras import need
from htf.errors import InputError
from htf.export.provenance import EXPORT, as_metadata, write_beside
from htf.files import write_whole
from htf.query.frames import plain_value

if TYPE_CHECKING:
    import pyarrow as pa

CSV, SHEET = ".csv", ".xlsx"
MOST_SHEET_ROWS, LONGEST_CELL = 2**20, 32_767
SHEET_LESS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # what its texts cannot hold


def need_openpyxl() -> Any:
    """The openpyxl package, or an error that names what to install."""
    return need("Writing .xlsx", "openpyxl", extra="tables")


def write_table(
    table: pa.Table,
    path: Path,
    about: dict[str, Any],
    *,
    is_export: bool = False,
    overwrite: bool = False,
) -> None:
    """Write a table in the format of the file's ending."""
    import pyarrow.parquet as pq
    from pyarrow import csv

    suffix = path.suffix.lower()

    def write(unfinished: Path) -> None:
        match suffix:
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
    if is_export and suffix == CSV:
        write_beside(path, about, overwrite=overwrite)


def to_json(table: pa.Table) -> str:
    """Rows as JSON, with dates as ISO text and numbers that are not finite as null."""
    rows = [{name: _for_json(value) for name, value in row.items()} for row in table.to_pylist()]
    return json.dumps(rows, indent=2, ensure_ascii=False, allow_nan=False)


def _for_json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else plain_value(value)


def write_sheet(table: pa.Table, path: Path, about: dict[str, Any]) -> None:
    """A workbook with the table, and a second sheet that says where it comes from. Texts that look like formulas stay
    texts: names of columns too, which may be those of an analyst's layer."""
    if len(table) >= MOST_SHEET_ROWS:
        raise InputError(
            f"a sheet of .xlsx has room for {MOST_SHEET_ROWS:,} rows, but there are {len(table):,}: write .csv or .parquet"
        )
    book = need_openpyxl().Workbook(write_only=True)
    sheet = book.create_sheet("answers")
    sheet.freeze_panes = "A2"
    sheet.append([_cell(sheet, name) for name in table.column_names])
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        sheet.append([_cell(sheet, value) for value in row])
    notes = book.create_sheet("about")
    for name, value in about.items():
        notes.append([_cell(notes, name), _cell(notes, value)])
    book.save(path)


def _cell(sheet: Any, value: Any) -> Any:
    from openpyxl.cell import WriteOnlyCell

    plain = value if isinstance(value, (bool, int, date)) else plain_value(value)
    if not isinstance(plain, (bool, int, float, date, str, type(None))):
        plain = json.dumps(plain, ensure_ascii=False)
    if isinstance(plain, str):
        cell = WriteOnlyCell(sheet, SHEET_LESS.sub("", plain)[:LONGEST_CELL])
        cell.data_type = "s"
        return cell
    return plain
