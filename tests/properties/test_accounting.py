"""The ledger against brute force: for every cell, add up the measurements whose region holds it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htf import BudgetError, Curator, Epsilon, FrequencyMatrix, InputError
from htf.curator.measurements import (
    CountRegions,
    Measurement,
    MedianCuts,
    PrivTreeSplits,
    ScoreSplits,
)
from htf.curator.noise import NoiseSource, ScriptedNoise
from htf.curator.window import Steps, Window
from htf.frame.domain import IntArray
from htf.frame.tree import MOST_LAYERS, RegionTree
from htf.mechanisms.base import Histogram, Mechanism
from htf.privacy.ledger import Ledger, LedgerLine
from support import city_matrix, grid
from telling import examples


def count_of(regions: Any, units: Any, label: str = "test") -> CountRegions:
    regions = np.asarray(regions, dtype=np.int64)
    return CountRegions(label, regions, np.broadcast_to(np.int64(units), regions.shape))


@given(st.data())
@examples(100)
def test_spent_is_the_largest_sum_over_cells(data: Any) -> None:
    """Charges and cuts in any order, regions repeated, ancestors charged after descendants."""
    tree = RegionTree((8, 6))
    ledger = Ledger(tree, Epsilon.of(1000))
    loss = np.zeros((8, 6), dtype=np.int64)
    for _ in range(data.draw(st.integers(1, 10))):
        uncut = [
            r
            for r in range(len(tree))
            if tree.slabs[r] == 0 and tree.high[r, 0] - tree.low[r, 0] > 1
        ]
        if uncut and data.draw(st.booleans()):
            region = data.draw(st.sampled_from(uncut))
            cut = data.draw(
                st.integers(int(tree.low[region, 0]) + 1, int(tree.high[region, 0]) - 1)
            )
            tree.split(*(np.array([v]) for v in (region, 0, cut)))
        regions = data.draw(st.lists(st.integers(0, len(tree) - 1), min_size=1, max_size=6))
        units = data.draw(st.integers(1, 10**15))
        ledger.charge(count_of(regions, units))
        for region in regions:
            (x0, y0), (x1, y1) = tree.low[region], tree.high[region]
            loss[x0:x1, y0:y1] += units
        assert ledger.spent.units == loss.max()


class CountingNoise(NoiseSource):
    """Says how often it was asked."""

    private = False
    description = "counting"
    draws = 0

    def draw_at(self, rate: Any, size: int) -> IntArray:  # noqa: ARG002
        self.draws += size
        return np.zeros(size, dtype=np.int64)


def test_overspending_is_refused_before_anything_is_drawn_and_changes_nothing() -> None:
    noise = CountingNoise()
    curator = Curator(city_matrix(), Epsilon.of("0.5"), noise)
    curator.measure(count_of([0], Epsilon.of("0.3").units))
    children = curator.window.tree.split(*(np.array([v]) for v in (0, 0, 32)))[0]
    state = (noise.draws, curator.spent, curator._ledger.lines, len(curator._taken))
    one_unit_too_many = Epsilon.of("0.2").units + 1
    with pytest.raises(BudgetError, match=r"0\.500000000000001.*more than the total of 0\.5"):
        curator.measure(count_of(children, one_unit_too_many))
    with pytest.raises(BudgetError):  # the same region twice adds up
        curator.measure(count_of([children[0]] * 2, Epsilon.of("0.15").units))
    assert (noise.draws, curator.spent, curator._ledger.lines, len(curator._taken)) == state
    curator.measure(count_of(children, Epsilon.of("0.2").units))  # in parallel, to the last unit
    assert curator.spent == Epsilon.of("0.5")
    with pytest.raises(BudgetError):
        curator.measure(count_of([children[1]], 1))


def test_charges_cannot_wrap_around() -> None:
    """Ten rows of 999 are 9,990, not what is left of it in 64 bits; nor along a path."""
    curator = Curator(city_matrix(), Epsilon.of(1000), ScriptedNoise())
    dear = Epsilon.of(999).units
    with pytest.raises(BudgetError, match=r"to 9990, more than the total of 1000|to 9989\."):
        curator.measure(count_of([0] * 10, dear))
    for copies in range(2, 60):
        with pytest.raises(BudgetError):
            curator.measure(count_of([0] * copies, dear))
    with pytest.raises(BudgetError):
        curator.measure(count_of([0], 2**63 - 1))
    assert curator.spent.units == 0
    curator.measure(count_of([0], dear))
    children = curator.window.tree.split(*(np.array([v]) for v in (0, 0, 32)))[0]
    with pytest.raises(BudgetError):
        curator.measure(count_of([*children, *children, 0], dear))
    curator.measure(count_of(children, Epsilon.of(1).units))
    assert curator.spent == Epsilon.of(1000)


@pytest.mark.parametrize("cheap", ["first", "last", "none"])
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_no_sum_wraps_around(depth: int, cheap: str) -> None:
    """What passes 64 bits only in all, in a region at any depth, with rows at other prices beside it.

    Rows whose charges are 2**64 units and a little more would else cost that little."""
    tree, region = RegionTree((64,)), 0
    for _ in range(depth):
        halves = tree.split(*(np.array([v]) for v in (region, 0, tree.high[region, 0] // 2)))
        region = int(halves[0, 0])
    ledger = Ledger(tree, Epsilon.of(1000))
    regions, charges = np.full(33, region), np.full(33, 2**59)
    charges[-1] = 7
    if cheap != "none":
        place, beside = {"first": 0, "last": 33}[cheap], len(tree) - 1
        regions, charges = np.insert(regions, place, beside), np.insert(charges, place, 1)
    with pytest.raises(BudgetError, match="more than the total of 1000"):
        ledger.charge(CountRegions("dear", regions, charges))
    assert (ledger.spent.units, ledger.lines) == (0, ())


def test_no_sum_with_what_was_spent_wraps_around() -> None:
    ledger, whole = Ledger(RegionTree((64,)), Epsilon.of(1000)), Epsilon.of(1000).units
    ledger.charge(count_of([0], whole))
    for units in (1, 2**63 - whole - 1, 2**63 - whole, 2**63 - 1):
        with pytest.raises(BudgetError, match="more than the total of 1000"):
            ledger.charge(count_of([0], units))
    assert ledger.spent.units == whole


def test_no_sum_along_a_path_wraps_around() -> None:
    """Spent below, asked above and below: each fits 64 bits, and all three together do not."""
    tree, whole = RegionTree((64,)), Epsilon.of(1000).units
    halves = tree.split(*(np.array([v]) for v in (0, 0, 32)))[0]
    ledger = Ledger(tree, Epsilon.of(1000))
    ledger.charge(count_of(halves, whole))
    asked = np.array([0, *halves]), np.array([whole, *[2**63 - whole - 1] * 2])
    with pytest.raises(BudgetError, match="more than the total of 1000"):
        ledger.charge(CountRegions("dear", *asked))
    assert (ledger.spent.units, len(ledger.lines)) == (whole, 1)


def test_no_depth_wraps_around() -> None:
    """Layers are numbered with 16 bits. A region below what they hold would come before its parents, and
    would not have lost what they have: so no tree is that deep, nor deeper than a file may be."""
    assert np.iinfo(np.int16).max > MOST_LAYERS
    tree, last = RegionTree((40_000,)), np.zeros(1, dtype=np.int64)
    ledger, along = Ledger(tree, Epsilon.of(1)), np.zeros(1, dtype=np.int64)
    ledger.charge(count_of([0], Epsilon.of(1).units))
    for cell in range(MOST_LAYERS):
        last = tree.split(last, along, np.array([cell + 1]))[:, 1]
    with pytest.raises(BudgetError, match="Nothing was drawn"):
        ledger.charge(count_of(last, 1))
    beyond = np.array([MOST_LAYERS + 1])
    with pytest.raises(InputError, match="nested more than 4096 deep"):
        tree.split(last, along, beyond)
    with pytest.raises(InputError, match="nested more than 4096 deep"):
        tree.cut(last, along, beyond, np.ones(1, dtype=np.int64))
    assert len(tree) == 1 + 2 * MOST_LAYERS
    again = RegionTree.from_arrays((40_000,), tree.parent, tree.low, tree.high)
    assert len(again.layers()) == 1 + MOST_LAYERS


def test_what_nearly_is_the_cap_is_charged_whatever_way_it_is_summed() -> None:
    """Floats are only for what could pass 64 bits: within the cap they refuse nothing."""
    tree = RegionTree((64,))
    halves = tree.split(*(np.array([v]) for v in (0, 0, 32)))[0]
    ledger = Ledger(tree, Epsilon.of(1000))
    apart = np.repeat(
        halves, [19, 1]
    )  # as if all 19 rows were at 999: to be sure, floats are asked first
    charges = np.array([1] * 18 + [Epsilon.of(1000).units - 18, Epsilon.of(999).units])
    ledger.charge(CountRegions("to the last unit", apart, charges))
    assert ledger.spent == Epsilon.of(1000)
    (line,) = ledger.lines
    assert (line.label, line.kind, line.sensitivity, line.answers) == (
        "to the last unit",
        "count",
        1,
        20,
    )
    assert (line.smallest_epsilon, line.largest_epsilon) == (Epsilon(1), Epsilon(10**18 - 18))
    assert line.spent_after == Epsilon.of(1000)
    assert LedgerLine.from_dict(line.to_dict()) == line
    assert LedgerLine.from_dict(
        {**line.to_dict(), "smallest_epsilon": "0"}
    ).smallest_epsilon == Epsilon(0)


@pytest.mark.parametrize("units", [0, -1, -(10**15)])
def test_an_epsilon_that_is_not_positive_is_refused(units: int) -> None:
    curator = Curator(city_matrix(), Epsilon.of(1), ScriptedNoise())
    with pytest.raises(InputError, match="must be positive"):
        curator.measure(count_of([0], units))
    assert curator.spent.units == 0


def test_nonsense_is_refused_before_it_is_charged() -> None:
    curator = Curator(city_matrix(), Epsilon.of(1), ScriptedNoise())
    one = np.array([1])

    class Peek(CountRegions):
        """A measurement of the mechanism's own making."""

    with pytest.raises(InputError, match="not a measurement"):
        curator.measure(Peek("peek", np.array([0]), one))
    with pytest.raises(InputError, match="between 0 and 0"):
        curator.measure(count_of([1], 1))
    for cuts in ([64], [0], [-1], [1, 64], [0, 1]):  # one that is wrong is enough
        asked = np.zeros(len(cuts), dtype=np.int64)
        with pytest.raises(InputError, match="both sides"):
            curator.measure(ScoreSplits("split", asked, asked + 1, asked, np.array(cuts)))
    with pytest.raises(InputError, match="axis"):
        curator.measure(ScoreSplits("split", np.array([0]), one, np.array([2]), np.array([1])))
    with pytest.raises(InputError, match="names no region"):
        curator.measure(count_of([], 1))
    for cuts in ([], [1, 2]):  # one price, and several answers
        with pytest.raises(InputError, match="one cut for each region"):
            curator.measure(ScoreSplits("split", np.array([0]), one, one, np.array(cuts)))
    for axes in ([], [0, 1]):
        with pytest.raises(InputError, match="one axis"):
            curator.measure(MedianCuts("median", np.array([0]), one, np.array(axes)))
    thin = curator.window.tree.split(*(np.array([v]) for v in (0, 0, 1)))[0]
    inner = curator.window.tree.split(*(np.array([v]) for v in (thin[1], 0, 2)))[0]
    for asked in (thin, inner):  # the second does not begin at 0
        with pytest.raises(InputError, match="no place for a cut"):
            curator.measure(MedianCuts("median", asked, np.array([1, 1]), np.array([0, 0])))
    for axes_by_depth in ((), ((0,), ()), ((0, 2),)):
        with pytest.raises(InputError, match="axis"):
            curator.measure(PrivTreeSplits("privtree", thin[:1], one, axes_by_depth, 0))
    assert curator.spent.units == 0
    assert curator._ledger.lines == ()


