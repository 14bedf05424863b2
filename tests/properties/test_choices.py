"""Measurements that choose: medians and PrivTree's splits, their exact probabilities and their loss."""

from __future__ import annotations

import math
import random
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from htf import Curator, Epsilon, FrequencyMatrix, InputError
from htf.curator import kernels, medians
from htf.curator.cells import ExactCells
from htf.curator.measurements import (
    LinearQueries,
    MedianCuts,
    PrivTreeSplits,
    joint,
    round_up_logarithm,
)
from htf.curator.medians import _cumulated, choose_medians, choose_run_exactly, uniform_below
from htf.curator.noise import SeededNoise
from htf.curator.sampler import Words
from htf.frame.tree import RegionTree
from support import city_matrix, dense, grid, matrices, with_one_more
from telling import examples

ALARM = 1e-6  # for each statistical check; seeds are fixed

# --- medians --------------------------------------------------------------------------------------


def cut_weights(counts: Any, epsilon: float) -> Any:
    """The exponential mechanism, cut by cut."""
    left = np.cumsum(counts)[:-1]
    weights = np.exp(-epsilon / 2 * np.abs(2 * left - counts.sum()).astype(float))
    return weights / weights.sum()


def draw_cuts(counts: Any, epsilon: str, size: int, seed: int = 5) -> Any:
    """Many choices for one region, as a column of a map whose cells are given."""
    occupied = np.flatnonzero(counts)
    rows = np.full(size, 0)
    return choose_medians(
        rows,
        rows + len(occupied),
        rows,
        rows,
        rows + len(counts),
        np.full(size, Epsilon.of(epsilon).units),
        occupied[None].astype(np.int32),
        counts[occupied],
        SeededNoise(seed).words,
    )


@pytest.mark.parametrize("epsilon", ["0.01", "0.4", "3"])
@pytest.mark.parametrize(
    "counts",
    [
        [3, 0, 0, 1, 5, 0, 2],
        [0, 0, 0, 0],
        [0, 0, 9, 0, 0, 0],
        [1, 1],
        [50, 0, 0, 0, 0, 49, 0, 0, 3],
    ],
    ids=str,
)
def test_cuts_have_their_probabilities(counts: list[int], epsilon: str) -> None:
    array = np.array(counts)
    cuts = draw_cuts(array, epsilon, 20_000)
    observed = np.bincount(cuts, minlength=len(counts))[1:]
    expected = cut_weights(array, float(epsilon)) * 20_000
    enough = expected > 5
    if enough.sum() > 1:
        kept = observed[enough].sum() / expected[enough].sum()
        assert stats.chisquare(observed[enough], expected[enough] * kept).pvalue > ALARM
    assert observed[~enough].sum() <= 40
    assert observed.sum() == 20_000


def test_wrong_probabilities_would_be_seen() -> None:
    counts = np.array([3, 0, 0, 1, 5, 0, 2])
    observed = np.bincount(draw_cuts(counts, "0.4", 20_000), minlength=7)[1:]
    wrong = cut_weights(counts, 0.5) * 20_000
    assert stats.chisquare(observed, wrong).pvalue < ALARM


@given(st.lists(st.integers(0, 6), min_size=2, max_size=12))
@examples(100)
def test_runs_list_every_cut_once_with_its_utility(counts: list[int]) -> None:
    array, occupied = np.array(counts), np.flatnonzero(counts)
    order = np.random.default_rng(1).permutation(len(occupied))
    runs = kernels.median_runs(
        occupied[order].astype(np.int32), array[occupied[order]], 0, len(counts)
    )
    found = {}
    for first, size, utility in zip(*runs, strict=True):
        assert size > 0
        found.update(dict.fromkeys(range(first, first + size), int(utility)))
    expected = {k: abs(2 * sum(counts[:k]) - sum(counts)) for k in range(1, len(counts))}
    assert found == expected


