"""Given hierarchies: levels of named cells, their shares of the budget, and whole numbers that add up."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htf import (
    Axis,
    BudgetFile,
    Domain,
    Epsilon,
    FrequencyMatrix,
    InputError,
    Names,
    Protection,
    Release,
    make_mechanism,
    publish,
    verify,
)
from htf.curator.noise import FastNoise, ScriptedNoise, SeededNoise
from htf.errors import BudgetError, ReleaseFileError
from htf.estimation.hierarchy import counted_layers, estimate_hierarchy, round_siblings
from htf.estimation.least_squares import TreeCounts, sibling_layers
from htf.estimation.sharp import combine
from htf.frame import hierarchy
from htf.frame.domain import FloatArray, IntArray
from htf.frame.hierarchy import cells_below, level_size, levels_of, refine
from htf.frame.tree import RegionTree
from htf.mechanisms import zones as module
from htf.mechanisms.zones import Zones, best_shares, error_ratios
from htf.publication import default_mechanism
from htf.release.release import MeasurementTable
from support import grid
from telling import examples

ROOT = np.zeros(1, dtype=np.int64)


def names_of(*sizes: int) -> Names:
    """Groups of zones of these sizes, in one map."""
    groups = [f"g{number}" for number, size in enumerate(sizes) for _ in range(size)]
    zones = [f"z{number}" for number in range(len(groups))]
    return Names.of({"zone": zones, "group": groups, "map": ["all"] * len(groups)})


def zoned(*sizes: int, further: tuple[Axis, ...] = ()) -> Domain:
    return Domain((Axis.named("zone", names_of(*sizes)), *further))


HOUR = Axis("hour", 0, 24, 24)
KIND = Axis.named(
    "kind", Names.of({"kind": ["tram", "bus", "bike"], "owner": ["city", "city", "own"]})
)
DEST = Axis.named("dest_zone", names_of(3, 4, 1, 5))
DOMAINS = {
    "zones": zoned(3, 4, 1, 5),
    "zones and hours": zoned(3, 4, 1, 5, further=(HOUR,)),
    "trips": zoned(3, 4, 1, 5, further=(DEST,)),
    "trips by hour and kind": zoned(3, 4, 1, 5, further=(DEST, HOUR, KIND)),
    "kinds": Domain((KIND,)),
    "kinds on a map": Domain((Axis("x", 0, 1, 4), Axis("y", 0, 1, 4), KIND)),
    "one zone": zoned(1),
}
every_domain = pytest.mark.parametrize("name", DOMAINS)


def matrix_on(domain: Domain, mean: float = 30.0, seed: int = 3) -> FrequencyMatrix:
    drawn = np.random.default_rng(seed).gamma(0.5, 2 * mean, domain.shape)
    return FrequencyMatrix.from_dense(domain, drawn.astype(np.int64))


def shapes(domain: Domain) -> list[tuple[int, ...]]:
    return [tuple(len(edge) - 1 for edge in level) for level in levels_of(domain, 2**20)]


def test_levels_refine_axes_with_the_same_names_together_and_the_others_after_them() -> None:
    assert shapes(DOMAINS["zones"]) == [(1,), (4,), (13,)]
    assert shapes(DOMAINS["zones and hours"]) == [(1, 1), (4, 1), (13, 1), (13, 24)]
    assert shapes(DOMAINS["trips"]) == [(1, 1), (4, 4), (13, 13)]
    assert shapes(DOMAINS["trips by hour and kind"])[2:] == [
        (13, 13, 1, 1),
        (13, 13, 24, 1),
        (13, 13, 24, 2),
        (13, 13, 24, 3),
    ]
    assert shapes(DOMAINS["one zone"]) == [(1,)]


def test_a_level_that_divides_nothing_is_none() -> None:
    names = Names.of({"zone": ["a", "b"], "district": ["A", "B"], "town": ["t", "t"]})
    assert shapes(Domain((Axis.named("zone", names),))) == [(1,), (2,)]


def test_only_cells_without_names_are_joined_where_there_are_too_many() -> None:
    domain = zoned(30, 20, further=(Axis("x", 0, 1, 1000), Axis("y", 0, 1, 1000)))
    levels = levels_of(domain, 50 * 64)
    assert [len(edge) - 1 for edge in levels[-1]] == [50, 8, 8]
    assert [len(edge) - 1 for edge in levels_of(domain, 10)[-1]] == [50, 1, 1]


@every_domain
def test_refining_level_by_level_gives_every_region_of_each(name: str) -> None:
    domain = DOMAINS[name]
    tree, regions = RegionTree(domain.shape), np.zeros(1, dtype=np.int64)
    levels = levels_of(domain, 2**20)
    for edges, (cells, times) in zip(levels, cells_below(levels), strict=True):
        sizes = hierarchy.refined_sizes(tree, regions, edges)
        regions = refine(tree, regions, edges)
        assert len(regions) == sizes.sum() == level_size(edges) == times.sum()
        assert tree.is_covered_once_by(regions)
        for axis, edge in enumerate(edges):
            assert set(tree.low[regions, axis]) == set(edge[:-1])
        assert sorted(tree.cells(regions).tolist()) == np.repeat(cells, times).tolist()


@every_domain
@pytest.mark.parametrize("epsilon", ["0.05", "1"])
def test_a_release_of_names_holds_together(name: str, epsilon: str) -> None:
    """Whole numbers, none below 0, that follow from the measurements."""
    release = publish(matrix_on(DOMAINS[name]), epsilon, "zones", noise=SeededNoise(4))
    assert release.spent <= Epsilon.of(epsilon)
    assert np.all(release.estimates >= 0)
    assert np.array_equal(release.estimates, np.rint(release.estimates))
    assert [check for check in verify(release) if not check.passed] == []


@every_domain
def test_without_noise_every_level_is_exact_up_to_what_is_learnt(name: str) -> None:
    """With no noise and a large epsilon, nothing is taken for noise."""
    matrix = matrix_on(DOMAINS[name])
    release = publish(matrix, "50", "zones", noise=ScriptedNoise())
    found = np.zeros(matrix.domain.shape)
    found[tuple(release.low.T)] = release.estimates
    exact = np.zeros(matrix.domain.shape)
    exact[tuple(matrix.exact_coordinates)] = matrix.exact_counts
    assert np.array_equal(found, exact)


def test_all_of_the_budget_is_spent_on_every_path() -> None:
    release = publish(matrix_on(DOMAINS["trips"], mean=2), "1", "zones", noise=SeededNoise(1))
    tree, own = release.tree, np.zeros(len(release.tree), dtype=np.int64)
    np.add.at(own, release.measurements.region, release.measurements.epsilon)
    for layer in tree.layers(1):
        own[layer] += own[tree.parent[layer]]
    assert np.all(own[release.leaves] == release.spent.units)
    assert Epsilon.of(1).units - release.spent.units < 100


def test_small_regions_are_counted_with_most_of_their_budget() -> None:
    table = np.array([[500, 400, 0, 0], [300, 600, 0, 0], [0, 0, 1, 0], [0, 0, 0, 2]])
    names = names_of(2, 2)
    domain = Domain((Axis.named("zone", names), Axis.named("dest_zone", names)))
    matrix = FrequencyMatrix.from_dense(domain, table)
    release = publish(matrix, "1", Zones(shares="0.8,0.1,0.1"), noise=ScriptedNoise())
    assert [line.kind for line in release.ledger] == ["linear", "agreeing"]
    assert release.ledger[0].label == "level 1: which are small"
    pairs = release.measurements.of_kind("agreeing")
    groups = pairs.epsilon[release.tree.cells(pairs.region) == 4]
    left = 0.96 * 0.9
    assert sorted(groups / 1e15) == pytest.approx([0.096, *[0.7 * left] * 3])
    never = publish(matrix, "1", Zones(shares="0.8,0.1,0.1", small=0.0), noise=ScriptedNoise())
    assert [line.kind for line in never.ledger] == ["agreeing"]


def test_what_decides_is_not_used_for_estimates() -> None:
    """So that sums of many regions stay unbiased. Nothing is asked where there is one axis."""
    release = publish(matrix_on(DOMAINS["trips"]), "1", noise=SeededNoise(3))
    counted = sum(len(some) for some in release.measurements.tree_counts().regions)
    assert counted == len(release.measurements) - 16
    single = publish(matrix_on(DOMAINS["zones"]), "1", noise=SeededNoise(3))
    assert {line.kind for line in single.ledger} == {"agreeing"}


def test_a_table_with_too_many_pairs_is_refined_where_most_records_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_LEAVES", 30)
    matrix = matrix_on(DOMAINS["trips"], mean=200)
    release = publish(matrix, "1", "zones", noise=SeededNoise(1))
    assert len(release) <= 30
    assert [check for check in verify(release) if not check.passed] == []
    whole = [line for line in release.ledger if "not divided" in line.label]
    assert whole
    assert release.tree.cells(release.leaves).max() > 1


def test_people_are_counted_in_shares() -> None:
    protection = Protection("person", count="people", shares=256)
    table = np.random.default_rng(2).integers(0, 900, 13) * 256
    matrix = FrequencyMatrix.from_dense(DOMAINS["zones"], table)
    matrix = FrequencyMatrix(
        matrix.domain, matrix.exact_coordinates, matrix.exact_counts, protection=protection
    )
    release = publish(matrix, "1", noise=SeededNoise(2))
    assert np.array_equal(release.estimates * 256, np.rint(release.estimates * 256))
    assert [check for check in verify(release) if not check.passed] == []


def test_names_on_the_first_axis_make_zones_the_default() -> None:
    assert {name: default_mechanism(domain) for name, domain in DOMAINS.items()} == {
        **dict.fromkeys(DOMAINS, "zones"),
        "kinds on a map": "htf",
    }
    assert publish(matrix_on(DOMAINS["zones"]), "1", noise=SeededNoise(1)).mechanism == "zones"
    plain = FrequencyMatrix.from_dense(grid(2, 2), np.ones((2, 2), dtype=np.int64))
    assert publish(plain, "1", noise=SeededNoise(1)).mechanism == "htf"


@every_domain
def test_the_adaptive_tree_takes_names_too(name: str) -> None:
    """It halves ranges of zones, which is less use, but private and sound."""
    release = publish(matrix_on(DOMAINS[name]), "1", "htf", noise=SeededNoise(1))
    assert [check for check in verify(release) if not check.passed] == []


# --- shares


def cells_of(*sizes: int) -> list[tuple[IntArray, IntArray]]:
    return cells_below(levels_of(zoned(*sizes), 2**20))


def test_shares_given_by_hand_are_from_the_cells_up() -> None:
    levels = levels_of(DOMAINS["zones"], 2**20)
    found = Zones(shares="0.7,0.2,0.1").choose_shares(Epsilon.of(1), levels)
    assert [float(share) for share in found] == pytest.approx([0.1, 0.2, 0.7])
    found = Zones(shares="3,1").choose_shares(Epsilon.of(1), levels)
    assert [float(share) for share in found] == pytest.approx([0.0, 0.25, 0.75])


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("sizes", [(3, 4, 1, 5), (32,) * 31, (70,) * 71])
def test_the_cells_stay_within_their_limit(sizes: tuple[int, ...], epsilon: float) -> None:
    cells = cells_of(*sizes)
    shares = best_shares(cells, epsilon)
    assert sum(shares) == pytest.approx(1)
    ratios = error_ratios(cells, np.array(shares), epsilon)
    assert ratios[-1] <= 1.09
    loose = best_shares(cells, epsilon, lowest=1.5)
    assert loose[-1] <= shares[-1]


def test_many_zones_gain_much_above_and_lose_little_below() -> None:
    cells = cells_of(*(70,) * 71)
    ratios = error_ratios(cells, np.array(best_shares(cells, 0.1)), 0.1)
    assert ratios[0] < 0.55
    assert ratios[1] < 0.8
    assert np.exp(np.mean(np.log(ratios))) < 0.7


def test_flat_shares_have_the_error_of_flat_counts() -> None:
    ratios = error_ratios(cells_of(5, 9, 20), np.array([0.0, 0.0, 1.0]), 0.7)
    assert ratios == pytest.approx([1, 1, 1])


def test_a_level_that_matters_more_gets_more() -> None:
    cells = cells_of(*(70,) * 71)
    even, groups = best_shares(cells, 0.1), best_shares(cells, 0.1, [0.1, 5.0, 1.0])
    assert groups[1] > even[1]
    levels = levels_of(zoned(*(70,) * 71), 2**20)
    by_text = Zones(weights="1,5,0.1").choose_shares(Epsilon.of("0.1"), levels)
    assert by_text[1].units == pytest.approx(groups[1] * 1e14, rel=1e-6)


@pytest.mark.parametrize(
    "wrong",
    [
        {"shares": "much"},
        {"shares": "0,1"},
        {"shares": "1,-1"},
        {"shares": "1,inf"},
        {"shares": ""},
        {"weights": "1,,2"},
        {"lowest": 1.0},
        {"lowest": math.nan},
        {"small": -1.0},
        {"small": math.inf},
        {"most_cells": 0},
    ],
)
def test_parameters_that_make_no_sense_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(InputError):
        make_mechanism("zones", **wrong)


def test_more_shares_than_levels_are_refused() -> None:
    with pytest.raises(InputError, match="only 3 levels, the whole map included"):
        publish(matrix_on(DOMAINS["zones"]), "1", Zones(shares="4,3,2,1"))


def test_a_budget_too_small_to_share_is_refused() -> None:
    with pytest.raises(BudgetError, match="too small to be shared by 3 levels"):
        publish(matrix_on(DOMAINS["zones"]), "1e-15", Zones(shares="1,9"))


# --- estimates


@given(st.lists(st.lists(st.floats(0, 1e6), min_size=1, max_size=9), min_size=1, max_size=6))
@examples(100)
def test_rounding_keeps_sums_and_moves_nothing_by_one_or_more(groups: list[list[float]]) -> None:
    tree, sizes = RegionTree((sum(map(len, groups)) + 1,)), [len(group) for group in groups]
    edges = np.cumsum(sizes)
    parts = tree.cut(ROOT, ROOT, edges, np.array([len(edges)]))
    wide = np.array(sizes) > 1
    ones = [
        edge - size + place
        for edge, size in zip(edges, sizes, strict=True)
        for place in range(1, size)
    ]
    if not wide.any():
        return
    tree.cut(
        parts[:-1][wide],
        np.zeros(wide.sum(), dtype=np.int64),
        np.array(ones),
        np.array(sizes)[wide] - 1,
    )
    layer = sibling_layers(tree)[1]
    values = np.concatenate(
        [np.array(group) for group, is_wide in zip(groups, wide, strict=True) if is_wide]
    )
    total = np.rint(layer.sum(values))
    values = values + ((total - layer.sum(values)) / np.array(sizes)[wide])[layer.group]
    whole = round_siblings(layer, total, np.maximum(values, 0.0))
    assert np.array_equal(layer.sum(whole), total)
    assert np.all(whole >= 0)
    if values.min() >= 0:
        assert np.abs(whole - values).max() < 1 + 2e-3 * len(values)


def moments(off: float, rate: float) -> tuple[float, float]:
    x = np.linspace(-400, 400, 4_000_001)
    weight = np.exp(-0.5 * (x - off) ** 2 - rate * np.abs(x) + rate * abs(off))
    mean = np.average(x, weights=weight)
    return float(mean), float(np.average((x - mean) ** 2, weights=weight))


@pytest.mark.parametrize("off", [0.0, 0.3, -2.0, 9.0, -25.0, 45.0])
@pytest.mark.parametrize("rate", [0.01, 0.4, 2.0, 11.0])
def test_combining_gives_the_moments_of_the_product(off: float, rate: float) -> None:
    deviation, count = 3.0, 100.0
    of_count = 2 * deviation**2 / rate**2
    one = (np.array([value]) for value in (count + deviation * off, deviation**2, count, of_count))
    means, variances = combine(*one)
    mean, variance = moments(off, rate)
    assert (means[0] - count) / deviation == pytest.approx(mean, abs=1e-5)
    assert variances[0] / deviation**2 == pytest.approx(variance, rel=2e-3)


def test_combining_extremes_gives_what_is_known() -> None:
    sums, variances = np.array([1e9, 0.0, 5.0, 7.0]), np.array([1.0, 1e12, 1e-6, 4.0])
    counts, of_counts = np.array([0.0, 1.0, 5.0, 7.0]), np.array([1.0, 1e-6, 1e12, 9.0])
    means, found = combine(sums, variances, counts, of_counts)
    assert np.all(np.isfinite(means))
    assert np.all(found > 0)
    assert means[1:] == pytest.approx([1.0, 5.0, 7.0])
    assert means[3] == 7.0, "counts that agree stay as they are, to the last digit"


def test_regions_in_between_are_passed_over() -> None:
    domain = DOMAINS["trips"]
    tree, regions = RegionTree(domain.shape), np.zeros(1, dtype=np.int64)
    counted = np.zeros(1, dtype=bool)
    for edges in levels_of(domain, 2**20)[1:]:
        regions = refine(tree, regions, edges)
        counted = np.append(counted, np.zeros(len(tree) - len(counted), dtype=bool))
        counted[regions] = True
    layers = counted_layers(tree, counted)
    assert [len(layer.regions) for layer in layers] == [
        16,
        13 * 13 - 1,
    ]  # a pair of single zones is not cut
    for layer in layers:
        inside = layer.sum(tree.cells(layer.regions))
        assert np.array_equal(inside, tree.cells(layer.parents))


def test_counts_that_do_not_determine_the_leaves_are_refused() -> None:
    tree = RegionTree((4,))
    leaves = tree.cut(ROOT, ROOT, np.array([1, 2]), np.array([2]))
    counts = TreeCounts()
    counts.add(leaves[:2], np.array([3, 4]), Epsilon.of(1))
    with pytest.raises(InputError, match="cannot be estimated"):
        estimate_hierarchy(tree, leaves, counts)


def test_empty_pairs_are_published_as_empty() -> None:
    """Few trips between many zones: cutting flat counts off at 0 would invent some in a third of all empty pairs."""
    names = names_of(*(10,) * 10)
    domain = Domain((Axis.named("zone", names), Axis.named("dest_zone", names)))
    table = np.diag(np.random.default_rng(1).integers(50, 500, 100))
    release = publish(FrequencyMatrix.from_dense(domain, table), "1", noise=SeededNoise(3))
    invented = release.estimates[release.low[:, 0] != release.low[:, 1]] > 0
    assert invented.mean() < 0.01
    on_diagonal: FloatArray = release.estimates[release.low[:, 0] == release.low[:, 1]]
    assert np.all(on_diagonal > 0)


def test_a_changed_estimate_is_noticed() -> None:
    release = publish(matrix_on(DOMAINS["zones"]), "1", noise=SeededNoise(1))
    moved = release.estimates.copy()
    moved[0], moved[1] = moved[0] + 1, moved[1] - 1
    doctored = replace(release, estimates=moved)
    assert [check.name for check in verify(doctored) if not check.passed] == ["sums"]


# --- counts that agree, in files


def doctored(release: Release, column: str, row: int, value: int) -> Release:
    columns = {name: values.copy() for name, values in release.measurements.columns().items()}
    columns[column][row] = value
    return replace(release, measurements=MeasurementTable(**columns))


def test_counts_that_do_not_add_up_do_not_pass() -> None:
    """Whoever changes a noisy zone, and not the sums it is in, is found out."""
    release = publish(
        matrix_on(DOMAINS["zones"]), "1", Zones(shares="0.8,0.1,0.1"), noise=SeededNoise(1)
    )
    zone = int(np.flatnonzero(release.tree.cells(release.measurements.region) == 1)[0])
    changed = doctored(release, "value", zone, int(release.measurements.value[zone]) + 1)
    failed = {check.name for check in verify(changed) if not check.passed}
    assert "ledger" in failed


@pytest.mark.parametrize("row", [0, 3])
def test_a_file_whose_counts_cannot_agree_is_refused(tmp_path: Path, row: int) -> None:
    release = publish(
        matrix_on(DOMAINS["zones"]), "1", Zones(shares="0.8,0.1,0.1"), noise=SeededNoise(1)
    )
    doubled = doctored(release, "region", row, int(release.measurements.region[row + 1]))
    doubled.save(tmp_path / "doubled.parquet")
    with pytest.raises(ReleaseFileError, match="regions that differ"):
        Release.load(tmp_path / "doubled.parquet")


def test_a_budget_is_not_charged_for_what_cannot_be_asked(tmp_path: Path) -> None:
    """The noise of so small an epsilon does not fit into 64 bits, which is seen before the charge."""
    budget = BudgetFile.create(tmp_path / "budget.sqlite", "zones", cap=1)
    mechanism, noise = Zones(shares="0.5,0.3,0.2"), FastNoise()
    with pytest.raises(InputError, match="64 bits"):
        publish(matrix_on(DOMAINS["zones"]), "5e-15", mechanism, noise=noise, budget=budget)
    assert budget.account().entries == ()
