"""Boxes of the bench, and their counts, against slow and obvious ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from htf import Domain, FrequencyMatrix, InputError, publish
from htf.forecasts import counting
from htf.forecasts.counting import ExactCounter, answer_boxes
from htf.forecasts.workloads import Boxes, Workload, snap_to_cells
from htf.frame.domain import IntArray
from htf_bench.metrics import measure_errors
from htf_bench.workloads import read_workload, read_workloads
from support import city_matrix, dense, grid


def draw(text: str, matrix: FrequencyMatrix, number: int = 4000, seed: int = 1) -> Boxes:
    return read_workload(text).draw(matrix, number, np.random.SeedSequence(seed))


def sides(boxes: Boxes) -> IntArray:
    return boxes.high - boxes.low


@pytest.mark.parametrize("text", ["random", "2%", "100%", "data-1%", "data-0.01%"])
def test_boxes_lie_on_the_map_and_hold_a_cell(text: str) -> None:
    for shape in ((64, 64), (100, 7), (1, 1), (2**20, 3)):
        matrix = FrequencyMatrix.from_cells(grid(*shape), [[0, shape[0] - 1], [0, 0]])
        boxes = draw(text, matrix, 500)
        assert len(boxes) == 500
        assert np.all(boxes.low >= 0)
        assert np.all(boxes.low < boxes.high)
        assert np.all(boxes.high <= np.array(shape))
        assert boxes.low.dtype == boxes.high.dtype == np.int64


def test_random_boxes_have_uniform_centres_and_sides() -> None:
    """Before clipping, a side is uniform: half of the boxes that no edge cuts short tell it."""
    boxes = draw("random", city_matrix(1024), 40_000)
    # A box that touches no edge was not clipped: of centre c, its side is below 2 min(c, 1 - c).
    inside = np.all((boxes.low > 0) & (boxes.high < 1024), axis=1)
    # P(side / 2 < distance of a uniform centre to the nearer edge) = 1/2 for one axis.
    assert inside.mean() == pytest.approx(0.25, abs=0.01)
    # E(side | inside) on one axis is 1/3: the density of side s is proportional to 1 - s.
    assert sides(boxes)[inside].mean(axis=0) / 1024 == pytest.approx([1 / 3, 1 / 3], abs=0.01)
    assert sides(boxes).max() == 1024 or sides(boxes).max() > 1000
    middle = (boxes.low + boxes.high) / 2 / 1024
    assert middle.mean(axis=0) == pytest.approx([0.5, 0.5], abs=0.01)


@pytest.mark.parametrize(("text", "share"), [("2%", 0.02), ("6%", 0.06), ("10%", 0.10)])
def test_squares_have_their_share_of_the_map_unless_clipped(text: str, share: float) -> None:
    boxes = draw(text, city_matrix(1024), 20_000)
    inside = np.all((boxes.low > 0) & (boxes.high < 1024), axis=1)
    side = 1024 * share**0.5
    assert np.abs(sides(boxes)[inside] - side).max() <= 1
    assert np.all(sides(boxes) <= side + 1)
    # Centres are uniform, so this many are not clipped along either axis.
    assert inside.mean() == pytest.approx((1 - share**0.5) ** 2, abs=0.015)


def test_squares_take_the_same_share_of_both_axes() -> None:
    matrix = FrequencyMatrix.from_cells(grid(1000, 100), [[0], [0]])
    boxes = draw("4%", matrix)
    inside = np.all((boxes.low > 0) & (boxes.high < np.array([1000, 100])), axis=1)
    assert np.abs(sides(boxes)[inside] - [200, 20]).max() <= 1


def test_boxes_at_records_follow_the_records() -> None:
    matrix = FrequencyMatrix.from_cells(grid(100, 100), [[20, 70], [30, 60]], [3000, 1000])
    workload = read_workload("data-0.01%")
    assert workload.at_records
    boxes = workload.draw(matrix, 4000, np.random.SeedSequence(3))
    at_first = np.all(np.abs(boxes.low - [20, 30]) <= 1, axis=1)
    at_second = np.all(np.abs(boxes.low - [70, 60]) <= 1, axis=1)
    assert np.all(at_first ^ at_second)
    assert at_first.mean() == pytest.approx(0.75, abs=0.03)
    assert not any(read_workload(text).at_records for text in ("random", "2%"))
    empty = FrequencyMatrix.from_cells(grid(4, 4), [[], []])
    with pytest.raises(InputError, match="needs records"):
        workload.draw(empty, 1, np.random.SeedSequence(1))


@pytest.mark.parametrize("side", [1, 2, 8, 64])
def test_places_are_squares_that_hold_a_record_anywhere_in_them(side: int) -> None:
    matrix = FrequencyMatrix.from_cells(grid(200, 100), [[100, 0], [50, 99]], [3000, 1000])
    workload = read_workload(f"places-{side}")
    assert workload.at_records
    boxes = workload.draw(matrix, 4000, np.random.SeedSequence(3))
    assert np.all(sides(boxes) == side)
    assert np.all((boxes.low >= 0) & (boxes.high <= [200, 100]))
    holds = [
        np.all((boxes.low <= cell) & (boxes.high > cell), axis=1) for cell in ((100, 50), (0, 99))
    ]
    assert np.all(holds[0] | holds[1])
    # The record is as often in any cell of its square; at the corner of the map, always in that of the square.
    inner, corner = boxes.low[~holds[1]], boxes.low[holds[1]]
    assert len(corner) / 4000 == pytest.approx(0.25, abs=0.03)
    assert np.all(corner == [0, 100 - side])
    assert {*np.unique(inner[:, 0])} == {*range(101 - side, 101)}
    assert inner.mean(axis=0) == pytest.approx(
        [100 - (side - 1) / 2, 50 - (side - 1) / 2], abs=0.03 * side
    )


def test_places_stands_for_all_sides() -> None:
    found = [workload.text for workload in read_workloads("2%, places,places-08,places-3")]
    assert found == [
        "2%", "places-2", "places-4", "places-8", "places-16", "places-32", "places-64", "places-3",
    ]  # fmt: skip


def test_places_that_cannot_be_are_named() -> None:
    for text in ("places-", "places-0", "places--2", "places-x", "places-2.5", "places-8%"):
        with pytest.raises(InputError, match=rf"whole number of cells, 1 or more, got '{text}'"):
            read_workload(text)
    with pytest.raises(InputError, match="places-64 do not fit on a map of 100 x 32 cells: give"):
        draw("places-64", FrequencyMatrix.from_cells(grid(100, 32), [[0], [0]]))
    with pytest.raises(InputError, match="needs records"):
        draw("places-2", FrequencyMatrix.from_cells(grid(4, 4), [[], []]))


def test_the_same_seed_draws_the_same_boxes() -> None:
    matrix = city_matrix()
    for text in ("random", "6%", "data-1%", "places-8"):
        one, again, other = draw(text, matrix), draw(text, matrix), draw(text, matrix, seed=2)
        assert np.array_equal(one.low, again.low)
        assert np.array_equal(one.high, again.high)
        assert not np.array_equal(one.low, other.low)


def test_edges_move_to_the_nearest_edge_between_cells() -> None:
    low = np.array([[0.4, 0.6], [-5.0, 9.9], [3.4, 3.4], [9.8, -9.0]])
    high = np.array([[2.4, 2.6], [2.0, 12.0], [3.6, 3.45], [9.9, -8.0]])
    boxes = snap_to_cells(low, high, grid(10, 10))
    assert boxes.low.tolist() == [[0, 1], [0, 9], [3, 3], [9, 0]]
    assert boxes.high.tolist() == [[2, 3], [2, 10], [4, 4], [10, 1]]


def test_boxes_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "boxes.csv"
    path.write_text("id,west,south,east,north\n1,-1,0.5,3,2\n2,0,0,100,100\n")
    domain = Domain.from_bounds(0, 0, 10, 10, 20)
    matrix = FrequencyMatrix.from_cells(domain, [[0], [0]])
    boxes = draw(f"file:{path}", matrix)
    assert boxes.low.tolist() == [[0, 1], [0, 0]]
    assert boxes.high.tolist() == [[6, 4], [20, 20]]
    for wrong in ("west,south\n1,2\n", "west,south,east,north\n1,1,a,2\n"):
        path.write_text(wrong)
        with pytest.raises(InputError, match="columns west, south, east, north"):
            draw(f"file:{path}", matrix)
    for row in ("11,0,12,1", "3,0,2,1", "0,0,,1"):
        path.write_text(f"west,south,east,north\n0,0,1,1\n{row}\n")
        with pytest.raises(InputError, match="box 2 of"):
            draw(f"file:{path}", matrix)


@pytest.mark.parametrize(
    "text", ["", "randm", "2", "%", "0%", "-1%", "101%", "nan%", "data-", "data-x%", "2%%"]
)
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"a workload is random, P%"):
        read_workload(text)
    with pytest.raises(InputError, match="there is no file"):
        read_workload("file:nowhere.csv")
    assert read_workload("data-0.5%") == Workload("data-0.5%", 0.005, at_records=True)


def naive_counts(matrix: FrequencyMatrix, boxes: Boxes) -> list[int]:
    counts = dense(matrix)
    return [
        int(counts[tuple(slice(a, b) for a, b in zip(low, high, strict=True))].sum())
        for low, high in zip(boxes.low, boxes.high, strict=True)
    ]


@pytest.mark.parametrize("most_cells", [counting.MOST_TABLE_CELLS, 0])
def test_true_counts_are_those_of_a_loop(most_cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the table and by the index."""
    monkeypatch.setattr(counting, "MOST_TABLE_CELLS", most_cells)
    for matrix in (
        city_matrix(50),
        FrequencyMatrix.from_cells(grid(9, 17), [[0, 8, 8], [16, 0, 16]], [5, 7, 2**39]),
        FrequencyMatrix.from_cells(grid(3, 3), [[], []]),
    ):
        boxes = draw("random", matrix, 300)
        found = ExactCounter(matrix).count(boxes)
        assert found.dtype == np.int64
        assert found.tolist() == naive_counts(matrix, boxes)