@given(st.lists(st.integers(0, 30), min_size=2, max_size=12), st.integers(0, 2**64 - 1))
@examples(150)
def test_the_exact_path_agrees_with_the_float_path(counts: list[int], drawn: int) -> None:
    """Wherever floats are sure of the run, decimals choose the same one."""
    array, occupied = np.array(counts), np.flatnonzero(counts).astype(np.int32)
    runs = kernels.median_runs(occupied, array[occupied], 0, len(counts))
    one = np.zeros(1, dtype=np.int64)
    first, size = kernels.choose_median_runs(
        one, one + len(occupied), one, one, one + len(counts), np.array([0.15]),
        np.array([drawn / 2.0**64]), occupied[None], array[occupied],
    )  # fmt: skip
    exact = choose_run_exactly(runs, Fraction(15, 100), drawn, SeededNoise(1).words)
    if size[0] > 0:
        assert (first[0], size[0]) == (runs[0][exact], runs[1][exact])


def test_a_number_on_a_bound_is_decided_by_more_words() -> None:
    """Two cuts of equal weight: exactly one half is the second one's; just below, the first's."""
    runs = np.array([1, 2]), np.array([1, 1]), np.array([5, 5])
    asked = []

    def words(number: int) -> Any:
        asked.append(number)
        return np.full(number, 7, dtype=np.uint32)

    assert choose_run_exactly(runs, Fraction(1, 10), 2**63, words) == 1
    assert choose_run_exactly(runs, Fraction(1, 10), 2**63 - 1, words) == 0
    assert asked, "the bound itself cannot be told in 64 bits"


def test_uniform_numbers_beside_a_bound_fall_on_the_right_side() -> None:
    """Numbers of 160 bits around every bound, which the first 64 leave open."""
    generator, asked = random.Random(7), 0
    for _ in range(12):
        sizes = np.array([generator.randrange(1, 9) for _ in range(generator.randrange(2, 9))])
        utilities = np.array([generator.randrange(40) for _ in sizes])
        runs = np.cumsum(sizes) - sizes, sizes, utilities
        rate = Fraction(generator.choice([1, 10, 90]), 10 * generator.randrange(2, 20))
        bounds = _cumulated(runs, rate, 300)
        for bound in bounds[1:-1]:
            for away in (-(2**70), -(2**30), -3, 3, 2**30, 2**70):
                number = min(max(int(bound * 2**160) + away, 0), 2**160 - 1)
                left = [number >> shift & 0xFFFFFFFF for shift in (64, 32, 0)]

                def words(size: int, left: list[int] = left) -> Words:
                    return np.array([left.pop(0) for _ in range(size)], dtype=np.uint32)

                chosen = choose_run_exactly(runs, rate, number >> 96, words)
                assert chosen == sum(b <= Fraction(number, 2**160) for b in bounds[1:-1])
                asked += len(left) < 3
    assert asked > 100


@pytest.mark.parametrize("side", [1, -1])
def test_a_bound_beside_the_first_64_bits_is_decided_by_more(side: int) -> None:
    """It is 2**-110 away from three quarters, and the uniform number between the two."""
    bound = Fraction(3, 4) + side * Fraction(1, 2**110)
    context = Context(prec=150)
    odds = bound / (1 - bound)
    rate = Fraction(context.ln(context.divide(Decimal(odds.numerator), Decimal(odds.denominator))))
    runs = np.array([1, 2]), np.array([1, 1]), np.array([0, 1])
    word, first = (0, 3 * 2**62) if side > 0 else (2**32 - 1, 3 * 2**62 - 1)

    def words(size: int) -> Words:
        return np.full(size, word, dtype=np.uint32)

    assert choose_run_exactly(runs, rate, first, words) == (0 if side > 0 else 1)


