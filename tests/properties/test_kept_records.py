"""Which records of a person are kept: at most K, and by nothing but that person's own records."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from htf import Axis, Domain, read_points
from support import NaiveRecord, counted, naive_counts

DOMAIN = Domain((Axis("x", 0.0, 3.0, 3), Axis("y", 0.0, 2.0, 2)))
RECORD = st.tuples(
    st.sampled_from([0.5, 1.5, 2.5, 3.5]),  # the last is outside
    st.sampled_from([0.5, 1.5]),
    st.sampled_from(["ann", "bob", "eve", None, ""]),
    st.sampled_from([0, 1800, 3600, 90_000, None]),
)
RECORDS = st.lists(RECORD, max_size=25)
BOUND = st.integers(1, 4)
ONCE = st.sampled_from([None, "hour", "day", "all"])

Records = list[tuple[float, float, str | None, int | None]]


def read(records: Records, most: int, once_per: str | None) -> Counter[tuple[int, ...]]:
    columns = list(zip(*records, strict=True)) or [()] * 4
    kinds = (pa.float64(), pa.float64(), pa.string(), pa.int64())
    names = ("x", "y", "who", "at")
    table = pa.table({n: pa.array(c, k) for n, c, k in zip(names, columns, kinds, strict=True)})
    options: dict[str, Any] = {"user": "who", "time": "at", "once_per": once_per}
    matrix = read_points(
        table, DOMAIN, ["x", "y"], max_records=most, tell=lambda _: None, **options
    )
    return Counter(counted(matrix))


def distance(one: Counter[tuple[int, ...]], other: Counter[tuple[int, ...]]) -> int:
    return sum(abs(one[cell] - other[cell]) for cell in {*one, *other})


@given(RECORDS, BOUND, ONCE, st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_the_order_of_rows_is_nothing(
    records: Records, most: int, once_per: str | None, shuffle: random.Random
) -> None:
    """And the choice is that of the reference."""
    found = read(records, most, once_per)
    naive: list[NaiveRecord] = [((x, y), who, at) for x, y, who, at in records]
    assert found == naive_counts(naive, DOMAIN, most, once_per)
    shuffle.shuffle(records)
    assert read(records, most, once_per) == found


@given(RECORDS, BOUND, ONCE)
@settings(max_examples=12)
def test_people_are_kept_one_by_one(records: Records, most: int, once_per: str | None) -> None:
    """What is kept of all is what is kept of each alone, added up: so nobody's depends on others'. One
    person more or less therefore changes counts by that person's kept records: at most K in all."""
    people = sorted({who for _, _, who, _ in records if who})
    alone = [
        read([record for record in records if record[2] == who], most, once_per) for who in people
    ]
    together = read(records, most, once_per)
    assert together == sum(alone, Counter())
    for who, own in zip(people, alone, strict=True):
        assert own.total() <= most
        without = read([record for record in records if record[2] != who], most, once_per)
        assert distance(together, without) == own.total()


@given(st.lists(st.text(max_size=6), min_size=1, max_size=4, unique=True), st.data())
@settings(max_examples=15)
def test_no_name_makes_the_bound_break(names: list[str], data: st.DataObject) -> None:
    """Names such as `a,1,2` make digests of different records alike: that is a tie, and no more."""
    ties = ["a", "a,0", "a,0,0", "a,0,0,0", "1", "1,0"]
    who = st.sampled_from([*ties, *names])
    records = data.draw(st.lists(st.tuples(RECORD, who), max_size=30))
    rows: Records = [(x, y, name, at) for (x, y, _, at), name in records]
    found = read(rows, 2, None)
    inside = Counter(name for x, _, name, _ in rows if x < 3 and name)
    assert found.total() == sum(min(2, number) for number in inside.values())
