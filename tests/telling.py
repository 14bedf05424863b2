"""What `make test` leaves to `make test-all`: of a table of cases those that are not telling, and three of four random examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import settings

QUICK = "quick"  # the profile that the Makefile names
FEWER = 4


def telling(cases: Iterable[Any], keep: Callable[..., bool]) -> list[Any]:
    """Parameters of a test: `make test` runs those that `keep` chooses, and the others are slow."""
    found = []
    for case in cases:
        values = case if isinstance(case, tuple) else (case,)
        marks = () if keep(*values) else (pytest.mark.slow,)
        found.append(pytest.param(*values, marks=marks))
    return found


def examples(number: int) -> settings:
    """So many random examples; in `make test` the first fourth of them."""
    quick = settings.get_current_profile_name() == QUICK
    return settings(max_examples=-(-number // FEWER) if quick else number)