@pytest.mark.parametrize("kind", [np.int32, np.uint32, np.uint64, np.int16])
def test_narrow_numbers_are_charged_in_full(kind: Any) -> None:
    """A mechanism that builds its question with 32-bit numbers must not get it for nothing."""
    curator = Curator(city_matrix(), Epsilon.of("0.001"), ScriptedNoise())
    units = np.full(10**6, min(2**30, np.iinfo(kind).max), dtype=kind)
    question = CountRegions("many", np.zeros(10**6, dtype=np.int32), units)
    if int(units[0]) * 10**6 > 10**12:
        with pytest.raises(BudgetError):
            curator.measure(question)
        assert curator.spent.units == 0
    else:
        curator.measure(question)
        assert curator.spent.units == int(units[0]) * 10**6


@pytest.mark.parametrize(
    "epsilon", [[0.5], [True], [[1]], np.array([2**63], dtype=np.uint64), ["1"]]
)
def test_what_are_no_whole_numbers_is_no_question(epsilon: Any) -> None:
    with pytest.raises(InputError, match="epsilon must"):
        CountRegions("odd", np.array([0]), np.asarray(epsilon))


def test_a_question_is_read_once() -> None:
    """An object that says something else each time it is looked at is looked at once."""

    class Shifty:
        asked = 0

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            self.asked += 1
            return np.array([1 if self.asked == 1 else 10**18])

    question = CountRegions("shifty", np.array([0]), Shifty())  # type: ignore[arg-type]
    assert question.epsilon.tolist() == [1]
    assert type(question.epsilon) is np.ndarray