def cut_bounds(counts: Any, rate: Fraction) -> list[tuple[int, int, int]]:
    """First and last cuts of the runs of equally good ones, and where in 2**64 their share ends."""
    context = Context(prec=60)
    weights: dict[int, tuple[int, int, Fraction]] = {}
    for cut in range(1, len(counts)):
        left = int(counts[:cut].sum())
        exponent = -rate * abs(2 * left - int(counts.sum()))
        decimal = context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
        first, _, weight = weights.get(left, (cut, cut, Fraction(0)))
        weights[left] = first, cut, weight + Fraction(context.exp(decimal))
    total, reached, bounds = sum(weight for *_, weight in weights.values()), Fraction(0), []
    for first, last, weight in weights.values():
        reached += weight
        bounds.append((first, last, int(reached / total * 2**64)))
    return bounds


class WrittenWords(SeededNoise):
    """Uniform words that were written down, and after them one number of 64 bits again and again."""

    def __init__(self, wide: list[int], then: int) -> None:
        super().__init__(0)
        self.then = then
        halves = [[number >> 32 for number in wide], [number & 0xFFFFFFFF for number in wide]]
        self.waiting = halves[0] + halves[1]

    def words(self, number: int) -> Any:
        taken, self.waiting = self.waiting[:number], self.waiting[number:]
        half = (number - len(taken)) // 2
        return np.array([*taken, *[0] * half, *[self.then] * half], dtype=np.uint32)


