"""What one person can change in a table of different people: at most M counts by one, and one class by one."""

from __future__ import annotations

import random
from collections.abc import Callable

import ibis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htf import Axis, Domain, Epsilon, PeopleByBox, measure_distinct, read_people_by_box
from htf.curator.distinct import people_by_class, people_in_boxes
from htf.curator.noise import SeededNoise
from htf.frame.domain import IntArray
from htf.ingest.people import BOX, CELL, PERIOD, PERSON, count_distinct
from htf.privacy.distinct import CLASS_ENDS, most_boxes
from support import naive_people
from telling import examples

DOMAIN = Domain((Axis("x", 0.0, 4.0, 8), Axis("y", 0.0, 3.0, 6)))
GRID = 4, 3
RECORD = st.tuples(
    st.sampled_from([0.5, 1.5, 2.5, 3.5, 4.5]),  # the last is outside
    st.sampled_from([0.5, 1.5, 2.5]),
    st.sampled_from(["ann", "bob", "1,2", None, ""]),
    st.sampled_from([0, 1800, 90_000, None]),
)
Records = list[tuple[float, float, str | None, int | None]]


# Remarks on unread rows take half of the time of a reading: `told` asks for them, once for all records of an example.
pytestmark = pytest.mark.filterwarnings("ignore::htf.ingest.remarks.NothingInside")


def read(records: Records, per: str | None = None, *, told: bool = False) -> IntArray:
    columns = list(zip(*records, strict=True)) or [()] * 4
    kinds = (pa.float64(), pa.float64(), pa.string(), pa.int64())
    names = ("x", "y", "who", "at")
    table = pa.table({n: pa.array(c, k) for n, c, k in zip(names, columns, kinds, strict=True)})
    found = read_people_by_box(
        table, DOMAIN, GRID, ["x", "y"], user="who", per=per, time="at", allow_empty=True,
        tell=(lambda _: None) if told else None,
    )  # fmt: skip
    return found.exact_people


@given(
    st.lists(RECORD, max_size=40), st.sampled_from([None, "day"]), st.randoms(use_true_random=False)
)
@examples(25)
def test_people_are_counted_one_by_one(
    records: Records, per: str | None, shuffle: random.Random
) -> None:
    """As the reference does, whatever the order of rows; and all together are the sum of each alone."""
    found = read(records, per, told=True)
    naive = [((x, y), who, at) for x, y, who, at in records]
    assert np.array_equal(found, naive_people(naive, DOMAIN, GRID, per))
    shuffle.shuffle(records)
    assert np.array_equal(read(records, per), found)
    people = sorted({who for _, _, who, _ in records if who})
    alone = [read([record for record in records if record[2] == who], per) for who in people]
    assert np.array_equal(sum(alone, np.zeros_like(found)), found)


@given(st.lists(RECORD, max_size=40), st.integers(1, 12))
@examples(25)
def test_one_person_moves_so_many_counts_and_one_class(records: Records, most: int) -> None:
    more = PeopleByBox(GRID, read(records, told=True))
    for who in {who or "" for _, _, who, _ in records}:  # records without a name are of nobody
        less = PeopleByBox(GRID, read([record for record in records if (record[2] or "") != who]))
        counts = people_in_boxes(more, most) - people_in_boxes(less, most)
        assert set(counts) <= {0, 1}
        assert counts.sum() <= most
        classes = people_by_class(more) - people_by_class(less)
        inside = any(x < 4 and name == who for x, _, name, _ in records)
        assert sorted(set(classes) | {0}) == ([0, 1] if inside and who else [0])
        assert classes.sum() == (1 if inside and who else 0)


@pytest.mark.parametrize("number", [1, 40, 1_000_000])
def test_a_million_records_are_one_person(number: int) -> None:
    """Somebody with very many records is once in every box, and moves no more than M of them."""
    draw = np.random.default_rng(number)
    some = {
        "x": draw.uniform(0, 4, 300),
        "y": draw.uniform(0, 3, 300),
        "who": draw.integers(0, 60, 300),
    }
    busy = {
        "x": draw.uniform(0, 4, number),
        "y": draw.uniform(0, 3, number),
        "who": np.full(number, 99),
    }
    both = {name: np.concatenate([some[name], busy[name]]) for name in some}
    less, more = (
        read_people_by_box(pa.table(table), DOMAIN, GRID, ["x", "y"], user="who")
        for table in (some, both)
    )
    gained = more.exact_people - less.exact_people
    boxes = min(number, 12)
    assert gained.sum() == (boxes if number != 40 else gained.sum())
    assert np.all(gained.sum(axis=1) <= 1)
    assert np.all(gained.sum(axis=0) <= 1)
    for most in (1, 3, 12):
        assert (people_in_boxes(more, most) - people_in_boxes(less, most)).sum() <= most


