"""Arguments and options that several commands have."""

from __future__ import annotations

from dataclasses import MISSING
from pathlib import Path
from typing import Any

from htf.base.options import argument, option
from htf.privacy.protection import PERIODS, PERSON, RECORD, Protection
from htf.query.texts import read_where

MOST_POINTS = 50_000_000  # that are made up
UNITS = {
    RECORD: Protection(),
    PERSON: Protection(PERSON),
    **{f"{PERSON}-{per}": Protection(PERSON, per=per) for per in PERIODS},
}

# Of fields of dataclasses and of signatures (htf.cli.declared).
RELEASE = argument("RELEASE")
JSON = option("Print JSON.", default=False, flag="--json")
OVERWRITE = option(
    "Replace the output if it exists. Never replaces a release.", default=False, flag="--overwrite"
)
OUTPUT = option("File to write.", default=MISSING, flag="-o --output")
WHERE = option(
    "Range of a further axis, e.g. hour=7:10. Can be repeated; other axes count in full.",
    "AXIS=LOW:HIGH",
    read=read_where,
)
NO_BASEMAP = Path("none")


def basemap_option(help: str) -> Any:
    """What lies below the counts on a map in a browser."""
    usual = f"{help} {NO_BASEMAP}: leave out water, borders and names of places, too."
    return option(usual, f"FILE|{NO_BASEMAP}", flag="--basemap")