def test_cuts_in_doubt_are_chosen_at_the_rate_that_was_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Uniform numbers beside every bound, where floats leave it to the exact path, in several regions at
    once: on either side of it the runs are those of the definition, each row at its own epsilon. Within a
    run, the first cut and the last can be chosen."""
    counts = np.array(
        [[3, 0, 1, 0, 2], [0, 4, 0, 0, 1], [5, 0, 0, 2, 0], [0, 1, 0, 6, 0], [2, 0, 0, 0, 1]]
    )
    matrix = FrequencyMatrix.from_dense(grid(5, 5), counts)
    parts = {0: counts, 1: counts[:2], 2: counts[2:]}
    rows = [
        (1, 1, 0, 4),
        (2, 1, 0, 9),
        (0, 0, 0, 2),
        (2, 0, 2, 7),
        (1, 1, 0, 1),
    ]  # low, and epsilon
    regions, axes, low, tenths = np.array(rows).T
    bounds = [
        cut_bounds(parts[region].sum(axis=1 - axis), Fraction(tenth, 20))
        for region, axis, _, tenth in rows
    ]
    in_doubt = []

    def choose(*given_: Any) -> int:
        in_doubt.append(given_)
        return choose_run_exactly(*given_)

    monkeypatch.setattr(medians, "choose_run_exactly", choose)
    numbers = range(max(map(len, bounds)) - 1)
    ends = {0: 0, 1: 11}  # 11 leaves the largest rest by 2, 3 and 4, the numbers of cuts of a run
    for number, away, end in product(numbers, (-(10**6), 10**6), ends):
        runs = [min(number, len(row) - 2) for row in bounds]
        beside = [row[run][2] + away for row, run in zip(bounds, runs, strict=True)]
        curator = Curator(matrix, Epsilon.of(3), WrittenWords(beside, ends[end]))
        curator.window.tree.split(*(np.array([value]) for value in (0, 0, 2)))
        cuts = curator.measure(MedianCuts("m", regions, tenths * 10**14, axes))
        wanted = [row[run + (away > 0)][end] for row, run in zip(bounds, runs, strict=True)]
        assert (cuts - low).tolist() == wanted
    assert len(in_doubt) == 4 * len(rows) * len(numbers)


def test_floats_leave_it_open_as_far_as_they_may_err() -> None:
    """Beside a bound they decide nothing, and a little further off what is right; also among many runs,
    whose sums are large and were rounded often."""
    number, rate = 3000, 1e-5
    utilities = np.abs(2 * np.arange(1, number) - number)
    reached = np.cumsum(np.exp(-rate * (utilities - utilities.min())))
    tried = np.array([0, 700, 1499, 2500, number - 3])
    bounds, doubt = reached[tried] / reached[-1], 1e-12 + (number - 1) * 1e-15
    for far, known in ((0, False), (0.9, False), (1.1, True)):
        for side in (-1, 1):
            uniforms = bounds + side * far * doubt
            rows = np.zeros(len(tried), dtype=np.int64)
            first, size = kernels.choose_median_runs(
                rows,
                rows + number,
                rows,
                rows,
                rows + number,
                np.full(len(tried), rate),
                uniforms,
                np.arange(number, dtype=np.int32)[None],
                np.ones(number, dtype=np.int64),
            )
            assert size.tolist() == [int(known)] * len(tried)
            if known:
                assert first.tolist() == (tried + 1 + (side > 0)).tolist()


def test_uniform_numbers_are_uniform_and_in_range() -> None:
    limits = np.repeat([1, 2, 3, 10, 2**31], 8000)
    drawn = uniform_below(limits, SeededNoise(2).words)
    assert np.all((drawn >= 0) & (drawn < limits))
    for limit in (2, 3, 10):
        assert stats.chisquare(np.bincount(drawn[limits == limit])).pvalue > ALARM


def test_uneven_words_are_drawn_again() -> None:
    """2**64 is 1 modulo 3: its largest word must not be used."""
    script = iter([2**32 - 1, 2**32 - 1, 0, 5])

    def words(number: int) -> Any:
        return np.array([next(script) for _ in range(number)], dtype=np.uint32)

    assert uniform_below(np.array([3]), words).tolist() == [5 % 3]


@pytest.mark.parametrize("limit", [2, 3, 5, 6, 7, 100, 2**31, 2**31 - 1, 2**62 + 1])
def test_as_many_words_lead_to_each_number(limit: int) -> None:
    """Of 2**64 words the last few are drawn again, so that the others are a multiple of the limit."""
    end = 2**64 // limit * limit
    for word in {0, limit, end - 1, end, 2**64 - 1} - {2**64}:
        script = [word >> 32, word & 0xFFFFFFFF, 0, 1]

        def words(number: int, script: list[int] = script) -> Any:
            return np.array([script.pop(0) for _ in range(number)], dtype=np.uint32)

        used = word if word < end else 1
        assert uniform_below(np.array([limit]), words).tolist() == [used % limit]
        assert len(script) == (2 if word < end else 0)


@given(st.data(), matrices((1,)))
@examples(100)
def test_median_loss_is_within_epsilon(data: Any, matrix: FrequencyMatrix) -> None:
    """Exact probabilities of every cut on neighbours, and the utility's sensitivity."""
    counts = dense(matrix)
    if len(counts) < 2:
        return
    cell = data.draw(st.integers(0, len(counts) - 1))
    more = dense(with_one_more(matrix, [cell]))
    loss = np.abs(np.log(cut_weights(counts, 0.7) / cut_weights(more, 0.7)))
    assert loss.max() <= 0.7 + 1e-9
    utility = [np.abs(2 * np.cumsum(c)[:-1] - c.sum()) for c in (counts, more)]
    assert np.abs(utility[0] - utility[1]).max() <= MedianCuts.sensitivity


def test_medians_through_the_curator() -> None:
    """With a large epsilon the halves of every region hold nearly the same."""
    matrix = city_matrix()
    curator = Curator(matrix, Epsilon.of(1000), SeededNoise(1))
    tree = curator.window.tree
    level = np.zeros(1, dtype=np.int64)
    for axis in (1, 0, 1):
        axes = np.full(len(level), axis)
        cuts = curator.measure(MedianCuts("m", level, np.full(len(level), 10**17), axes))
        level = tree.split(level, axes, cuts).ravel()
    counts = ExactCells(matrix, tree).count(level)
    assert counts.max() < 2 * counts.min()
    assert curator.spent == Epsilon.of(300)
    flat = Curator(FrequencyMatrix.from_dense(grid(1, 2), [[1, 1]]), Epsilon.of(1), SeededNoise(1))
    with pytest.raises(InputError, match="one cell"):
        flat.measure(MedianCuts("m", np.array([0]), np.array([1]), np.array([0])))


# --- PrivTree -------------------------------------------------------------------------------------


