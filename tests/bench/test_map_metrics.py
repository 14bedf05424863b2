"""Distances between whole maps, and what statistical offices did before differential privacy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from htf import FrequencyMatrix
from htf.errors import InputError
from htf.forecasts.places import City
from htf.forecasts.workloads import Boxes
from htf_bench.metrics import (
    HELLINGER,
    MAP_METRICS,
    MORAN,
    WASSERSTEIN,
    measure_maps,
    morans_i,
    wasserstein,
)
from htf_bench.specs import BenchSpec, label_of, read_spec, traditional
from htf_bench.traditional import CellKey, Rounding, Table, p_table
from htf_bench.trials import Bench, Trial, run_trial
from htf_bench.workloads import read_workload
from support import city_matrix, dense, grid


def random_grid(seed: int, shape: tuple[int, int] = (6, 5)) -> NDArray[np.float64]:
    return np.random.default_rng(seed).gamma(0.5, size=shape)


def test_equal_maps_have_no_distance() -> None:
    one = random_grid(1)
    assert measure_maps(one, 3 * one) == pytest.approx(dict.fromkeys(MAP_METRICS, 0.0), abs=1e-7)


def test_maps_with_nothing_in_common() -> None:
    """All records lie in one corner of the one map, and in the opposite corner of the other."""
    true, found = np.zeros((4, 4)), np.zeros((4, 4))
    true[0, 0], found[3, 3] = 7, 2
    distances = measure_maps(true, found)
    assert distances[HELLINGER] == pytest.approx(1)
    assert distances[WASSERSTEIN] == pytest.approx(100 * math.hypot(0.75, 0.75))
    assert distances[MORAN] == pytest.approx(0)


def test_what_is_below_zero_is_nothing_and_an_empty_map_has_no_distances() -> None:
    true, found = np.ones((2, 2)), np.array([[1.0, 1.0], [1.0, -5.0]])
    assert measure_maps(true, found) == measure_maps(true, np.maximum(found, 0))
    assert measure_maps(true, -true) == {}
    assert measure_maps(np.zeros((2, 2)), true) == {}


def test_wasserstein_along_a_line_is_the_area_between_running_sums() -> None:
    """Vallender 1974: in one dimension, the distance is that of the distribution functions."""
    true, found = (random_grid(seed, (20, 1)) for seed in (1, 2))
    true, found = true / true.sum(), found / found.sum()
    expected = np.abs(np.cumsum(true - found)).sum() / 20
    assert wasserstein(true, found) == pytest.approx(float(expected))


def test_wasserstein_agrees_with_a_linear_programme() -> None:
    from scipy.optimize import linprog

    true, found = (random_grid(seed, (3, 4)) for seed in (3, 4))
    true, found = true / true.sum(), found / found.sum()
    x, y = np.meshgrid((np.arange(3) + 0.5) / 3, (np.arange(4) + 0.5) / 4, indexing="ij")
    places = np.column_stack([x.ravel(), y.ravel()])
    costs = np.linalg.norm(places[:, None] - places, axis=2)
    rows = np.kron(np.eye(12), np.ones(12)), np.kron(np.ones(12), np.eye(12))
    solved = linprog(
        costs.ravel(), A_eq=np.vstack(rows), b_eq=np.concatenate([true.ravel(), found.ravel()])
    )
    assert wasserstein(true, found) == pytest.approx(float(solved.fun))


def test_a_fine_map_is_moved_in_coarser_piles() -> None:
    true, found = (random_grid(seed, (70, 40)) for seed in (5, 6))
    distances = measure_maps(true, found)
    assert 0 < distances[WASSERSTEIN] < 100


def test_morans_i_by_its_formula() -> None:
    """Moran 1950, with weight 1 for squares that share a side."""
    values = random_grid(7, (4, 3))
    mean, above, weights = values.mean(), 0.0, 0
    for i in range(4):
        for j in range(3):
            for k, m in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
                if 0 <= k < 4 and 0 <= m < 3:
                    above += (values[i, j] - mean) * (values[k, m] - mean)
                    weights += 1
    expected = values.size / weights * above / np.sum((values - mean) ** 2)
    assert morans_i(values) == pytest.approx(float(expected))
    chessboard = np.indices((6, 6)).sum(axis=0) % 2
    assert morans_i(chessboard.astype(float)) == pytest.approx(-1)
    assert morans_i(np.ones((3, 3))) == 0


def test_rounding_goes_to_the_nearest_multiple() -> None:
    generator = np.random.default_rng(0)
    counts = np.array([0, 1, 2, 3, 7, 8, 10, 12, 13])
    assert Rounding(base=5).change(counts, generator).tolist() == [0, 0, 0, 5, 5, 10, 10, 10, 15]
    assert Rounding(base=4).change(np.array([1, 2, 6]), generator).tolist() == [0, 4, 8]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 40])
@pytest.mark.parametrize(("most", "variance"), [(5, 3.0), (3, 1.0), (8, 0.5)])
def test_p_tables_have_no_bias_and_the_variance_they_promise(
    count: int, most: int, variance: float
) -> None:
    chances = p_table(count, most, variance)
    steps = np.arange(-min(count, most), most + 1)
    assert chances.min() >= 0
    assert chances.sum() == pytest.approx(1)
    assert chances @ steps == pytest.approx(0, abs=1e-9)
    reached = min(variance, float(-steps[0] * steps[-1]))
    assert chances @ steps**2 == pytest.approx(reached)


def test_cell_keys_leave_empty_squares_empty_and_go_below_zero_nowhere() -> None:
    """With 20,000 draws for each count, the mean is off by more than 6 deviations with a chance below 1e-8."""
    counts = np.repeat([0, 1, 2, 9, 1000], 20_000)
    noise = CellKey(most=5, variance=3.0).change(counts, np.random.default_rng(1)) - counts
    assert (counts + noise).min() == 0
    assert not noise[counts == 0].any()
    assert np.abs(noise).max() == 5
    for count in (1, 2, 9, 1000):
        found = noise[counts == count]
        assert abs(found.mean()) < 6 * math.sqrt(3 / 20_000)
        assert found.var() == pytest.approx(3.0, rel=0.06)


def test_a_table_answers_boxes_by_area() -> None:
    edges = np.array([0, 3, 5]), np.array([0, 2, 4, 7])
    counts = np.arange(6, dtype=float).reshape(2, 3)
    cells = np.zeros((5, 7))
    for i, (a, b) in enumerate(zip(edges[0], edges[0][1:], strict=False)):
        for j, (c, d) in enumerate(zip(edges[1], edges[1][1:], strict=False)):
            cells[a:b, c:d] = counts[i, j] / ((b - a) * (d - c))
    low, high = np.array([[0, 0], [1, 1], [2, 3]]), np.array([[5, 7], [4, 6], [3, 4]])
    answers = Table.of(edges, counts).answer(Boxes(low, high))
    sums = [cells[a:b, c:d].sum() for (a, c), (b, d) in zip(low, high, strict=True)]
    assert answers == pytest.approx(sums)


def test_published_squares_hold_the_counts_of_their_cells() -> None:
    matrix = city_matrix(cells=10, points=500)
    exact = dense(matrix)
    table = Rounding(squares=4, base=1).publish(matrix, np.random.default_rng(0))
    edges = [0, 2, 5, 7, 10]
    boxes = Boxes(np.array([[0, 2], [5, 7]]), np.array([[2, 5], [7, 10]]))
    assert table.answer(boxes) == pytest.approx([exact[0:2, 2:5].sum(), exact[5:7, 7:10].sum()])
    assert table.edges[0].tolist() == edges
    assert Rounding(squares=64).publish(matrix, np.random.default_rng(0)).sums.shape == (11, 11)
    with pytest.raises(InputError, match="maps with two axes"):
        Rounding().publish(city_matrix_of_three_axes(), np.random.default_rng(0))


def city_matrix_of_three_axes() -> FrequencyMatrix:
    return FrequencyMatrix.from_dense(grid(2, 2, 2), np.ones((2, 2, 2), dtype=np.int64))


def test_settings_are_read_and_mistakes_named() -> None:
    spec = read_spec("cell-key:variance=2:most=5")
    assert spec.label == "cell-key:variance=2.0"  # the other is the default
    assert traditional(spec) == CellKey(variance=2.0)
    assert label_of(spec.mechanism, spec.parameters_text) == spec.label
    with pytest.raises(InputError, match=r"rounding has no parameter 'bass': it has squares, base"):
        read_spec("rounding:bass=3")
    with pytest.raises(InputError, match=r"base of rounding is a whole number above 0, got '2.5'"):
        read_spec("rounding:base=2.5")
    with pytest.raises(InputError, match=r"grid-SQUARES takes a whole number .* 1 to 1,024"):
        read_workload("grid-0")


def test_the_bench_judges_them_beside_mechanisms() -> None:
    bench = Bench((read_workload("grid-8"), read_workload("2%")), 50, 1)
    data_set = City("city", points=2_000, cells=32)
    for spec in (BenchSpec.of("rounding"), BenchSpec.of("htf"), BenchSpec("zero")):
        outcome = run_trial(bench, Trial(data_set, spec, "1", 0))
        assert outcome.failure == ""
        of_maps = [
            m for workload, m, _ in outcome.values if m in MAP_METRICS and workload == "grid-8"
        ]
        assert of_maps == ([] if spec.mechanism == "zero" else [*MAP_METRICS])
        assert not any(m in MAP_METRICS for workload, m, _ in outcome.values if workload == "2%")
