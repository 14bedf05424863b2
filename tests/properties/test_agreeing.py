"""Counts that add up: their exact law, their loss by enumeration, and the formulas for their variances."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from htf import Curator, Epsilon, FrequencyMatrix, InputError
from htf.curator.agreeing import AgreeingCounts, geometric
from htf.curator.cells import ExactCells
from htf.curator.noise import FastNoise, NoiseSource, OpenDPNoise, ScriptedNoise, SeededNoise
from htf.estimation.agreeing import AgreeingLaw, tiers
from htf.estimation.least_squares import TreeCounts, least_squares
from htf.frame.domain import IntArray
from htf.frame.nesting import Nesting
from htf.frame.tree import RegionTree
from htf.privacy.epsilon import UNITS_PER_EPSILON
from support import grid
from telling import examples

ALARM = (
    1e-9  # of each comparison of frequencies: with six of them, one false alarm in 160 million runs
)
SOURCES: dict[str, Callable[[], NoiseSource]] = {
    "seeded": lambda: SeededNoise(5),
    "fast": FastNoise,
    "opendp": OpenDPNoise,
}
every_source = pytest.mark.parametrize("source", SOURCES)


def units(*epsilons: float) -> IntArray:
    return np.array([round(epsilon * UNITS_PER_EPSILON) for epsilon in epsilons])


def rows_of(blocks: int) -> tuple[RegionTree, IntArray, IntArray, IntArray]:
    """Blocks of three cells, of which two make up a half: the tree, the blocks, the halves, and the cells."""
    tree, zero = RegionTree((blocks, 3)), np.zeros(1, dtype=np.int64)
    rows = tree.cut(zero, zero, np.arange(1, blocks), np.array([blocks - 1]))
    one = np.ones(blocks, dtype=np.int64)
    halves = tree.cut(rows, one, 2 * one, one).reshape(-1, 2)
    cells = tree.cut(halves[:, 0], one, one, one).reshape(-1, 2)
    return tree, rows, halves, cells


def law(prices: dict[str, float], reach: int) -> dict[tuple[int, int, int], float]:
    """The probabilities of the noise of three cells, by their definition."""
    span = np.arange(-reach, reach + 1)
    a, b, c = np.meshgrid(span, span, span, indexing="ij")
    cost = prices["cell"] * (abs(a) + abs(b)) + prices["half"] * (abs(a + b) + abs(c))
    weight = np.exp(-cost - prices["row"] * abs(a + b + c))
    weight /= weight.sum()
    triples = zip(a.ravel().tolist(), b.ravel().tolist(), c.ravel().tolist(), strict=True)
    return dict(zip(triples, weight.ravel().tolist(), strict=True))


PRICES = {"cell": 0.9, "half": 0.4, "row": 0.7}


def measure_rows(noise: NoiseSource, blocks: int) -> tuple[IntArray, ...]:
    """The noisy cells, halves and rows of blocks, where nothing is."""
    tree, rows, halves, cells = rows_of(blocks)
    regions = np.concatenate([cells.ravel(), rows, halves.ravel()])
    price = np.repeat(
        units(PRICES["cell"], PRICES["row"], PRICES["half"]), [2 * blocks, blocks, 2 * blocks]
    )
    question = AgreeingCounts("test", regions, price)
    question.check(tree)
    empty = FrequencyMatrix.from_dense(grid(blocks, 3), np.zeros((blocks, 3), dtype=np.int64))
    found = question.answer(ExactCells(empty, tree), noise)
    return found[: 2 * blocks].reshape(-1, 2), found[2 * blocks : 3 * blocks], found[3 * blocks :].reshape(-1, 2)  # fmt: skip


@every_source
def test_noise_has_the_law_of_the_proof(source: str) -> None:
    """docs/proofs/agreeing-counts.md, by enumerating it; and everything adds up."""
    blocks = 30_000
    cells, rows, halves = measure_rows(SOURCES[source](), blocks)
    assert np.array_equal(cells.sum(axis=1), halves[:, 0])
    assert np.array_equal(halves.sum(axis=1), rows)
    chances = law(PRICES, 25)
    seen = Counter(zip(*cells.T.tolist(), halves[:, 1].tolist(), strict=True))
    common = [triple for triple, chance in chances.items() if chance * blocks >= 10]
    assert len(common) > 100
    observed = [seen[triple] for triple in common]
    expected = [chances[triple] * blocks for triple in common]
    observed.append(blocks - sum(observed))
    expected.append(blocks - sum(expected))
    assert stats.chisquare(observed, expected).pvalue > ALARM


def test_the_comparison_can_fail() -> None:
    """Noise of levels that are drawn apart has another law."""
    cells, _, halves = measure_rows(SeededNoise(5), 30_000)
    chances = law({**PRICES, "row": 0.0}, 25)
    first = Counter(zip(*cells.T.tolist(), halves[:, 1].tolist(), strict=True))
    common = [triple for triple, chance in chances.items() if chance * 30_000 >= 10]
    observed = [first[triple] for triple in common]
    expected = [chances[triple] * 30_000 for triple in common]
    observed.append(30_000 - sum(observed))
    expected.append(30_000 - sum(expected))
    assert stats.chisquare(observed, expected).pvalue < 1e-50


@pytest.mark.parametrize("cell", range(3))
def test_one_record_changes_no_outcome_by_more_than_its_path(cell: int) -> None:
    """By enumeration, and some outcome by as much: the ledger's sum along the path is what is lost."""
    chances = law(PRICES, 12)
    path = PRICES["row"] + PRICES["half"] + (PRICES["cell"] if cell < 2 else 0.0)
    losses = []
    for triple, chance in chances.items():
        moved = tuple(n - (place == cell) for place, n in enumerate(triple))
        if moved in chances:
            losses.append(abs(math.log(chance / chances[moved])))
    assert max(losses) == pytest.approx(path, rel=1e-9)