def test_the_classes_are_those_of_the_ends() -> None:
    """People in 1, 2, … 64 boxes of 100, one of each; whoever is in more is in the last class."""
    boxes = np.zeros((64, 100), dtype=np.int64)
    for number in range(1, 65):
        boxes[np.arange(number), np.arange(number)] += 1
    found = people_by_class(PeopleByBox((10, 10), boxes))
    starts = (0, *CLASS_ENDS[:-1])
    assert found.tolist() == [end - start for start, end in zip(starts, CLASS_ENDS, strict=True)]
    few = people_by_class(PeopleByBox((5, 1), boxes[:5, :5]))
    assert few.tolist() == [1, 1, 1, 1, 60]  # those in 5 or more of 5


def test_the_source_is_read_once() -> None:
    """A query with a LIMIT could give other rows each time."""
    kinds = {PERSON: "string", PERIOD: "int64", CELL: "int64", BOX: "int64"}
    sql = str(ibis.to_sql(count_distinct(ibis.table(kinds, name="located"), 5)))
    assert sql.count('"located"') == 1


def test_records_without_a_cell_are_no_records() -> None:
    rows = [("ann", 1, 1), ("ann", 1, 1), ("bob", None, 4), ("bob", 4, None), ("eve", None, None)]
    people, cells, boxes = zip(*rows, strict=True)
    columns = {PERSON: people, CELL: pa.array(cells, pa.int64()), BOX: pa.array(boxes, pa.int64())}
    found = ibis.duckdb.connect().to_pyarrow(count_distinct(ibis.memtable(pa.table(columns)), 3))
    assert found.to_pylist() == [{"box": 1, "rank": 0, "people": 1}]


# --- the loss ----------------------------------------------------------------------------------------

LESS = np.array([[30, 20, 10, 5], [9, 8, 7, 6], [3, 2, 1, 0], [1, 0, 0, 0]])


def with_one_more(boxes: tuple[int, ...]) -> IntArray:
    more = LESS.copy()
    more[np.arange(len(boxes)), boxes] += 1
    return more


@pytest.mark.parametrize("boxes", [(0,), (3, 1), (2, 0, 1), (3, 2, 1, 0)])
@pytest.mark.parametrize("most", [None, 1, 2, 3, 4])
def test_no_run_tells_more_of_a_person_than_is_claimed(
    boxes: tuple[int, ...], most: int | None
) -> None:
    """The loss of single runs, by the likelihoods that follow from what was charged. A run whose M was found with
    noise has the same M on both, as it follows from the noisy classes."""
    less, more = (PeopleByBox((2, 2), people) for people in (LESS, with_one_more(boxes)))
    losses = []
    for run in range(60):
        made = measure_distinct(
            more if run % 2 else less, Epsilon.of(1), max_boxes=most, noise=f"seeded:{run}"
        )
        loss = 0.0
        for values, exact, epsilon, sensitivity in (
            (made.people, people_by_class, made.people_epsilon, 1),
            (made.counts, lambda p: people_in_boxes(p, made.max_boxes), made.counts_epsilon, made.max_boxes),  # noqa: B023
        ):  # fmt: skip
            if values:
                closer = np.abs(np.array(values) - exact(less)) - np.abs(
                    np.array(values) - exact(more)
                )
                loss += float(closer.sum()) * float(epsilon) / sensitivity
        losses.append(abs(loss))
    assert max(losses) <= 1 + 1e-9
    tight = most is not None and len(boxes) >= most  # then all of epsilon may be lost
    assert not tight or max(losses) > 0.5, "the bound must be put to the test"


def test_noise_is_drawn_at_the_rates_that_were_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[float, int]] = []
    draw_at: Callable[..., IntArray] = SeededNoise.draw_at

    def noted(self: SeededNoise, rate: object, size: int) -> IntArray:
        drawn.append((float(rate), size))  # type: ignore[arg-type]
        return draw_at(self, rate, size)

    monkeypatch.setattr(SeededNoise, "draw_at", noted)
    measure_distinct(PeopleByBox((2, 2), LESS), 1, max_boxes=3, noise="seeded:1")
    assert drawn[-2:] == [(0.2, 4), (0.8 / 3, 4)]
    measure_distinct(PeopleByBox((2, 2), LESS), 1, max_boxes=4, noise="seeded:1")
    assert drawn[-1] == (0.25, 4)  # nobody can be in more: there is nothing to learn about people


@pytest.mark.parametrize("boxes", [1, 2, 5, 64, 65, 4096])
def test_nobody_is_counted_in_more_boxes_than_there_are(boxes: int) -> None:
    assert most_boxes(boxes) == min(boxes, 64)
