from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htf.base.compiled import many_ahead
from htf.errors import InputError
from htf.frame.domain import Axis, Domain
from htf.query.answer import Answer
from htf.query.boxes import BLOCK, count_boxes, share_inside, to_snapped_cells
from htf.query.columns import COLUMNS, COUNTS
from htf.query.index import BoxIndex
from htf.query.outside import outside_note
from telling import examples

# Four leaves of one map: columns 0-1 and 2-3 of rows 0-1 and 2-3.
DOMAIN = Domain.from_bounds(10, 40, 14, 48, 4)
INDEX = BoxIndex(
    np.array([[0, 0], [2, 0], [0, 2], [2, 2]]),
    np.array([[2, 2], [4, 2], [2, 4], [4, 4]]),
    np.array([100.0, -20.0, 40.0, 0.0]),
    np.array([5.0, 5.0, 0.0, 5.0]),
)


def test_a_box_of_one_leaf() -> None:
    answers = count_boxes(DOMAIN, INDEX, [10, 40, 12, 44])
    row = answers.to_dicts()[0]
    assert row["count"] == 100
    assert row["std_error"] == pytest.approx(math.sqrt(2 * 25 - 1 / 6), rel=1e-3)
    # exp(-16/5) and exp(-15/5): the least k with 2 p^(k+1) / (1 + p) <= 5 % is 15.
    assert (row["low"], row["high"]) == (85, 115)
    assert row["partial"] == 0


def test_a_box_cuts_leaves_by_area_and_says_so() -> None:
    # The left half of the right column: half of -20 and half of 0; and all of the left column.
    row = count_boxes(DOMAIN, INDEX, [10, 40, 13, 48]).to_dicts()[0]
    assert row["count"] == 100 + 40 - 10
    assert row["partial"] == 10 / 150
    assert row["high"] - row["count"] == pytest.approx(row["count"] - row["low"])


def test_the_order_of_edges_is_lows_then_highs_in_any_dimension() -> None:
    domain = Domain((Axis("x", 0, 4, 4), Axis("y", 0, 4, 4), Axis("hour", 0, 24, 24)))
    low = np.array([[0, 0, 0], [0, 0, 6]])
    high = np.array([[4, 4, 6], [4, 4, 24]])
    index = BoxIndex(low, high, np.array([16.0, 160.0]), np.zeros(2))
    answers = count_boxes(domain, index, [[0, 0, 0, 4, 2, 6], [1, 0, 6, 2, 1, 24]])
    assert answers.count.tolist() == [8, 10]


def test_what_lies_outside_counts_nothing() -> None:
    everything = [-1e308, -1e308, 1e308, 1e308]
    boxes = [everything, [10.0, 40, 14, 48], [20.0, 40, 30, 48], [0.0, 0, 10, 40]]
    answers = count_boxes(DOMAIN, INDEX, boxes)
    assert answers.count.tolist() == [120, 120, 0, 0]
    assert answers.partial.tolist() == [0, 0, 0, 0]
    assert answers.std_error[2:].tolist() == answers.high[2:].tolist() == [0, 0]


@pytest.mark.parametrize("box", [[11, 40, 11, 48], [11, 44, 13, 44], [11, 41, 11, 41]])
def test_a_box_without_width_counts_nothing(box: list[float]) -> None:
    assert count_boxes(DOMAIN, INDEX, box).to_dicts() == [
        {"count": 0, "std_error": 0, "low": 0, "high": 0, "partial": 0, "inside": 0, "raw": 0}
    ]


