"""Numbers from text: ASCII digits and a short exponent, wherever they are read."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htf import Epsilon, InputError, make_mechanism
from htf.base.numerals import decimal, fraction, shown, whole
from htf.cli.main import run
from htf.curator.noise import noise_from_text
from htf.frame.domain import Axis, Domain
from htf.ingest.engines import read_memory
from htf.query.texts import read_boxes, read_numbers, read_where
from htf.query.where import full_ranges
from htf.recipes.maps import read_axis, read_cells
from htf_bench.workloads import read_workload

# To Python these are numbers.
LENIENT = ["1_0", "٣", "１", "0_5", "1_0.5", "१.५", "1e1_0", "１e1"]
ODD = [*LENIENT, "", " ", "+", ".", "e1", "1e", "1.2.3", "0x10", "1 0", "nan", "inf", "-Infinity", "1\n", "1e1000", "1" * 101]  # fmt: skip


@pytest.mark.parametrize("text", ODD)
def test_what_is_no_number(text: str) -> None:
    for read in (whole, decimal, fraction):
        with pytest.raises(ValueError, match=r"not a number|too large|divided"):
            read(text)


def test_what_is_a_number() -> None:
    assert [whole(text) for text in ("0", "12", "-3", "+4", " 5 ")] == [0, 12, -3, 4, 5]
    assert [decimal(text) for text in ("1", "-0.5", ".5", "2.", "1e-3", "1E+2", " 7 ")] == [
        1, -0.5, 0.5, 2, 0.001, 100, 7,
    ]  # fmt: skip
    assert fraction("0.1") == fraction("1/10") == fraction("1e-1") == Fraction(1, 10)
    for text in ("1/0", "1/1.5", "1/", "/2", "1/2/3"):
        with pytest.raises(ValueError, match=r"not a number|divided by zero"):
            fraction(text)
    with pytest.raises(ValueError, match="too large"):
        decimal("1e999")


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(10**98), 10**98))
def test_what_python_prints_is_read_back(number: float, integer: int) -> None:
    assert decimal(repr(number)) == number
    assert fraction(repr(number)) == Fraction(repr(number))
    assert whole(str(integer)) == integer


def test_errors_show_a_line_at_most() -> None:
    assert shown("x" * 1000) == repr("x" * 100 + "…")
    assert "more digits" in shown(10**5000)


# How each is read, and a text that it takes.
HOURS = Domain((Axis("hour", 0, 24, 24),))
READERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "epsilon": (Epsilon.of, "0.5"),
    "box": (lambda text: read_boxes([f"0,0,{text},9"]), "1e1"),
    "where": (lambda text: full_ranges(HOURS, read_where([f"hour=0:{text}"])), "7.5"),
    "numbers": (lambda text: read_numbers(f"0,{text}", "--grid", 2, "NX,NY"), "4"),
    "cells": (read_cells, "16"),
    "axis from": (lambda text: read_axis(f"hour:h:{text}:24:24"), "-1"),
    "axis to": (lambda text: read_axis(f"hour:h:0:{text}:24"), "24"),
    "axis cells": (lambda text: read_axis(f"hour:h:0:24:{text}"), "24"),
    "noise": (lambda text: noise_from_text(f"seeded:{text}"), "42"),
    "a whole parameter": (lambda text: make_mechanism("kdtree", height=text), "3"),
    "a parameter": (lambda text: make_mechanism("htf", growth=text), "1.7"),
    "a share": (lambda text: make_mechanism("ag", alpha=text), "0.3"),
    "an epsilon": (lambda text: make_mechanism("htf-paper", epsilon_height=text), "0.01"),
    "workload": (lambda text: read_workload(f"{text}%"), "2"),
    "places": (lambda text: read_workload(f"places-{text}"), "2"),
    "memory": (lambda text: read_memory(f"{text}GB"), "4"),
}


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_is_strict(reader: str) -> None:
    read, good = READERS[reader]
    read(good)
    for text in (*LENIENT, "9" * 500):
        with pytest.raises(InputError):
            read(text)


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("release", "--max-records"), ("sample", "--n"), ("sample", "--seed"),
        ("export", "--pixels"), ("serve", "--port"), ("serve", "--max-seconds"), ("serve", "--max-mb"), ("forecast", "--runs"),
        ("demo", "--points"), ("evaluate", "--jobs"), ("evaluate", "--seed"),
    ],
)  # fmt: skip
def test_every_option_is_strict(
    command: str, option: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for text in ("1_0", "１", "nan", "9" * 500):
        assert run([command, option, text]) == 2
        told = " ".join(capfd.readouterr().err.split())
        assert f"Invalid value for '{option}'" in told
        assert "number" in told