@every_source
def test_geometric_numbers_come_of_laplace_noise(source: str) -> None:
    """P(G >= k) = exp(-rate k), against the tails of the binomial law."""
    drawn = geometric(SOURCES[source]().draw(np.full(20_000, units(0.7)[0]), 1))
    assert drawn.min() >= 0
    for k in (1, 2, 5):
        result = stats.binomtest(int(np.sum(drawn >= k)), 20_000, math.exp(-0.7 * k))
        assert result.pvalue > ALARM / 3


def test_the_curator_charges_the_path_and_answers_what_adds_up() -> None:
    matrix = FrequencyMatrix.from_dense(grid(4), np.array([5, 0, 7, 1000]))
    curator = Curator(matrix, Epsilon.of(1), SeededNoise(1))
    tree = curator.window.tree
    halves = tree.split(np.array([0]), np.array([0]), np.array([2])).ravel()
    question = next(curator.window.count_agreeing([0, *halves], units(0.3, 0.7, 0.6), "both"))
    whole, *parts = curator.measure(question).tolist()
    assert whole == sum(parts)
    assert curator.spent == Epsilon.of(1)
    assert abs(whole - 1012) < 100  # 30 scales


def test_without_noise_counts_are_exact() -> None:
    matrix = FrequencyMatrix.from_dense(grid(4), np.array([5, 0, 7, 1000]))
    curator = Curator(matrix, Epsilon.of(1), ScriptedNoise())
    halves = curator.window.tree.split(np.array([0]), np.array([0]), np.array([2])).ravel()
    question = next(curator.window.count_agreeing([0, *halves], units(0.3, 0.7, 0.6), "both"))
    assert curator.measure(question).tolist() == [1012, 5, 1007]


def test_noise_that_never_agrees_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from htf.curator import agreeing

    monkeypatch.setattr(agreeing, "SURELY", 0.05)
    matrix = FrequencyMatrix.from_dense(grid(4), np.array([5, 0, 7, 1000]))
    curator = Curator(matrix, Epsilon.of(1), ScriptedNoise([3]))
    halves = curator.window.tree.split(np.array([0]), np.array([0]), np.array([2])).ravel()
    question = next(curator.window.count_agreeing([0, *halves], units(0.3, 0.7, 0.6), "both"))
    with pytest.raises(InputError, match="scripted never adds up"):
        curator.measure(question)