def test_leaves_without_noise_have_no_error() -> None:
    row = count_boxes(DOMAIN, INDEX, [10, 44, 12, 46]).to_dicts()[0]
    assert row == {
        "count": 20, "std_error": 0, "low": 20, "high": 20, "partial": 1, "inside": 1, "raw": 20,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("boxes", "message"),
    [
        ([1, 2, 3], r"4 numbers, low x, low y, high x, high y, got an array of shape \(3,\)"),
        ([[1, 2, 3, 4, 5]], r"shape \(1, 5\)"),
        (7, r"shape \(\)"),
        ([[[1, 2, 3, 4]]], r"shape \(1, 1, 4\)"),
        ([[10, 40, 12, 44], [1]], "4 numbers"),
        ([["west", 40, 12, 44]], "west"),
        ([[10, 40, 12, 44], [10, math.nan, 12, 44]], r"10.0, nan, 12.0, 44.0 in row 1"),
        ([[10, 40, math.inf, 44]], r"inf, 44.0 in row 0"),
        ([[10, 40, 12, 44]] * 2 + [[13.5, 40, 12, 44]], r"row 2 .* x from 13.5 down to 12.0.*swap"),
        ([[10, 45, 12, 44]], r"row 0 .* y from 45.0 down to 44.0.*swapped\?"),
    ],
    ids=str,
)
def test_mistakes_are_named(boxes: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        count_boxes(DOMAIN, INDEX, boxes)  # type: ignore[arg-type]


def test_no_boxes_give_no_answers() -> None:
    assert len(count_boxes(DOMAIN, INDEX, [])) == 0
    assert count_boxes(DOMAIN, INDEX, np.zeros((0, 4))).to_dicts() == []


def test_answers_are_read_only_columns() -> None:
    answers = count_boxes(DOMAIN, INDEX, [[10, 40, 12, 44], [10, 40, 14, 48]])
    assert len(answers) == 2
    columns = answers.to_columns()
    assert list(columns) == ["count", "std_error", "low", "high", "partial", "inside", "raw"]
    for column in columns.values():
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1
    assert [type(value) for value in answers.to_dicts()[0].values()] == [float] * 7


def test_the_callers_boxes_are_left_alone() -> None:
    boxes = np.array([[-5.0, 40, 99, 44.0000000001]])
    before = boxes.copy()
    count_boxes(DOMAIN, INDEX, boxes)
    assert np.array_equal(boxes, before)


def test_many_boxes_are_answered_like_each_alone_and_without_much_memory() -> None:
    random = np.random.default_rng(1)
    corners = random.uniform((9, 39), (15, 49), (2, 200_000, 2))
    boxes = np.concatenate([corners.min(axis=0), corners.max(axis=0)], axis=1)
    many_ahead()
    count_boxes(DOMAIN, INDEX, boxes[0])  # compiled before memory is watched
    tracemalloc.start()
    answers = count_boxes(DOMAIN, INDEX, boxes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak - 6 * 8 * len(boxes) < 16e6  # it takes 9 MB; all at once would take 27
    for row in (0, BLOCK - 1, BLOCK, 199_999):
        assert answers.to_dicts()[row] == count_boxes(DOMAIN, INDEX, boxes[row]).to_dicts()[0]


def make_strips(cells: int) -> BoxIndex:
    """One leaf for each cell of an axis."""
    edges = np.arange(cells + 1)
    return BoxIndex(edges[:-1, None], edges[1:, None], np.ones(cells), np.zeros(cells))


bounds = st.floats(-1e6, 1e6, allow_subnormal=False)


@examples(200)
@given(low=bounds, width=st.floats(1e-3, 1e6), cells=st.integers(1, 300), data=st.data())
def test_edges_of_leaves_are_aligned_however_they_round(
    low: float, width: float, cells: int, data: st.DataObject
) -> None:
    axis = Axis("x", low, low + width, cells)
    start = data.draw(st.integers(0, cells - 1))
    stop = data.draw(st.integers(start + 1, cells))
    box = axis.from_cells(np.array([start, stop]))
    answers = count_boxes(Domain((axis,)), make_strips(cells), box)
    assert answers.partial[0] == 0
    assert answers.count[0] == stop - start


def test_alignment_needs_snapping() -> None:
    """Without it the test above could not fail."""
    axis = Axis("x", -118.6, -117.9, 1000)
    edges = np.arange(1001)
    plain = axis.to_cells(axis.from_cells(edges))
    assert np.count_nonzero(plain != edges) > 100
    assert np.array_equal(to_snapped_cells(axis, axis.from_cells(edges)), edges)


@pytest.mark.parametrize(
    "axis",
    [
        Axis("x", -118.6, -117.9, 2**31 - 1),
        Axis("x", 4e6, 4e6 + 0.001, 1000),
        Axis("x", -1e-3, 1e9, 10**6),
        Axis("x", 0, 1, 3),
    ],
    ids=str,
)
def test_edges_snap_on_extreme_axes_and_when_written_with_15_digits(axis: Axis) -> None:
    edges = np.unique(np.linspace(0, axis.cells, 1000).round())
    places = axis.from_cells(edges)
    assert np.array_equal(to_snapped_cells(axis, places), edges)
    written = np.array([float(f"{place:.15g}") for place in places])
    assert np.array_equal(to_snapped_cells(axis, written), edges)
    exact = [
        float(Fraction(axis.low) + (Fraction(axis.high) - Fraction(axis.low)) * int(e) / axis.cells)
        for e in edges
    ]
    assert np.array_equal(to_snapped_cells(axis, np.array(exact)), edges)


def test_only_edges_snap() -> None:
    axis = Axis("x", 0, 1024, 1024)
    values = np.array([3 + 1e-8, 3 - 1e-8, 3 + 1e-10, 3.5, 1024 - 1e-8])
    assert to_snapped_cells(axis, values).tolist() == [3 + 1e-8, 3 - 1e-8, 3, 3.5, 1024 - 1e-8]


def test_answers_compare_by_identity() -> None:
    one = np.zeros(1)
    assert Answer(COUNTS, (one,) * len(COLUMNS)) != Answer(COUNTS, (one,) * len(COLUMNS))


# Widths below a billionth of a cell count as none: see above.
thousandths = st.integers(-30_000, 90_000).map(lambda number: number / 1000)
edges = thousandths | st.sampled_from([0.0, 10.0, 14.0, 24.0, 40.0, 48.0])


@examples(300)
@given(st.lists(edges, min_size=6, max_size=6))
def test_the_share_inside_is_by_area_over_all_axes(ends: list[float]) -> None:
    """Compared with exact fractions; the edges of the map are among the edges."""
    axes = (Axis("x", 10, 14, 4), Axis("y", 40, 48, 4), Axis("hour", 0, 24, 24))
    low, high = [min(pair) for pair in batched(ends)], [max(pair) for pair in batched(ends)]
    expected = Fraction(1)
    for axis, start, stop in zip(axes, low, high, strict=True):
        on_map = min(Fraction(stop), Fraction(axis.high)) - max(Fraction(start), Fraction(axis.low))
        width = Fraction(stop) - Fraction(start)
        expected *= max(on_map, Fraction(0)) / width if width else 0
    (found,) = share_inside(axes, np.array([[*low, *high]]))
    assert found == pytest.approx(float(expected), abs=1e-7)
    assert 0 <= found <= 1


def batched(ends: list[float]) -> list[tuple[float, float]]:
    return list(zip(ends[::2], ends[1::2], strict=True))


@pytest.mark.parametrize(
    ("box", "inside"),
    [
        ([10, 40, 14, 48], 1),
        ([10 - 1e-13, 40, 14 + 1e-13, 48], 1),  # within rounding of the map
        ([11, 41, 12, 42], 1),
        ([8, 40, 12, 48], 0.5),
        ([8, 36, 12, 44], 0.25),
        ([14, 40, 20, 48], 0),  # beside it
        ([40, 10, 48, 14], 0),
        ([12, 40, 12, 48], 0),  # no area
        ([-1e308, -1e308, 1e308, 1e308], 1e-300),  # all of the map, though a share of nothing
    ],
)
def test_boxes_say_how_much_of_them_lies_on_the_map(box: list[float], inside: float) -> None:
    assert count_boxes(DOMAIN, INDEX, box).inside.tolist() == [inside]


MAP = "from 10 to 14 along x and from 40 to 48 along y"


@pytest.mark.parametrize(
    ("boxes", "note"),
    [
        ([[11, 41, 12, 42], [8, 36, 12, 44]], None),
        ([[12, 40, 12, 48]], None),  # no area, on the map
        ([[0, 0, 1, 1]], f"The box 0, 0, 1, 1 lies outside of the map, which goes {MAP}. The release knows nothing about it."),
        ([[14, 40, 20, 48]], f"The box 14, 40, 20, 48 lies outside of the map, which goes {MAP}. The release knows nothing about it."),
        ([[41, 11, 42, 12]], f"The box 41, 11, 42, 12 lies outside of the map, which goes {MAP}. The release knows nothing about it. "
         "With x and y swapped it would lie on the map: a box is west, south, east, north."),
        ([[11, 41, 12, 42], [0, 0, 1, 1]], f"1 of 2 boxes lies outside of the map, which goes {MAP}: row 1 (counted from 0). "
         "The release knows nothing about it."),
        ([[0, 0, 1, 1]] + [[41, 11, 42, 12]] * 6, f"7 of 7 boxes lie outside of the map, which goes {MAP}: rows 0, 1, 2, 3, 4, … "
         "(counted from 0). The release knows nothing about them. With x and y swapped 6 of them would lie on the map: a box is "
         "west, south, east, north."),
    ],
    ids=["on the map", "no area", "far", "beside", "swapped", "one of two", "many"],
)  # fmt: skip
def test_what_is_said_of_boxes_outside(boxes: list[list[float]], note: str | None) -> None:
    rows = np.array(boxes, dtype=np.float64)
    assert outside_note(DOMAIN, rows, count_boxes(DOMAIN, INDEX, rows).inside) == note


def test_one_axis_and_three_are_named() -> None:
    line = Domain((Axis("day", 0, 7, 7),))
    said = "The box 8, 9 lies outside of the map, which goes from 0 to 7 along day. The release knows nothing about it."
    assert outside_note(line, np.array([[8.0, 9.0]]), np.zeros(1)) == said
    hours = Domain((*DOMAIN.axes, Axis("hour", 0, 24, 24)))
    note = outside_note(hours, np.array([[41.0, 11, 7, 42, 12, 10]]), np.zeros(1))
    assert note is not None
    assert "from 10 to 14 along x, from 40 to 48 along y and from 0 to 24 along hour" in note
    assert "With x and y swapped it would lie on the map" in note
