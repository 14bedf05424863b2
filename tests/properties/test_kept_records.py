"""Which records of a person are kept: at most K, and by nothing but that person's own records."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htf import Axis, Domain, InputError, Protection, read_points
from htf.ingest.people import CELL, PERSON, TIME, count_kept, count_records, records_of_each
from htf.ingest.points import read_records_of_each
from htf.ingest.reading import Reading
from support import NaiveRecord, counted, naive_counts
from telling import examples

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


def as_table(records: Records) -> pa.Table:
    columns = list(zip(*records, strict=True)) or [()] * 4
    kinds = (pa.float64(), pa.float64(), pa.string(), pa.int64())
    names = ("x", "y", "who", "at")
    return pa.table({n: pa.array(c, k) for n, c, k in zip(names, columns, kinds, strict=True)})


# Remarks on unread rows take half of the time of a reading: `told` asks for them, once for all records of an example.
pytestmark = pytest.mark.filterwarnings("ignore::htf.ingest.remarks.NothingInside")


def read(
    records: Records, most: int, once_per: str | None, *, told: bool = False
) -> Counter[tuple[int, ...]]:
    options: dict[str, Any] = {
        "user": "who",
        "time": "at",
        "once_per": once_per,
        "allow_empty": True,
    }
    options |= {"max_records": most, "tell": (lambda _: None) if told else None}
    matrix = read_points(as_table(records), DOMAIN, ["x", "y"], **options)
    return Counter(counted(matrix))


def distance(one: Counter[tuple[int, ...]], other: Counter[tuple[int, ...]]) -> int:
    return sum(abs(one[cell] - other[cell]) for cell in {*one, *other})


@given(RECORDS, BOUND, ONCE, st.randoms(use_true_random=False))
@examples(30)
def test_the_order_of_rows_is_nothing(
    records: Records, most: int, once_per: str | None, shuffle: random.Random
) -> None:
    """And the choice is that of the reference."""
    found = read(records, most, once_per, told=True)
    naive: list[NaiveRecord] = [((x, y), who, at) for x, y, who, at in records]
    assert found == naive_counts(naive, DOMAIN, most, once_per)
    shuffle.shuffle(records)
    assert read(records, most, once_per) == found


@given(RECORDS, BOUND, ONCE)
@examples(12)
def test_people_are_kept_one_by_one(records: Records, most: int, once_per: str | None) -> None:
    """What is kept of all is what is kept of each alone, added up: so nobody's depends on others'. One
    person more or less therefore changes counts by that person's kept records: at most K in all."""
    people = sorted({who for _, _, who, _ in records if who})
    alone = [
        read([record for record in records if record[2] == who], most, once_per) for who in people
    ]
    together = read(records, most, once_per, told=True)
    assert together == sum(alone, Counter())
    for who, own in zip(people, alone, strict=True):
        assert own.total() <= most
        without = read([record for record in records if record[2] != who], most, once_per)
        assert distance(together, without) == own.total()


@pytest.mark.parametrize("most", [1, 2, 4])
def test_the_only_one_with_too_many_is_cut(most: int) -> None:
    """Beside others who have fewer, or just as many as may be."""
    many: Records = [(x, 0.5, "ann", at) for x in (0.5, 1.5) for at in (0, 0, 1800, None)]
    few: Records = [(2.5, 1.5, "bob", None)] * most
    found = read([*many, *few, (2.5, 0.5, "eve", 0)], most, None)
    assert found.total() == most + most + 1
    assert (found[2, 1], found[2, 0]) == (most, 1)


@given(st.lists(st.text(max_size=6), min_size=1, max_size=4, unique=True), st.data())
@examples(15)
def test_no_name_makes_the_bound_break(names: list[str], data: st.DataObject) -> None:
    """Names such as `a,1,2` make digests of different records alike: that is a tie, and no more."""
    ties = ["a", "a,0", "a,0,0", "a,0,0,0", "1", "1,0"]
    who = st.sampled_from([*ties, *names])
    records = data.draw(st.lists(st.tuples(RECORD, who), max_size=30))
    rows: Records = [(x, y, name, at) for (x, y, _, at), name in records]
    found = read(rows, 2, None, told=True)
    inside = Counter(name for x, _, name, _ in rows if x < 3 and name)
    assert found.total() == sum(min(2, number) for number in inside.values())


def some_records(number: int) -> Records:
    chosen = random.Random(3)
    return [
        (
            chosen.choice([0.5, 1.5, 2.5, 3.5]),
            chosen.choice([0.5, 1.5]),
            chosen.choice(["ann", "ann", "bob", "eve", None, ""]),
            chosen.choice([0, 1800, 3600, 90_000, None]),
        )
        for _ in range(number)
    ]


