"""The mechanism `htf`: what it spends on every path, for any answers; where it cuts, and where not.

Random tests have one seed each. What they assert held for forty other seeds by a wide margin.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from htf import BudgetError, Curator, Epsilon, FrequencyMatrix, InputError, Release, publish, verify
from htf.curator.measurements import Measurement
from htf.curator.noise import NoiseSource, ScriptedNoise, SeededNoise
from htf.estimation.prior import Prior
from htf.frame.domain import IntArray
from htf.mechanisms import htf as module
from htf.mechanisms.htf import Htf
from htf.privacy.ledger import sum_along_paths
from htf.release.kinds import KINDS
from support import city_matrix, grid, matrices
from telling import examples

STRANGE = [0, 0, 1, -1, 25, -25, 400, 10**6, -(10**6), 2**40, -(2**40), 2**60, -(2**60)]
SHAPES = [(1, 1), (2,), (1, 50), (3, 5, 7), (100, 7), (2, 3, 2, 5), (31, 33)]


class StrangeNoise(NoiseSource):
    """Any of a few numbers, over and over."""

    private = False
    description = "strange"

    def __init__(self, numbers: list[int], seed: int) -> None:
        self._numbers, self._generator = np.array(numbers), np.random.default_rng(seed)

    def draw_at(self, rate: Fraction, size: int) -> IntArray:  # noqa: ARG002
        return np.asarray(self._generator.choice(self._numbers, size))


def spent_on_paths(release: Release) -> IntArray:
    """What a record in each leaf pays, in units."""
    own = np.zeros(len(release.tree), dtype=np.int64)
    np.add.at(own, release.measurements.region, release.measurements.epsilon)
    return np.asarray(sum_along_paths(release.tree, own)[release.leaves])


@st.composite
def mechanisms(draw: st.DrawFn) -> Htf:
    return Htf(
        total_share=draw(st.sampled_from([0.01, 0.3, 0.97])),
        leaf_signal=draw(st.sampled_from([1e-9, 0.1, 4.0, 1e6])),
        halvings=draw(st.integers(1, 12)),
        growth=draw(st.sampled_from([1, 1.5, 3, 16.0])),
    )


@pytest.mark.filterwarnings("error")
@given(
    mechanisms(),
    st.sampled_from(SHAPES),
    st.sampled_from(["1e-13", "1.07e-13", "3e-9", "0.1", "1", "1000"]),
    st.lists(st.sampled_from(STRANGE), min_size=1, max_size=5),
    st.integers(0, 1000),
)
@example(Htf(halvings=1, growth=16.0), (31, 33), "1e-13", [2**60], 1)  # a round's share is no unit
@examples(120)
def test_every_path_spends_the_budget_exactly_for_any_answers(
    mechanism: Htf, shape: tuple[int, ...], epsilon: str, noise: list[int], seed: int
) -> None:
    """Whatever is answered nothing is refused, and no unit is over- or underspent."""
    counts = np.random.default_rng(seed).poisson(0.5, shape) * 7
    matrix = FrequencyMatrix.from_dense(grid(*shape), counts)
    release = publish(matrix, epsilon, mechanism, noise=StrangeNoise(noise, seed))
    assert set(spent_on_paths(release).tolist()) == {release.epsilon.units}
    assert release.spent == release.epsilon
    assert np.all(release.estimates >= 0)
    assert [check for check in verify(release) if not (check.passed or check.name == "noise")] == []


@given(matrices(), st.integers(0, 100))
@examples(30)
def test_questions_follow_from_answers_alone(matrix: FrequencyMatrix, seed: int) -> None:
    """Given the same answers, other data are asked the same questions at the same prices."""
    first = publish(matrix, "1", "htf", noise=SeededNoise(seed))
    empty = FrequencyMatrix.from_dense(matrix.domain, np.zeros(matrix.domain.shape, dtype=np.int64))
    check_replayed(first, empty)


def test_searches_follow_from_answers_alone() -> None:
    matrix = spiked(200_000, size=2000)
    release = publish(matrix, "0.1", "htf", noise=SeededNoise(3))
    kinds = {KINDS[kind] for kind in np.unique(release.measurements.kind)}
    assert kinds == {"count", "look", "refined"}
    check_replayed(release, FrequencyMatrix.from_dense(matrix.domain, np.zeros((256, 256), int)))


def check_replayed(first: Release, others: FrequencyMatrix) -> None:
    curator = Replaying(others, first.epsilon)
    curator.answers = first.measurements.value.tolist()
    second = curator.run(Htf())
    for name, column in first.measurements.columns().items():
        assert np.array_equal(column, second.measurements.columns()[name]), name
    assert np.array_equal(first.tree.low, second.tree.low)
    assert np.array_equal(first.estimates, second.estimates)
    assert (first.facts, first.ledger) == (second.facts, second.ledger)


class Replaying(Curator):
    """Charges what is asked, and gives answers that were written down."""

    def __init__(self, matrix: FrequencyMatrix, epsilon: Epsilon) -> None:
        super().__init__(matrix, epsilon, ScriptedNoise())
        self.answers: list[int] = []

    def measure(self, measurement: Measurement) -> IntArray:
        size = len(super().measure(measurement))
        answer = np.array(self.answers[:size], dtype=np.int64)
        self.answers = self.answers[size:]
        self._taken[-1] = measurement, answer
        return answer


def spiked(records: int, size: int) -> FrequencyMatrix:
    """An even map of 256 x 256 cells, in four of which there are far more."""
    counts = np.random.default_rng(2).poisson(records / 256**2, (256, 256))
    counts[[13, 60, 130, 201], [200, 77, 130, 19]] += size
    return FrequencyMatrix.from_dense(grid(256, 256), counts)


def test_spikes_in_an_even_map_are_found() -> None:
    """Without looks they are spread over a leaf of hundreds of cells. At 30 deviations of one direct count with all of
    epsilon, 99 of 100 are found; this noise is seeded, so that nothing is left to luck."""
    size = 30 * math.sqrt(2) / 0.1
    matrix = spiked(100_000, round(size))
    cells = np.array([[13, 200], [60, 77], [130, 130], [201, 19]])
    blocks = np.hstack([cells // 4 * 4, cells // 4 * 4 + 4]).astype(float)
    true = size + 16 * 100_000 / 256**2
    for share, found in ((0.5, True), (0.0, False)):
        release = publish(matrix, "0.1", Htf(look_share=share), noise=SeededNoise(2))
        answers = release.count(blocks)
        assert np.all((answers.count > 0.7 * true) == found)
        assert np.all((answers.high > true) == found)
        assert [one for one in verify(release) if not (one.passed or one.name == "noise")] == []


def test_a_map_without_surprises_is_counted_as_if_nobody_had_looked() -> None:
    """Every region ends at the full price, and none is searched."""
    even = FrequencyMatrix.from_dense(grid(128, 128), np.ones((128, 128), dtype=np.int64))
    looked = publish(even, "0.1", "htf", noise=ScriptedNoise())
    at_once = publish(even, "0.1", Htf(look_share=0.0), noise=ScriptedNoise())
    counts = looked.measurements.tree_counts(), at_once.measurements.tree_counts()
    for ours, theirs in zip(*(some.by_region(looked.tree) for some in counts), strict=True):
        assert np.array_equal(ours, theirs)
    assert "look" in {line.kind for line in looked.ledger}


def test_a_budget_too_small_to_be_shared_is_refused_before_anything_is_drawn() -> None:
    with pytest.raises(BudgetError, match="total_share"):
        publish(city_matrix(), "9.9e-14", "htf", noise=ScriptedNoise())


@pytest.mark.parametrize(
    "chosen",
    [
        {"total_share": 0.0},
        {"total_share": 1.0},
        {"leaf_signal": 0.0},
        {"leaf_signal": float("nan")},
        {"leaf_signal": float("inf")},
        {"leaf_signal": 1e-320},
        {"halvings": 0},
        {"halvings": 13},
        {"growth": 0.9},
        {"growth": float("nan")},
        {"last_share": 1.0},
        {"last_share": -0.1},
        {"look_share": 1.0},
        {"look_share": -0.1},
        {"foresight": 0.5},
        {"foresight": 17.0},
        {"foresight": float("nan")},
    ],
)
def test_parameters_that_make_no_sense_are_refused(chosen: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(chosen))):
        Htf(**chosen)


def test_budgets_grow_and_the_last_round_has_what_was_kept() -> None:
    """All records in one cell, and no noise: that cell is on the longest path."""
    cells = np.zeros((64, 64), dtype=np.int64)
    cells[0, 0] = 10**6
    matrix = FrequencyMatrix.from_dense(grid(64, 64), cells)
    release = publish(matrix, "1", Htf(growth=1.5, look_share=0.0), noise=ScriptedNoise())
    table = release.measurements
    rounds = [int(table.epsilon[table.line == n].min()) for n in range(1, len(release.ledger))]
    assert release.ledger[0].largest_epsilon == Epsilon.of("0.01")
    assert len(rounds) == 4  # twelve halvings: 4, 3, 3 and 2
    assert sum(rounds) == Epsilon.of("0.99").units
    rounds[-1] -= int(0.99e15 * 0.2)
    assert np.array(rounds[1:]) / np.array(rounds[:-1]) == pytest.approx(1.5, rel=1e-9)
    assert rounds[0] == pytest.approx(0.8 * 0.99e15 * 8 / 65, rel=1e-9)


def with_prior(
    counts: IntArray, weights: IntArray, foresight: float
) -> tuple[Release, list[IntArray]]:
    """A release without noise, and the prices of its rounds."""
    matrix = FrequencyMatrix.from_dense(grid(64, 64), counts)
    prior = Prior.of(weights, matrix.domain, "before", "0" * 64)
    chosen = Htf(foresight=foresight, look_share=0.0)  # one line of the ledger for each round
    release = publish(matrix, "1", chosen, prior=prior, noise=ScriptedNoise())
    table = release.measurements
    return release, [table.epsilon[table.line == n] for n in range(1, len(release.ledger))]


def test_foresight_saves_on_rounds_before_the_last_while_counts_agree() -> None:
    """With the right prior each round costs four times the one before; every path spends all all the same."""
    counts = uneven(10**6)
    release, rounds = with_prior(counts, counts, 4.0)
    lowest = [int(prices.min()) for prices in rounds]
    assert lowest[1] / lowest[0] == pytest.approx(4, rel=1e-9)
    assert set(spent_on_paths(release).tolist()) == {release.epsilon.units}
    assert not [check for check in verify(release) if not (check.passed or check.name == "noise")]
    _, blind = with_prior(counts, counts, 0.0)
    assert blind[0][0] > 2 * rounds[0][0]
    assert rounds[-1].max() > 1.2 * blind[-1].max()


def test_a_prior_that_the_first_round_refutes_decides_nothing_more() -> None:
    """Rounds after the first cost and cut as they would without it, from what the first has left."""
    counts = np.zeros((64, 64), dtype=np.int64)
    counts[:8, :8] = uneven(10**6)[:8, :8]
    wrong, rounds = with_prior(counts, counts[::-1, ::-1], 4.0)
    assert rounds[2].min() / rounds[1].min() == pytest.approx(1.5, rel=1e-9)
    assert set(spent_on_paths(wrong).tolist()) == {wrong.epsilon.units}
    right, _ = with_prior(counts, counts, 0.0)
    assert np.array_equal(
        np.sort(wrong.tree.low[wrong.leaves], axis=0), np.sort(right.tree.low[right.leaves], axis=0)
    )


def test_forecasts_join_noisy_counts_where_they_are_near() -> None:
    """By the inverse of variances; a count that is far from its forecast stands."""
    ones = np.ones(3, dtype=np.int64)
    counts, variances = np.array([90.0, 0.0, 900.0]), np.full(3, 100.0)
    found = module.GrowingRegions(ones, ones, ones, counts, variances, np.ones(3), np.ones(3))
    joined = module._joined(found, np.full(3, 100.0))
    drift = (module.DRIFT * 100) ** 2 + 101
    assert joined.counts[0] == pytest.approx((90 / 100 + 100 / drift) / (1 / 100 + 1 / drift))
    assert joined.counts[1:].tolist() == [0.0, 900.0]
    assert joined.variances[1:].tolist() == [100.0, 100.0]
    assert joined.variances[0] < 100


def uneven(total: int) -> IntArray:
    """Patches of all sizes, from the whole map down to a cell, some several times as full as others."""
    generator, weights = np.random.default_rng(8), np.ones((64, 64))
    for patches in (2, 4, 8, 16, 32, 64):
        factors = np.exp(generator.normal(size=(patches, patches)))
        weights *= np.kron(factors, np.ones((64 // patches, 64 // patches)))
    return np.asarray(generator.multinomial(total, weights.ravel() / weights.sum())).reshape(64, 64)


def test_an_even_map_is_cut_less_than_an_uneven_one() -> None:
    total = 400_000
    even = FrequencyMatrix.from_dense(grid(64, 64), np.full((64, 64), total // 4096))
    rough = FrequencyMatrix.from_dense(grid(64, 64), uneven(total))
    boxes = [len(publish(m, "0.1", "htf", noise=SeededNoise(4))) for m in (even, rough)]
    assert boxes[0] < boxes[1] / 2


def test_more_records_or_more_budget_make_more_boxes() -> None:
    few, many = (city_matrix(points=points) for points in (2_000, 200_000))
    sizes = [
        len(publish(matrix, epsilon, "htf", noise=SeededNoise(4)))
        for matrix, epsilon in ((few, "0.1"), (few, "1"), (many, "1"))
    ]
    assert sizes[0] < sizes[1] < sizes[2]


def test_a_nearly_empty_map_has_few_boxes_and_nothing_where_nothing_is() -> None:
    cells = np.zeros((256, 256), dtype=np.int64)
    cells[:16, :16] = 200  # all records in 1/256 of the map
    matrix = FrequencyMatrix.from_dense(grid(256, 256), cells)
    release = publish(matrix, "0.5", "htf", noise=SeededNoise(4))
    assert len(release) < 500
    outside = np.any(release.low >= 16, axis=1)
    assert release.estimates[~outside].sum() == pytest.approx(51_200, rel=0.02)
    assert np.mean(release.estimates[outside] == 0) > 0.7
    assert release.estimates[outside].sum() < 200


def test_noise_alone_does_not_grow_a_tree_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """With any trace of a count to be cut, and cells by the million million."""
    monkeypatch.setattr(module, "MOST_LEAVES", 1000)
    cells = np.zeros((2, 0), dtype=np.int64)
    empty = FrequencyMatrix.from_cells(grid(2**20, 2**20), cells)
    for mechanism in (Htf(leaf_signal=1e-3), Htf(growth=16, halvings=12)):
        release = publish(empty, "1", mechanism, noise=SeededNoise(1))
        assert len(release) <= 1000
        assert set(spent_on_paths(release).tolist()) == {release.epsilon.units}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("epsilon", ["1e-13", "1", "1000"])
def test_as_many_records_as_there_may_be(epsilon: str) -> None:
    matrix = FrequencyMatrix.from_cells(
        grid(2**20, 2**20), np.array([[5, 2**19], [7, 3]]), np.array([2**40 - 9, 9])
    )
    release = publish(matrix, epsilon, "htf", noise=SeededNoise(1))
    assert release.derived.parts.estimates.sum() == release.estimates.sum()
    answer = release.count([0, 0, 2**20, 2**20])
    assert np.all(np.isfinite(answer.count))
    if epsilon == "1000":
        assert release.estimates.sum() == 2**40
