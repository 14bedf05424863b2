"""Answers as people read them: the numbers of files and of the server, only rounded. Light to import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

WHY_OUTSIDE = (
    "the count is the best guess, smoothed by what lies around it and cut at zero; the interval comes from "
    "the raw noisy counts alone."
)


def show_count(value: float) -> str:
    """A whole number, and never minus zero."""
    shown = f"{value:,.0f}"
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
