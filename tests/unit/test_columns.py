"""The columns of an answer stand in one place, and everything else follows."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from htf.errors import InputError
from htf.export.answers import BOXES_RULE
from htf.export.layers import LEAVES_RULE, ZONES_RULE
from htf.query import kernels
from htf.query.answer_texts import HEADINGS, show_answer
from htf.query.columns import COLUMNS, OF_LEAVES, Answers, describe_columns, place
from htf.serve.limits import Limits
from htf.serve.openapi import describe

ANSWER = dict(zip(COLUMNS, (1234.4, 5.25, -0.4, 2468.9, 0.125, 1.0), strict=True))


def test_names_and_order() -> None:
    """They are promised: files and programs rely on them."""
    assert [*COLUMNS] == ["count", "std_error", "low", "high", "partial", "inside"]
    assert [*OF_LEAVES] == ["count", "std_error", "low", "high"]


def test_loops_write_where_the_declaration_says() -> None:
    for name in COLUMNS:
        assert getattr(kernels, name.upper()) == place(name)
    answers = np.zeros((1, len(COLUMNS)))
    kernels.write_answer(10.0, 12.0, 2.0, 9.0, 1.0, 4.0, answers, 0)
    assert answers[0].tolist() == [10, 3, 10, 14, 0.25, 0]


def test_every_column_is_described_in_whole_sentences() -> None:
    for column in COLUMNS.values():
        assert column.description[0].isupper()
        assert column.description.endswith(".")
        assert column.unit in ("records", "share")


def test_files_and_the_api_describe_every_column() -> None:
    schemas = describe(Limits(), has_token=False)["components"]["schemas"]
    for name, column in COLUMNS.items():
        assert column.description in schemas["Answer"]["properties"][name]["description"]
        assert column.description in BOXES_RULE
        assert column.description in ZONES_RULE
        assert (column.description in LEAVES_RULE) == column.of_leaves
    assert schemas["Answer"]["required"] == schemas["Answers"]["required"] == [*COLUMNS]
    assert describe_columns(OF_LEAVES).startswith("count (records): Best guess")


def test_a_row_on_the_screen() -> None:
    assert HEADINGS == (">count", ">std. error", ">95 % interval", ">partial", ">inside map")
    assert show_answer(ANSWER) == ["1,234", "5.2", "0 to 2,469", "12.5%", "100.0%"]


def test_columns_of_leaves() -> None:
    answers = Answers(*(np.array([value]) for value in ANSWER.values()))
    assert [*answers.to_columns()] == [*COLUMNS]
    assert [*answers.to_columns(of_leaves=True)] == [*OF_LEAVES]
    assert answers.to_dicts() == [ANSWER]
    with pytest.raises(InputError, match="high of answers must be as long as count"):
        Answers(*(np.zeros(1 + (name == "high")) for name in COLUMNS))


def test_they_are_light_to_import() -> None:
    code = "import htf.query.answer_texts, sys; print('numpy' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
