"""How people are shared out: each has exactly as many shares as everybody else, whatever their number of records,
and by nothing but that person's own records."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import Counter
from fractions import Fraction
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htf import Axis, Domain, read_points
from htf.ingest.expressions import period, ratio
from htf.ingest.people import CELL, PERSON, count_shared
from htf.privacy.protection import SHARES_OF_A_PERSON as SHARES
from support import NaiveRecord, counted, naive_period, naive_shares
from telling import examples

DOMAIN = Domain((Axis("x", 0.0, 3.0, 3), Axis("y", 0.0, 2.0, 2)))
INSIDE = [(x, y) for x in (0.5, 1.5, 2.5) for y in (0.5, 1.5)]
MOMENTS = [
    0,
    1800,
    90_000,
    86_400 * 31 - 1,
    86_400 * 31,
    None,
]  # the last two days are of two months
RECORD = st.tuples(
    st.sampled_from([0.5, 1.5, 2.5, 3.5]),  # the last is outside
    st.sampled_from([0.5, 1.5]),
    st.sampled_from(["ann", "bob", "eve", None, ""]),
    st.sampled_from(MOMENTS),
)
RECORDS = st.lists(RECORD, max_size=25)
ONCE = st.sampled_from([None, "hour", "day", "all"])
PER = st.sampled_from([None, "day", "week", "month"])
SIZES = [1, 2, 3, 7, 255, 256, 257, 513, 4099]  # below, at and above the number of shares

Records = list[tuple[float, float, str | None, int | None]]
Cells = Counter[tuple[int, ...]]


def as_table(records: Records) -> pa.Table:
    columns = list(zip(*records, strict=True)) or [()] * 4
    kinds = (pa.float64(), pa.float64(), pa.string(), pa.int64())
    names = ("x", "y", "who", "at")
    return pa.table({n: pa.array(c, k) for n, c, k in zip(names, columns, kinds, strict=True)})


def read(records: Records, once_per: str | None = None, per: str | None = None) -> Cells:
    options: dict[str, Any] = {"user": "who", "time": "at", "count": "people", "allow_empty": True}
    matrix = read_points(
        as_table(records),
        DOMAIN,
        ["x", "y"],
        once_per=once_per,
        per=per,
        tell=lambda _: None,
        **options,
    )
    assert matrix.protection.most_shares == SHARES
    return Counter(counted(matrix))


def naive(records: Records, once_per: str | None = None, per: str | None = None) -> Cells:
    known: list[NaiveRecord] = [((x, y), who, at) for x, y, who, at in records]
    return Counter(naive_shares(known, DOMAIN, SHARES, once_per, per))


def periods(records: Records, per: str | None) -> int:
    """In how many periods there are records inside the map."""
    inside = [at for x, _, who, at in records if x < 3 and who]
    if per is None:
        return min(len(inside), 1)
    return len({naive_period(at, per) for at in inside if at is not None})


@given(RECORDS, ONCE, PER, st.randoms(use_true_random=False))
@examples(20)
def test_the_order_of_rows_is_nothing(
    records: Records, once_per: str | None, per: str | None, shuffle: random.Random
) -> None:
    """And shares are those of the reference."""
    found = read(records, once_per, per)
    assert found == naive(records, once_per, per)
    shuffle.shuffle(records)
    assert read(records, once_per, per) == found


@given(RECORDS, ONCE, PER, st.sampled_from(SIZES), st.data())
@examples(20)
def test_one_person_more_changes_nobody_else(
    records: Records, once_per: str | None, per: str | None, size: int, data: st.DataObject
) -> None:
    """With any number of records: all that is added are the person's own shares, as they are alone. These add up
    to 256 exactly, in each period where one is asked for."""
    kinds = data.draw(
        st.lists(
            st.tuples(st.sampled_from(INSIDE), st.sampled_from(MOMENTS)), min_size=1, max_size=8
        )
    )
    own: Records = [
        (*kinds[n % len(kinds)][0], "new", kinds[n % len(kinds)][1]) for n in range(size)
    ]
    where = data.draw(st.integers(0, len(records)))
    without, alone = read(records, once_per, per), read(own, once_per, per)
    together = read([*records[:where], *own, *records[where:]], once_per, per)
    assert together == without + alone
    assert alone.total() == SHARES * periods(own, per)
    people = {who for _, _, who, _ in records if who}
    each = [periods([r for r in records if r[2] == who], per) for who in people]
    assert without.total() == SHARES * sum(each)


@given(st.lists(st.integers(0, 400), min_size=6, max_size=6).filter(any))
@examples(20)
def test_shares_are_within_one_of_even(numbers: list[int]) -> None:
    """A cell with m of n records gets less than one share more or less than 256 m / n, wherever the others are. So
    do any cells that follow each other: two roundings, of at most one half, the smaller of which is never reached."""
    own: Records = [
        (*place, "ann", None)
        for place, number in zip(INSIDE, numbers, strict=True)
        for _ in range(number)
    ]
    found = read(own)
    cells = [found[int(x), int(y)] for x, y in INSIDE]
    assert sum(cells) == SHARES
    for first in range(6):
        for last in range(first, 6):
            even = Fraction(SHARES * sum(numbers[first : last + 1]), sum(numbers))
            assert abs(sum(cells[first : last + 1]) - even) < 1


def shared(cells: Any, people: Any = None) -> Counter[int]:
    """What each cell gets of people's records."""
    located = ibis.memtable(
        pa.table({
            PERSON: pa.array(np.zeros(len(cells), dtype=np.int64) if people is None else people),
            CELL: pa.array(cells, pa.int64()),
        })
    )  # fmt: skip
    found = ibis.duckdb.connect().to_pyarrow(count_shared(located, SHARES))
    return Counter(dict(zip(found[CELL].to_pylist(), found["records"].to_pylist(), strict=True)))


