"""Tables as workbooks of spreadsheets (.xlsx), with a second sheet that says where they come from."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from htf.errors import InputError, MissingExtraError
from htf.query.frames import plain_value

if TYPE_CHECKING:
    import pyarrow as pa

SHEET = ".xlsx"
MOST_SHEET_ROWS, LONGEST_CELL = 2**20, 32_767
SHEET_LESS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # what its texts cannot hold


def need_openpyxl() -> Any:
    """The openpyxl package, or an error that names what to install."""
    try:
        import openpyxl
    except ImportError:
        raise MissingExtraError("openpyxl", "tables", "Writing .xlsx") from None
    return openpyxl


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