def test_a_question_cannot_be_changed_after_it_was_asked() -> None:
    regions, epsilon = np.array([0, 0]), np.array([5, 5])
    question = CountRegions("mine", regions, epsilon)
    epsilon[:], regions[:] = 1, 7
    assert (question.epsilon.tolist(), question.regions.tolist()) == ([5, 5], [0, 0])
    with pytest.raises(ValueError, match="read-only"):
        question.epsilon[0] = 1


def test_a_refusal_leads_nowhere() -> None:
    """What a mechanism catches has no traceback through the Curator's frames."""
    caught: list[Any] = []

    class Greedy(Mechanism):
        """Asks for too much, and looks at the refusal."""

        name = "greedy"
        citation = "none"

        def build(self, window: Window) -> Steps[Histogram]:
            try:
                yield from window.count([0, 0], window.epsilon, "twice")
            except BudgetError as refusal:
                trace = refusal.__traceback__
                while trace is not None:
                    caught.extend(
                        v for v in trace.tb_frame.f_locals.values() if isinstance(v, Curator)
                    )
                    trace = trace.tb_next
                caught.append(refusal)
            noisy = yield from window.count([0], window.epsilon, "once")
            return Histogram(np.array([0]), noisy, np.array([1.0]), "last-count")

    Curator(city_matrix(), Epsilon.of(1), ScriptedNoise()).run(Greedy())
    assert [type(thing) for thing in caught] == [BudgetError]