def stop_probability(count: int, depth: int, question: PrivTreeSplits, decay: int) -> float:
    """P(not split), from the definition."""
    biased = max(count - depth * decay, question.threshold - decay)
    q, m = math.exp(-question.rate), question.threshold + 1 - biased
    return 1 - q**m / (1 + q) if m >= 1 else q ** (1 - m) / (1 + q)


def tree_probabilities(counts: Any, question: PrivTreeSplits, decay: int) -> dict[str, float]:
    """The exact probability of every tree over a row of 2**k cells, named by its decisions."""

    def trees(part: Any, depth: int) -> dict[str, float]:
        if len(part) == 1:
            return {".": 1.0}
        stop = stop_probability(int(part.sum()), depth, question, decay)
        left, right = (trees(half, depth + 1) for half in np.split(part, 2))
        found = {"L": stop}
        for a, chance in left.items():
            for b, other in right.items():
                found[f"({a}{b})"] = (1 - stop) * chance * other
        return found

    return trees(np.asarray(counts), 0)


def question_of(epsilon: str, threshold: int = 0, axes: Any = ((0,),)) -> PrivTreeSplits:
    return PrivTreeSplits("p", *joint(Epsilon.of(epsilon)), axes, threshold)


def worst_loss(question: PrivTreeSplits, decay: int, cells: int = 8, largest: int = 14) -> float:
    """The largest |ln ratio| over trees and neighbours with all records in the first cell's path."""
    worst = 0.0
    rows = [[c] + [0] * (cells - 1) for c in range(largest)]
    rows += [[c, c] + [1] * (cells - 2) for c in range(largest)]
    for row in rows:
        more = [row[0] + 1, *row[1:]]
        before, after = (tree_probabilities(r, question, decay) for r in (row, more))
        worst = max(worst, *(abs(math.log(after[t] / before[t])) for t in before))
    return worst


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "3.7"])
@pytest.mark.parametrize("threshold", [0, 3])
def test_no_tree_tells_more_than_epsilon(epsilon: str, threshold: int) -> None:
    """Over all trees of eight cells, computed, not sampled."""
    question = question_of(epsilon, threshold)
    assert worst_loss(question, question.decay) <= float(epsilon) + 1e-9


def test_a_smaller_decay_would_overspend() -> None:
    """The check can fail: with delta at a fraction, long paths lose more than epsilon."""
    question = question_of("2")
    assert question.decay == math.ceil(3 / 2 * math.log(2))
    assert worst_loss(question, 0, cells=16) > 2


def test_decay_and_rate_are_the_papers_rounded_up() -> None:
    for beta, axes in ((2, ((1,), (0,))), (4, ((0, 1),))):
        for epsilon in ("0.05", "0.5", "1"):
            question = question_of(epsilon, axes=axes)
            scale = (2 * beta - 1) / (beta - 1) / float(epsilon)
            assert float(1 / question.rate) == pytest.approx(scale)
            assert question.decay == math.ceil(scale * math.log(beta))
            assert question.decay >= scale * math.log(beta)
    assert round_up_logarithm(2, Fraction(1, 10**6)) == 693148


def test_a_logarithm_too_close_to_a_whole_number_is_not_rounded() -> None:
    """Sixty digits cannot tell on which side of 7 it lies, and rounded down it would overspend."""
    rate = Fraction(Context(prec=60).ln(Decimal(2))) / 7
    with pytest.raises(ArithmeticError, match="cannot round"):
        round_up_logarithm(2, rate)