def test_true_counts_on_a_grid_far_too_fine_for_a_table() -> None:
    generator = np.random.default_rng(1)
    cells = (generator.normal(0.5, 0.1, (2, 20_000)).clip(0, 0.99) * 2**20).astype(np.int64)
    matrix = FrequencyMatrix.from_cells(grid(2**20, 2**20), cells)
    boxes = draw("random", matrix, 200)
    expected = [
        int(np.all((low <= cells.T) & (high > cells.T), axis=1).sum())
        for low, high in zip(boxes.low, boxes.high, strict=True)
    ]
    assert ExactCounter(matrix).count(boxes).tolist() == expected


@pytest.mark.parametrize("cells_per_leaf", [10**9, 0])
def test_answers_are_those_of_the_release(
    cells_per_leaf: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "CELLS_PER_LEAF", cells_per_leaf)
    matrix = city_matrix()
    release = publish(matrix, 0.5, noise="seeded:1")
    boxes = draw("random", matrix, 500)
    answers = answer_boxes(release, boxes)
    # Cells of this grid are one unit wide: cell edges are map coordinates.
    expected = release.count(np.column_stack([boxes.low, boxes.high])).count
    np.testing.assert_allclose(answers, expected, rtol=1e-9, atol=1e-6)


def test_errors_by_hand() -> None:
    truth = np.array([0, 10, 20, 200])
    answers = np.array([4.0, -10.0, 21.0, 100.0])
    # Relative to at least 20: 4/20, 20/20, 1/20, 100/200.
    found = measure_errors(truth, answers)
    assert found["MRE"] == pytest.approx(100 * (0.2 + 1 + 0.05 + 0.5) / 4)
    assert found["MAE"] == pytest.approx((4 + 20 + 1 + 100) / 4)
    assert found["RMSE"] == pytest.approx(((16 + 400 + 1 + 10_000) / 4) ** 0.5)
    assert "MRE-0.1%" not in found
    # Relative to at least 0.1 % of 50,000 records: 4/50, 20/50, 1/50, 100/200.
    of_all = measure_errors(truth, answers, records=50_000)
    assert of_all.pop("MRE-0.1%") == pytest.approx(100 * (0.08 + 0.4 + 0.02 + 0.5) / 4)
    assert of_all == found