def test_what_is_charged_is_what_sets_the_noise() -> None:
    """The noise source is asked for the rate epsilon / sensitivity of each row, in order."""
    seen: list[tuple[str, int]] = []

    class Spy(CountingNoise):
        def draw(self, epsilon_units: IntArray, sensitivity: int) -> IntArray:
            seen.extend((str(Epsilon(int(u))), sensitivity) for u in epsilon_units)
            return super().draw(epsilon_units, sensitivity)

    curator = Curator(city_matrix(), Epsilon.of(1), Spy())
    zeros, cut = np.zeros(2, dtype=np.int64), np.array([3, 4])
    questions: list[Measurement] = [
        CountRegions("a", zeros, np.array([10**14, 2 * 10**14])),
        ScoreSplits("b", zeros, np.array([10**13, 10**12]), zeros, cut),
    ]
    for question in questions:
        curator.measure(question)
    assert seen == [("0.1", 1), ("0.2", 1), ("0.01", 2), ("0.001", 2)]
    assert str(curator.spent) == "0.311"


def test_an_empty_matrix_is_measured_like_any_other() -> None:
    empty = FrequencyMatrix.from_dense(grid(4, 4), np.zeros((4, 4), dtype=np.int64))
    curator = Curator(empty, Epsilon.of(1), ScriptedNoise([7, -3]))
    assert curator.measure(count_of([0, 0], 1)).tolist() == [7, -3]
