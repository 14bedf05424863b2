"""What people read on the screen."""

from __future__ import annotations

import pytest

from htf.query.answer_texts import interval_note, show_count, show_interval


@pytest.mark.parametrize(
    ("count", "low", "high", "shown"),
    [
        (1495.0, 1400.2, 1592.4, "1,400 to 1,592"),
        (25.0, -64.0, 23.0, "-64 to 23"),  # of a count from which noise was taken out
        (0.0, 3.0, 40.0, "3 to 40"),
        (0.0, -247.3, -77.0, "-247 to -77"),
        (-5.0, -12.0, 2.0, "-12 to 2"),
        (0.0, -0.4, 0.4, "0 to 0"),
    ],
)
def test_intervals_are_those_of_files_only_rounded(
    count: float, low: float, high: float, shown: str
) -> None:
    assert show_interval({"count": count, "low": low, "high": high}) == shown


def test_counts_are_whole_and_never_minus_zero() -> None:
    assert [show_count(value) for value in (-0.2, 0.0, 1234.5678, -7.9)] == [
        "0",
        "0",
        "1,235",
        "-8",
    ]


def test_a_count_outside_of_its_interval_is_explained_once() -> None:
    inside = {"count": 5.0, "low": 5.4, "high": 9.0}  # as it looks when rounded
    below, above = (
        {"count": 0.0, "low": 3.0, "high": 40.0},
        {"count": 0.0, "low": -9.0, "high": -2.0},
    )
    assert interval_note([]) is None
    few = {"count": 0.4, "low": 0.1, "high": 0.3}
    assert interval_note([few]) is None
    assert interval_note([few], "people") is not None
    assert interval_note([inside, inside]) is None
    for answers, start in (
        ([below], "The count lies outside of its interval."),
        ([inside, above], "1 count lies outside of its interval."),
        ([below, inside, above], "2 counts lie outside of their interval."),
    ):
        note = interval_note(answers)
        assert note is not None
        assert note.startswith(start)
        assert "from the raw noisy counts" in note
