"""Answers as people read them: the numbers of files and of the server, only rounded. Light to import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from htf.query.columns import COLUMNS, Column

WHY_OUTSIDE = (
    "the count is the best guess, smoothed by what lies around it and cut at zero; the interval comes from "
    "the raw noisy counts alone."
)


HEADINGS = tuple(f">{column.heading}" for column in COLUMNS.values() if column.heading)


def show_answer(answer: Mapping[str, float]) -> list[str]:
    """The cells of a table on the screen, under `HEADINGS`. One cell has both ends of the interval."""
    return [_show(name, column, answer) for name, column in COLUMNS.items() if column.heading]


def _show(name: str, column: Column, answer: Mapping[str, float]) -> str:
    return show_interval(answer) if name == "low" else _rounded(answer[name], column.form)


def show_count(value: float) -> str:
    """A whole number."""
    return _rounded(value, COLUMNS["count"].form)


def _rounded(value: float, form: str) -> str:
    """Never minus zero."""
    shown = format(value, form)
    return "0" if shown == "-0" else shown


def show_interval(answer: Mapping[str, float]) -> str:
    """The 95 % interval of a count: its ends as they are, also below zero or off the count."""
    return f"{show_count(answer['low'])} to {show_count(answer['high'])}"


def interval_note(answers: Sequence[Mapping[str, float]]) -> str | None:
    """Why some of the counts that are shown lie outside of their intervals; None if none does."""
    number = sum(is_outside_interval(answer) for answer in answers)
    if number == 0:
        return None
    if len(answers) == 1:
        return f"The count lies outside of its interval. That can be: {WHY_OUTSIDE}"
    which = (
        "1 count lies outside of its" if number == 1 else f"{number} counts lie outside of their"
    )
    return f"{which} interval. That can be: {WHY_OUTSIDE}"


def is_outside_interval(answer: Mapping[str, float]) -> bool:
    """As it looks to a reader, with all numbers rounded."""
    low, count, high = (float(f"{answer[name]:.0f}") for name in ("low", "count", "high"))
    return not low <= count <= high
