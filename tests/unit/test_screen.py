"""What people read on the screen."""

from __future__ import annotations

import pytest

from htf.query.answer_texts import at_end_note, below_zero_note, show_count, show_interval


@pytest.mark.parametrize(
    ("count", "low", "high", "shown"),
    [
        (1495.0, 1400.2, 1592.4, "1,400 to 1,592"),
        (25.0, 0.0, 25.0, "0 to 25"),
        (-5.0, 0.0, 2.0, "0 to 2"),
        (0.0, 0.0, 0.4, "0 to 0"),
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


def test_a_count_below_zero_is_explained_once() -> None:
    above, below = {"count": 5.0}, {"count": -3.0}
    few = {"count": -0.4}  # as it looks when rounded
    assert below_zero_note([]) is None
    assert below_zero_note([above, few]) is None
    assert below_zero_note([few], "split people") is not None
    for answers, start in (
        ([below], "The count is below zero: "),
        ([above, below], "1 count is below zero: "),
        ([below, above, below], "2 counts are below zero: "),
    ):
        note = below_zero_note(answers)
        assert note is not None
        assert note.startswith(start)
        assert "The true number is not below zero" in note


def test_a_count_at_the_end_of_its_interval_is_explained_once() -> None:
    inside, at_end = (
        {"count": 5.0, "low": 2.0, "high": 9.0},
        {"count": 116.0, "low": 116.0, "high": 439.0},
    )
    nothing = {"count": 0.0, "low": 0.0, "high": 4.0}  # a reader knows why
    outside = {"count": 0.0, "low": 0.0, "high": 0.0}  # of the map
    assert at_end_note([inside, nothing, outside]) is None
    assert at_end_note([{"count": -1.0, "low": 0.0, "high": 3.0}]) is None  # has another note
    for answers, start in (
        ([at_end], "The count is an end of its interval: "),
        ([inside, at_end], "1 count is an end of its interval: "),
        (
            [at_end, at_end | {"high": 116.0, "low": 3.0}],
            "2 counts are an end of their intervals: ",
        ),
    ):
        note = at_end_note(answers)
        assert note is not None
        assert note.startswith(start)
        assert "the interval reaches as far as it does" in note