def test_questions_that_make_no_sense_are_refused_before_they_are_charged() -> None:
    matrix = FrequencyMatrix.from_dense(grid(300, 4), np.ones((300, 4), dtype=np.int64))
    curator = Curator(matrix, Epsilon.of(1), SeededNoise(1))
    tree = curator.window.tree
    zero = np.zeros(1, dtype=np.int64)
    rows = tree.cut(zero, zero, np.arange(1, 300), np.array([299]))
    for regions, price, says in (
        ([0, *rows[1:]], units(0.1), "all parts of a region, or none"),
        ([*rows, rows[0]], units(0.1), "regions that differ"),
        ([0, *rows], units(1e-14), "does not fit into 64 bits"),
    ):
        question = AgreeingCounts("test", np.array(regions), np.full(len(regions), price[0]))
        with pytest.raises(InputError, match=says):
            curator.measure(question)
    assert curator.spent.units == 0


def test_noise_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from htf.curator import agreeing

    monkeypatch.setattr(agreeing, "MOST_DRAWS", 1000)
    tree, zero = RegionTree((300, 4)), np.zeros(1, dtype=np.int64)
    rows = tree.cut(zero, zero, np.arange(1, 300), np.array([299]))
    regions = np.append(zero, rows)
    AgreeingCounts("test", regions, np.append(units(0.01), np.full(300, units(0.5)))).check(tree)
    with pytest.raises(InputError, match="Count them apart"):
        AgreeingCounts("test", regions, np.append(units(0.5), np.full(300, units(0.5)))).check(tree)


def test_a_region_that_would_be_tried_too_often_is_refused_or_drawn_apart() -> None:
    """However few draws each try takes."""
    tree, zero = RegionTree((2,)), np.zeros(1, dtype=np.int64)
    tree.cut(zero, zero, np.ones(1, dtype=np.int64), np.ones(1, dtype=np.int64))
    regions, price = np.arange(3), units(1, 6e-7, 6e-7)
    with pytest.raises(InputError, match="Count them apart"):
        AgreeingCounts("test", regions, price).check(tree)
    assert tiers(Nesting.of(tree, regions), price, 1e9).tolist() == [0, 1, 1]


def test_regions_that_are_nested_too_deep_are_refused() -> None:
    """Before the charge, where drawing would run out of stack."""
    tree, region = RegionTree((2000,)), np.zeros(1, dtype=np.int64)
    one = np.ones(1, dtype=np.int64)
    for cut in range(1, 1500):
        region = tree.cut(region, 0 * one, cut * one, one)[1:]
    regions = np.arange(len(tree))
    with pytest.raises(InputError, match="more than 64 deep"):
        AgreeingCounts("test", regions, np.full(len(regions), units(1e-8)[0])).check(tree)


# --- what is known about the noise


def two_levels(groups: int, size: int) -> tuple[RegionTree, IntArray]:
    """A map, its groups and their cells."""
    tree, zero = RegionTree((groups * size,)), np.zeros(1, dtype=np.int64)
    parts = tree.cut(zero, zero, np.arange(size, groups * size, size), np.array([groups - 1]))
    inner = (np.arange(groups)[:, None] * size + np.arange(1, size)).ravel()
    tree.cut(parts, np.zeros(groups, dtype=np.int64), inner, np.full(groups, size - 1))
    return tree, np.arange(len(tree))


@pytest.mark.parametrize("shares", [(0.06, 0.03, 0.91), (0.3, 0.3, 0.4), (0.02, 0.5, 0.48)])
def test_variances_are_those_of_the_noise(shares: tuple[float, float, float]) -> None:
    """By formula, within what 400 draws leave open: 7 % of the variance of the map, and 2 % of the others. Where upper
    levels have much, the formula is on the safe side for cells: large noise is drawn again more often than small."""
    tree, regions = two_levels(12, 12)
    price = np.repeat(units(*(0.5 * share for share in shares)), [1, 12, 144])
    empty = FrequencyMatrix.from_dense(grid(144), np.zeros(144, dtype=np.int64))
    question, cells, noise = AgreeingCounts("test", regions, price), ExactCells(empty, tree), SeededNoise(3)  # fmt: skip
    drawn = np.array([question.answer(cells, noise) for _ in range(400)])
    counts = TreeCounts()
    counts.add(regions, drawn[0], price, agreeing=True)
    estimates, variances = least_squares(tree, counts)
    assert estimates == pytest.approx(drawn[0])  # they agree, so nothing moves
    found = [np.mean(drawn[:, some] ** 2) for some in (slice(0, 1), slice(1, 13), slice(13, None))]
    expected = [np.mean(variances[some]) for some in (slice(0, 1), slice(1, 13), slice(13, None))]
    assert found[0] == pytest.approx(expected[0], rel=0.35)
    assert found[1] == pytest.approx(expected[1], rel=0.12)
    assert 0.8 * expected[2] < found[2] < 1.05 * expected[2]


