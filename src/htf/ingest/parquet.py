"""Reads what Parquet files say about their columns, without looking at rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from htf.errors import InputError
from htf.ingest.engines import quietly

NANOSECONDS, MILLISECONDS = "nanoseconds", "milliseconds"
ABOUT_THE_WRITER = ("is_from_converted_type", "force_set_converted_type")

Kinds = Mapping[str, str]  # for each column, how it is stored and what it means


class Columns(NamedTuple):
    """The columns of files that are read as one table."""

    name: str
    kinds: tuple[Kinds, ...]  # one for each file

    def check_alike(self, names: Sequence[str]) -> None:
        """Refuse files whose columns differ. Engines take the columns of one file for those of all: they
        would cast the others, or take columns that these lack for missing."""
        for name in names:
            if len({kinds.get(name) for kinds in self.kinds}) > 1:
                raise InputError(
                    f"the column {name!r} is not the same in all files of {self.name}: files that are "
                    "read together must have the columns that are needed, each of the same type"
                )

    def in_nanoseconds(self, name: str) -> bool:
        return NANOSECONDS in self.kinds[0].get(name, "")

    def in_milliseconds(self, name: str) -> bool:
        """Whether a column of times is in milliseconds. (Times within a struct are never read.)"""
        kind = self.kinds[0].get(name, "")
        return "Timestamp" in kind and MILLISECONDS in kind and kind.startswith(" ")


def read_columns(paths: Sequence[Path], name: str) -> Columns:
    return Columns(name, tuple(quietly(partial(_read_kinds, one), str(one)) for one in paths))


def _read_kinds(path: Path) -> Kinds:
    with pq.ParquetFile(path) as file:
        schema = file.schema
        leaves = [schema.column(number) for number in range(len(schema))]
    kinds: dict[str, str] = {}
    for leaf in leaves:
        meaning = json.loads(leaf.logical_type.to_json())
        meanings = {key: value for key, value in meaning.items() if key not in ABOUT_THE_WRITER}
        whole, _, part = leaf.path.partition(".")
        kind = f"{part} {leaf.physical_type} {leaf.length} {sorted(meanings.items())}"
        kinds[whole] = f"{kinds[whole]}, {kind}" if part and whole in kinds else kind
    return kinds
