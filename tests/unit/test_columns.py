"""The columns of an answer stand in one place, and everything else follows."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import shapely

from htf import Protection, publish
from htf.export.layers import leaves_rule
from htf.query import kernels
from htf.query.answer import Answer
from htf.query.answer_texts import answer_headings, show_answer
from htf.query.columns import COLUMNS, COUNTS, MEANS, OF_LEAVES, describe_columns, place
from htf.serve.limits import Limits
from htf.serve.openapi import describe
from support import city_matrix, people_matrix

ANSWER = dict(zip(COLUMNS, (1234.4, 5.25, -0.4, 2468.9, 0.125, 1.0, 1200.0), strict=True))


def test_names_and_order() -> None:
    """They are promised: files and programs rely on them."""
    assert [*COLUMNS] == ["count", "std_error", "low", "high", "partial", "inside", "raw"]
    assert [*OF_LEAVES] == ["count", "std_error", "low", "high"]


def test_loops_write_where_the_declaration_says() -> None:
    for name in COLUMNS:
        assert getattr(kernels, name.upper()) == place(name)
    answers = np.zeros((1, len(COLUMNS)))
    kernels.write_answer(10.0, 12.0, 2.0, 2.5, 9.0, 1.0, 4.0, answers, 0)
    assert answers[0].tolist() == [10, 3, 10, 14.5, 0.25, 0, 12]


def test_every_column_is_described_in_whole_sentences() -> None:
    for column in COLUMNS.values():
        assert column.description[0].isupper()
        assert column.description.endswith(".")
        assert column.unit in ("{quantity}", "share")
        assert "people" in column.describe("split people") or "{" not in column.description
        assert "record" not in column.describe("split people")


@pytest.mark.parametrize("quantity", ["records", "split people"])
def test_files_and_the_api_describe_every_column(quantity: str) -> None:
    schemas = describe(Limits(), has_token=False)["components"]["schemas"]
    values = tuple(np.zeros(1) for _ in COLUMNS)
    answer = Answer(COUNTS, values, quantity)
    for name, column in COLUMNS.items():
        assert column.describe() in schemas["Answer"]["properties"][name]["description"]
        description = column.describe(quantity)
        assert description in answer.rule
        assert (description in leaves_rule(quantity)) == column.of_leaves
    assert schemas["Answer"]["required"] == schemas["Answers"]["required"] == [*COLUMNS, "counted"]
    told = describe_columns(quantity, OF_LEAVES)
    assert told.startswith(f"count ({quantity}): Best guess of the number of {quantity}.")
    assert told.endswith("counted: What the count is a number of.")


def test_a_row_on_the_screen() -> None:
    rest = (">std. error", ">95 % interval", ">partial", ">inside map")
    assert answer_headings("records") == (">records", *rest)
    assert answer_headings("split person-days") == (">split person-days", *rest)
    over = "mean of fare of split person-days, at most 6 per record"
    assert ">split person-days" in answer_headings(over, MEANS)
    assert ">records" in answer_headings("mean of fare, at most 6 per record", MEANS)
    few = {**ANSWER, "count": 0.31, "high": 99.96}
    assert show_answer(few, "split people") == ["0.3", "5.2", "-0.4 to 100", "12.5%", "100.0%"]
    assert show_answer(ANSWER) == ["1,234", "5.2", "0 to 2,469", "12.5%", "100.0%"]


def test_columns_of_leaves() -> None:
    answers = Answer(COUNTS, tuple(np.array([value]) for value in ANSWER.values()))
    assert [*answers.to_columns()] == [*COLUMNS]
    assert [*answers.to_columns(of_leaves=True)] == [*OF_LEAVES]
    assert answers.to_dicts() == [ANSWER]
    assert (answers.quantity, answers.counted) == ("records", "records")


def test_answers_know_what_they_count() -> None:
    """Also in the columns for a file, the last of which says it."""
    release = publish(people_matrix(per="day"), 1, noise="seeded:1")
    shape = shapely.box(10, 10, 30, 30)
    for answers in (release.count(), release.count_polygons(shape)):
        assert (answers.quantity, answers.counted) == ("split person-days", "split person-days")
        assert answers.to_labelled_columns()["counted"].tolist() == ["split person-days"]
        assert [*answers.to_labelled_columns(of_leaves=True)] == [*OF_LEAVES, "counted"]
    bounded = replace(
        publish(city_matrix(), 1, noise="seeded:1"), protection=Protection("person", 3)
    )
    assert bounded.count().counted == "records, at most 3 per person"
    assert bounded.count().quantity == "records"


def test_they_are_light_to_import() -> None:
    code = "import htf.query.answer_texts, sys; print('numpy' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
