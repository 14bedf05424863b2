"""Answers as text for people: the same numbers as in files and from the server, rounded. Light to import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from htf.query.columns import COLUMNS, Column

WHY_OUTSIDE = (
    "the count is the best guess, smoothed by what lies around it and cut at zero; the interval comes from "
    "the raw noisy counts alone."
)


HEADINGS = tuple(f">{column.heading}" for column in COLUMNS.values() if column.heading)


def show_answer(answer: Mapping[str, float]) -> list[str]:
    """The fields of a table on the screen, under `HEADINGS`. One field has both ends of the interval."""
    return [_show(name, column, answer) for name, column in COLUMNS.items() if column.heading]


def _show(name: str, column: Column, answer: Mapping[str, float]) -> str:
    return show_interval(answer) if name == "low" else _rounded(answer[name], column.form)


def show_count(value: float) -> str:
    """A count as a whole number."""
    return _rounded(value, COLUMNS["count"].form)


def _rounded(value: float, form: str) -> str:
    """A formatted number, but never minus zero."""
    shown = format(value, form)
    return "0" if shown == "-0" else shown


def show_interval(answer: Mapping[str, float]) -> str:
    """The 95 % interval of a count. Its ends may lie below zero, and need not enclose the count."""
    return f"{show_count(answer['low'])} to {show_count(answer['high'])}"


def interval_note(answers: Sequence[Mapping[str, float]]) -> str | None:
    """A note on why some counts shown lie outside their intervals; None if none does."""
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
    """Whether a count looks outside its interval to a reader, with all numbers rounded."""
    low, count, high = (float(f"{answer[name]:.0f}") for name in ("low", "count", "high"))
    return not low <= count <= high
