"""What people read on the screen."""

from __future__ import annotations

import pytest

from htf.cli.screen import show_interval


@pytest.mark.parametrize(
    ("count", "low", "high", "shown"),
    [
        (1495.0, 1400.2, 1592.4, "1,400 to 1,592"),
        (25.0, -64.0, 23.0, "0 to 25"),  # of a count from which noise was taken out
        (0.0, 3.0, 40.0, "0 to 40"),
        (-5.0, -12.0, 2.0, "-12 to 2"),  # a raw count: its interval as it is
    ],
)
def test_intervals_on_the_screen(count: float, low: float, high: float, shown: str) -> None:
    assert show_interval({"count": count, "low": low, "high": high}) == shown