@pytest.mark.parametrize("once_per", [None, "day"])
@pytest.mark.parametrize("most", [1, 3])
def test_rows_of_a_query_are_kept_like_those_of_a_table(
    most: int, once_per: str | None, tmp_path: Path
) -> None:
    records, path = some_records(60), tmp_path / "visits.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("rows", as_table(records))
        connection.execute("CREATE TABLE visits AS SELECT * FROM rows")
    options: dict[str, Any] = {"user": "who", "time": "at", "once_per": once_per}
    expected = naive_counts(
        [((x, y), who, at) for x, y, who, at in records], DOMAIN, most, once_per
    )
    sources: list[dict[str, Any]] = [
        {"table": "visits"},
        {"sql": "SELECT * FROM visits ORDER BY random()"},
    ]
    for source in sources:
        matrix = read_points(path, DOMAIN, ["x", "y"], max_records=most, **source, **options)
        assert counted(matrix) == expected
        assert matrix.protection.of_query == ("sql" in source)


def test_a_query_is_asked_once() -> None:
    """Where it gives other rows each time, what is taken off would else not be what was counted. Whether an
    engine keeps the rows of a query that stands twice in ours is its own affair."""
    kinds = {PERSON: "string", CELL: "int64", TIME: "int64"}
    located = ibis.table(kinds, name="located")
    asked = [
        ibis.to_sql(count_kept(located, 2, of_query=of_query)).count('"located"')
        for of_query in (True, False)
    ]
    assert asked[0] == 1
    assert asked[1] > 1, "of a table that stays as it is, twice is quicker"


def test_records_without_a_cell_are_no_records() -> None:
    """An engine may give them in spite of the filter. Somebody with none else is not among the people: as one
    of 0 records they would stand where those with the most do."""
    rows = [("ann", 1), ("ann", 1), ("bob", 4), ("bob", None), ("eve", None), ("eve", None)]
    people, cells = zip(*rows, strict=True)
    located = ibis.memtable(
        pa.table({PERSON: people, CELL: pa.array(cells, pa.int64()), TIME: [0] * len(rows)})
    )
    engine = ibis.duckdb.connect()

    def found(table: ibis.Table) -> list[tuple[Any, ...]]:
        return sorted(tuple(row.values()) for row in engine.to_pyarrow(table).to_pylist())

    assert found(count_records(located)) == [(1, 2), (4, 1)]
    for of_query in (True, False):
        assert found(count_kept(located, 1, of_query=of_query)) == [(1, 1), (4, 1)]
    assert found(records_of_each(located, 3, 1)) == [(1, 1), (2, 1)]


@pytest.mark.parametrize("once_per", [None, "day", "all"])
@pytest.mark.parametrize("most", [1, 2, 50])
def test_people_are_counted_by_how_many_records_they_have(most: int, once_per: str | None) -> None:
    """Inside the bounds, and after the records of a slot were taken for one."""
    records = some_records(40)
    reading = Reading(["x", "y"], user="who", time="at", once_per=once_per)
    found = read_records_of_each(as_table(records), DOMAIN, reading, most)
    slot = {"day": 86_400, "all": 10**9}.get(once_per or "", 1)
    own: dict[str, list[Any]] = {}
    for x, y, who, at in records:
        if x < 3 and who:
            own.setdefault(who, []).append((x, y, (at or 0) // slot))
    sizes = Counter(min(len(set(mine) if once_per else mine), most) for mine in own.values())
    assert found.tolist() == [sizes[number] for number in range(1, most + 1)]


def test_people_are_bounded_only_where_they_are_named() -> None:
    table = as_table(some_records(5))
    refused: list[tuple[dict[str, Any], str]] = [
        ({"max_records": 2}, "name the column of people"),
        ({"user": "who", "count": "records"}, "the number of records to keep per person"),
        ({"count": "people"}, "name the column of people"),
        ({"per": "day", "time": "at"}, "name the column of people"),
        ({"user": "who", "per": "week"}, "name their column"),
        ({"user": "who", "count": "people", "max_records": 2}, "leave out --max-records 2"),
        ({"once_per": "day", "max_records": 2}, "name the column of people"),
        ({"user": "who", "once_per": "hour", "max_records": 2}, "name their column"),
    ]
    for options, says in refused:
        with pytest.raises(InputError, match=says):
            read_points(table, DOMAIN, ["x", "y"], **options)
    with pytest.raises(InputError, match="the column of people"):
        read_records_of_each(table, DOMAIN, Reading(["x", "y"]), 3)
    kept = read_points(table, DOMAIN, ["x", "y"], user="who", max_records=2, once_per="all")
    assert kept.protection == Protection("person", 2, "all")
    assert read_points(table, DOMAIN, ["x", "y"]).protection == Protection()
