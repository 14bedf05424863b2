"""The same question to every period of a series: counts, and changes from period to period. Public."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from htf.errors import InputError
from htf.query.change import changes_between, check_comparable, mark_beyond_noise, widest_reach

if TYPE_CHECKING:
    import pyarrow as pa

    from htf.query.columns import Answers
    from htf.release.release import Release
    from htf.series.series import Series

Ask = Callable[["Release"], "Answers"]


def answers_by_period(series: Series, ask: Ask) -> dict[str, Answers]:
    """What every period answers, in the order of time."""
    found = {period: ask(series.release(period)) for period in series.periods}
    if not found:
        raise InputError(f"{series.folder} has no release yet: add one with `htf series add`")
    return found


def count_periods(series: Series, ask: Ask) -> pa.Table:
    """A row for each period and question."""
    answers = answers_by_period(series, ask)
    tables = [one.to_labelled_columns() for one in answers.values()]
    return _stacked({"period": list(answers)}, tables, [len(one) for one in answers.values()])


def changes_of_periods(series: Series, ask: Ask) -> pa.Table:
    """A row for each pair of neighbouring periods and each question. Marks hold for the table as a whole."""
    answers = answers_by_period(series, ask)
    if len(answers) < 2:
        raise InputError(f"{series.folder} has one release, and a change needs two")
    for since, period in pairwise(answers):
        check_comparable(series.release(period), series.release(since))
    pairs = [(answers[period], answers[since]) for since, period in pairwise(answers)]
    tables = [changes_between(*pair).to_columns() for pair in pairs]
    marked = _mark_all(pairs)
    for table, marks in zip(tables, np.split(marked, len(pairs)), strict=True):
        table["beyond_noise"] = marks
    names = list(answers)
    return _stacked({"since": names[:-1], "period": names[1:]}, tables, [len(p[0]) for p in pairs])


def _mark_all(pairs: list[tuple[Answers, Answers]]) -> np.ndarray[Any, Any]:
    raw = np.concatenate([after.raw - before.raw for after, before in pairs])
    return mark_beyond_noise(raw, np.concatenate([widest_reach(*pair) for pair in pairs]))


def _stacked(
    names: dict[str, list[str]], tables: list[dict[str, Any]], sizes: list[int]
) -> pa.Table:
    """Tables one below the other, with columns that say which each row is of."""
    import pyarrow as pa

    named = {name: np.repeat(np.array(texts, object), sizes) for name, texts in names.items()}
    numbers = {"box": np.concatenate([np.arange(size) for size in sizes])}
    columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    return pa.table({**named, **numbers, **columns})