def test_the_tree_grows_as_decided_and_only_decisions_come_back() -> None:
    """Level by level against the definition, with noise read from the same seed."""
    matrix = city_matrix()
    curator = Curator(matrix, Epsilon.of("0.5"), SeededNoise(3))
    question = question_of("0.5", axes=((0, 1),))
    decisions = curator.measure(question)
    tree = curator.window.tree
    assert set(decisions.tolist()) <= {0, 1}
    depth, level, noise, seen = 0, np.array([0]), SeededNoise(3), []
    while len(level):
        level = level[np.any(tree.high[level] - tree.low[level] > 1, axis=1)]
        if len(level) == 0:
            break
        counts = ExactCells(matrix, tree).count(level)
        biased = np.maximum(counts - depth * question.decay, -question.decay)
        split = biased + noise.draw_at(question.rate, len(level)) > 0
        seen += split.astype(int).tolist()
        assert np.array_equal(tree.slabs[level] > 0, split)
        middle = np.flatnonzero(np.isin(tree.parent, level))
        level = np.flatnonzero(np.isin(tree.parent, middle))
        depth += 1
    assert decisions.tolist() == seen
    assert curator.spent == Epsilon.of("0.5")
    assert curator._table().value.tolist() == [len(decisions)]


@pytest.mark.parametrize("threshold", [2**70, "x", 0.5, None, True, 2**41])
def test_a_threshold_is_a_whole_number(threshold: Any) -> None:
    with pytest.raises(InputError, match="threshold must"):
        question_of("0.1", threshold)


def test_every_split_cuts() -> None:
    """Also where the axes whose turn it is are down to one cell."""
    for shape, axes in (
        ((1, 8, 1), ((2,),)),
        ((1, 1, 8), ((0,), (1,), (2,))),
        ((2, 1, 9), ((0, 1),)),
    ):
        matrix = FrequencyMatrix.from_dense(grid(*shape), np.full(shape, 1000))
        curator = Curator(matrix, Epsilon.of(1), SeededNoise(3))
        decisions = curator.measure(question_of("1", axes=axes))
        tree = curator.window.tree
        assert len(tree) > 1
        assert len(decisions) <= len(tree)
        assert np.sum(tree.slabs == 0) > decisions.sum()


def test_axes_whose_turn_it_is_come_before_the_widest() -> None:
    matrix = FrequencyMatrix.from_dense(grid(1, 2, 9), np.full((1, 2, 9), 1000))
    curator = Curator(matrix, Epsilon.of(1), SeededNoise(3))
    curator.measure(question_of("1", axes=((0, 1),)))
    tree = curator.window.tree
    assert tree.axis[:3].tolist() == [1, 2, 2]


def test_privtree_needs_a_fresh_region_and_axes() -> None:
    curator = Curator(city_matrix(), Epsilon.of(1), SeededNoise(3))
    with pytest.raises(InputError, match="at least one axis"):
        curator.measure(question_of("0.1", axes=((),)))
    curator.measure(question_of("0.1", axes=((0, 1),)))
    with pytest.raises(InputError, match="not cut yet"):
        curator.measure(question_of("0.1", axes=((0, 1),)))


# --- linear queries -------------------------------------------------------------------------------


def linear(factors: Any, edges: Any, epsilon: str = "1") -> LinearQueries:
    arrays = tuple(np.array(f) for f in factors), tuple(np.array(e) for e in edges)
    return LinearQueries("l", *joint(Epsilon.of(epsilon)), *arrays)


@given(st.data(), matrices((1, 2, 3)))
@examples(100)
def test_linear_queries_agree_with_the_kronecker_product(
    data: Any, matrix: FrequencyMatrix
) -> None:
    """On coarser grids too; and one record more moves all answers together by at most the stated sum."""
    shape, factors, edges = matrix.domain.shape, [], []
    for cells in shape:
        inner = data.draw(st.sets(st.integers(1, cells - 1))) if cells > 1 else set()
        edges.append([0, *sorted(inner), cells])
        rows = data.draw(st.integers(1, 3))
        entries = st.lists(st.integers(-3, 3), min_size=len(inner) + 1, max_size=len(inner) + 1)
        factors.append(data.draw(st.lists(entries, min_size=rows, max_size=rows)))
    question = linear(factors, edges)
    coarse = dense(matrix)
    for axis, edge in enumerate(edges):
        parts = [coarse.take(range(a, b), axis).sum(axis) for a, b in pairwise(edge)]
        coarse = np.stack(parts, axis)
    product = np.ones((1, 1), dtype=np.int64)
    for factor in factors:
        product = np.kron(product, np.array(factor))
    cells_of = ExactCells(matrix, RegionTree(shape))
    assert question.exact(cells_of).tolist() == (product @ coarse.ravel()).tolist()
    assert question.sensitivity == np.abs(product).sum(axis=0).max()
    cell = [data.draw(st.integers(0, n - 1)) for n in shape]
    more = ExactCells(with_one_more(matrix, cell), RegionTree(shape))
    moved = np.abs(question.exact(more) - question.exact(cells_of)).sum()
    assert moved <= question.sensitivity