@pytest.mark.parametrize(("leaf", "root"), [(0.5, 0.5), (0.1, 0.9), (3, 3), (1, 8), (0.9, 0.1)])
def test_variances_of_two_parts_are_on_the_safe_side(leaf: float, root: float) -> None:
    """By enumeration: never too small by more than a hundredth, and up to twice too large for moderate epsilons."""
    tree, zero = RegionTree((2,)), np.zeros(1, dtype=np.int64)
    tree.cut(zero, zero, np.ones(1, dtype=np.int64), np.ones(1, dtype=np.int64))
    price = units(root, leaf, leaf)
    counts = TreeCounts()
    counts.add(np.arange(3), np.zeros(3, dtype=np.int64), price, agreeing=True)
    variances = least_squares(tree, counts)[1]
    a, b = np.meshgrid(np.arange(-300, 301), np.arange(-300, 301))
    weight = np.exp(-leaf * (abs(a) + abs(b)) - root * abs(a + b))
    weight /= weight.sum()
    exact = np.array([np.sum(weight * (a + b) ** 2), np.sum(weight * a**2)])
    assert np.all(variances[:2] >= 0.99 * exact)
    if leaf < 1:
        assert np.all(variances[:2] <= 2 * exact)


@pytest.mark.parametrize("rate", [0.05, 0.2, 1.0])
def test_expected_draws_are_those_that_are_taken(rate: float) -> None:
    class Counting(SeededNoise):
        taken = 0

        def draw(self, epsilon_units: IntArray, sensitivity: int) -> IntArray:
            self.taken += len(epsilon_units)
            return super().draw(epsilon_units, sensitivity)

    tree, regions = two_levels(8, 16)
    price = np.repeat(units(rate * 0.5, rate, 1.0), [1, 8, 128])
    empty = FrequencyMatrix.from_dense(grid(128), np.zeros(128, dtype=np.int64))
    noise = Counting(2)
    for _ in range(200):
        AgreeingCounts("test", regions, price).answer(ExactCells(empty, tree), noise)
    expected = AgreeingLaw.of(Nesting.of(tree, regions), price).total_draws
    assert noise.taken / 200 == pytest.approx(expected, rel=0.25)


def test_regions_that_take_long_to_draw_are_drawn_apart() -> None:
    tree, regions = two_levels(8, 16)
    nesting = Nesting.of(tree, regions)
    price = np.repeat(units(0.001, 1.0, 1.0), [1, 8, 128])
    assert not tiers(nesting, price, 1000.0).any()
    apart = tiers(nesting, price, 2.0)
    assert (apart[:9].max(), apart[9:].min(), apart.max()) == (0, 1, 1)
    both = tiers(nesting, np.repeat(units(30.0, 1.0, 1.0), [1, 8, 128]), 1.0)
    assert np.unique(both).tolist() == [0, 1, 2]


@given(st.data())
@examples(60)
def test_nesting_is_that_of_boxes(data: st.DataObject) -> None:
    """Against a naive search through all pairs."""
    tree, _ = two_levels(3, 4)
    groups = data.draw(st.sets(st.integers(1, 3)))
    chosen = [0] * data.draw(st.booleans()) + sorted(groups)
    inside = [
        region for region in range(4, 16) if tree.parent[region] in groups or (chosen[:1] == [0])
    ]
    chosen = data.draw(st.permutations(chosen + inside))
    if not chosen:
        return
    nesting = Nesting.of(tree, np.array(chosen))
    for row, region in enumerate(chosen):
        around = [
            other
            for other, one in enumerate(chosen)
            if one != region
            and tree.low[one, 0] <= tree.low[region, 0]
            and tree.high[region, 0] <= tree.high[one, 0]
        ]
        smallest = min(around, key=lambda other: tree.cells(np.array([chosen[other]]))[0], default=-1)  # fmt: skip
        assert nesting.above[row] == smallest
        assert nesting.depth[row] == len(around)