def test_a_million_records_are_one_person() -> None:
    """Beside somebody with one record, and in more cells than there are shares."""
    generator = np.random.default_rng(3)
    cells = generator.integers(0, 1000, 1_000_000)
    alone = shared(cells)
    assert alone.total() == SHARES
    assert set(alone.values()) == {1}, "no cell has more than a thousandth of the records"
    people = np.append(np.zeros(len(cells), dtype=np.int64), [7, 8])
    together = shared(np.append(cells, [3, 2000]), people)
    assert together - alone == Counter({3: SHARES, 2000: SHARES})
    assert shared(np.full(1_000_000, 5)) == Counter({5: SHARES})
    order = generator.permutation(len(cells))
    assert shared(cells[order]) == alone


def test_records_without_a_cell_have_no_share() -> None:
    """An engine may give them in spite of the filter: they would take shares from cells on the map."""
    found = shared([1, None, None, 4, None], ["ann", "ann", "bob", "ann", "eve"])
    assert found == Counter({1: SHARES // 2, 4: SHARES // 2})


def test_it_is_asked_once() -> None:
    """A query may give other rows each time."""
    located = ibis.table({PERSON: "string", CELL: "int64"}, name="located")
    assert ibis.to_sql(count_shared(located, SHARES)).count('"located"') == 1


WHOLES = [
    1,
    2,
    3,
    255,
    256,
    257,
    1023,
    10**6 + 3,
    2**31 - 1,
    2**32 + 1,
    2**39 + 1,
    2**40 - 87,
    2**40 - 1,
    2**40,
]


def hard_parts(times: int, whole: int) -> list[int]:
    """The ends, and both sides of numbers whose ratio is near one half."""
    halves = [(2 * k + 1) * whole // (2 * times) for k in (0, 1, times // 2, times - 2, times - 1)]
    near = {0, 1, whole // 2, whole - 1, whole, *(h + d for h in halves for d in (-1, 0, 1, 2))}
    return sorted(part for part in near if 0 <= part <= whole)


@pytest.mark.parametrize("times", [1, SHARES, 1000, 2**10])
def test_ratios_are_exact_up_to_their_limits(times: int) -> None:
    generator = random.Random(5)
    pairs = [
        (part, whole)
        for whole in WHOLES
        for part in [
            *hard_parts(times, whole),
            *(generator.randrange(whole + 1) for _ in range(20)),
        ]
    ]
    parts, wholes = zip(*pairs, strict=True)
    table = ibis.memtable(pa.table({"n": range(len(parts)), "part": parts, "whole": wholes}))
    asked = table.select("n", found=ratio(table.part, times, table.whole)).order_by("n")
    found = ibis.duckdb.connect().to_pyarrow(asked)["found"].to_pylist()
    assert found == [math.floor(Fraction(times * p, w) + Fraction(1, 2)) for p, w in pairs]


@pytest.mark.parametrize("per", ["day", "week", "month"])
def test_periods_are_those_of_the_calendar(per: str) -> None:
    """Every day of four centuries, and of the first and the last years: a new number where Python's calendar begins
    a new period, the same elsewhere, and each the next."""
    first = dt.date(1, 1, 1).toordinal()
    days = [*range(first, first + 2000), *range(dt.date(1800, 1, 1).toordinal(), dt.date(2201, 1, 1).toordinal()),
            *range(dt.date.max.toordinal() - 800, dt.date.max.toordinal() + 1)]  # fmt: skip
    seconds = [
        86_400 * (day - dt.date(1970, 1, 1).toordinal()) + (day % 2) * 86_399 for day in days
    ]
    table = ibis.memtable(pa.table({"n": range(len(days)), "second": seconds}))
    asked = table.select("n", found=period(table.second, per)).order_by("n")
    found = ibis.duckdb.connect().to_pyarrow(asked)["found"].to_pylist()
    known = [naive_period(second, per) for second in seconds]
    for n in range(1, len(days)):
        if days[n] == days[n - 1] + 1:
            assert found[n] - found[n - 1] == (known[n] != known[n - 1])
    assert len(set(found)) == len(set(known))