def test_linear_queries_are_exact_beyond_floats() -> None:
    huge = FrequencyMatrix.from_cells(grid(2, 1), [[0, 1], [0, 0]], [2**39, 3])
    large = 2**22 - 1
    question = linear([[[large, 1], [1, 1]], [[1]]], [[0, 1, 2], [0, 1]])
    exact = question.exact(ExactCells(huge, RegionTree((2, 1))))
    assert exact.tolist() == [large * 2**39 + 3, 2**39 + 3]


def test_linear_queries_are_exact_where_floats_end() -> None:
    """2**53 + 1 is the first whole number that no float is."""
    matrix = FrequencyMatrix.from_cells(grid(2, 1), [[0, 1], [0, 0]], [2**39, 1])
    question = linear([[[2**14, 1]], [[1]]], [[0, 1, 2], [0, 1]])
    exact = question.exact(ExactCells(matrix, RegionTree((2, 1))))
    assert exact.tolist() == [2**53 + 1]


def test_linear_queries_are_charged_once() -> None:
    curator = Curator(city_matrix(), Epsilon.of("0.5"), SeededNoise(3))
    edges = [range(65), range(65)]
    answers = curator.measure(linear([np.eye(64, dtype=int)] * 2, edges, "0.5"))
    assert len(answers) == 64 * 64
    assert curator.spent == Epsilon.of("0.5")
    table = curator._table()
    assert table.epsilon.sum() == Epsilon.of("0.5").units
    assert len(table) == len(answers)


@pytest.mark.parametrize(
    ("factors", "edges", "says"),
    [
        ([[[1] * 64]], [range(65)], "for each axis"),
        ([[[1] * 64]] * 2, [range(65), range(64)], "ascend from 0 to 64"),
        ([[[1] * 64]] * 2, [range(65), [0, 0, 64]], "ascend"),
        ([[[1] * 63], [[1] * 64]], [range(65), range(65)], "one column for each"),
        ([[[0] * 64]] * 2, [range(65), range(65)], "ask for something"),
        ([[[2**23] * 64], [[1] * 64]], [range(65), range(65)], r"must not pass 2\*\*22"),
        ([[[1 - 2**23] * 64], [[1] * 64]], [range(65), range(65)], r"must not pass 2\*\*22"),
        ([[[2**12] * 64]] * 2, [range(65), range(65)], r"product .* must not pass 2\*\*22"),
        ([[[0.5] * 64]] * 2, [range(65), range(65)], "whole numbers"),
    ],
)
def test_bad_linear_queries_are_refused(factors: Any, edges: Any, says: str) -> None:
    curator = Curator(city_matrix(), Epsilon.of("0.5"), SeededNoise(3))

    def ask() -> None:
        curator.measure(linear(factors, edges, "0.5"))

    with pytest.raises(InputError, match=says):
        ask()
    assert curator.spent.units == 0


def test_noise_beyond_64_bits_is_refused_before_it_is_charged() -> None:
    """Saturated noise would leave the exact value readable."""
    curator = Curator(city_matrix(), Epsilon.of("0.5"), SeededNoise(3))
    question = linear([np.full((64, 64), 1000)] * 2, [range(65)] * 2, "1e-9")
    with pytest.raises(InputError, match="does not fit into 64 bits"):
        curator.measure(question)
    assert curator.spent.units == 0
