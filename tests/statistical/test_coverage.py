"""Coverage of the 95 % intervals on whole releases, against the exact counts.

A region of the tree that holds 1, about 10 or about 1,000 leaves is a box along leaf edges. Seeds are fixed.
Each size is seen thousands of times, or, for 1,000 leaves, some hundreds: then the standard error of the
coverage is about 1 %, and the limits of 93 and 97 % are two of them away. With fresh seeds one test in
twenty could fail by chance.

`ag`, `quadtree` and `htf` have estimates from all counts of their trees, and intervals of `htf.query.tree_index`.
For them 1,000 leaves are seen 700, 1,900 and 3,600 times: with fresh seeds one run in fifty could fail by chance (over 100 seeds,
96.2 ± 0.3 % of those of `htf` are covered). `make test` leaves out those of `htf` along leaf edges, but has those that cut
leaves, and polygons (test_polygon_coverage.py); the rates of the others do not change. Boxes
anywhere cut through leaves; how uneven a leaf is was estimated for them, so their limits are wider. So are those
of squares around records, smaller than the leaves: they hold more than an even spread says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from htf import FrequencyMatrix, Release, publish
from htf.forecasts.counting import ExactCounter
from htf.forecasts.workloads import Boxes, read_workload
from htf.frame.domain import Domain, FloatArray, IntArray
from htf.ingest.points import read_points
from htf.mechanisms import Mechanism
from htf.mechanisms.htf import Htf
from htf.mechanisms.htf_paper import HtfPaper
from htf.query.answer import Answer
from htf.query.kernels import VARIANCE
from htf.synthetic.city import synthetic_city
from htf_bench.mechanisms.adaptive_grid import AdaptiveGrid
from htf_bench.mechanisms.quadtree import Quadtree
from support import plain_intervals
from telling import telling


@pytest.fixture(autouse=True, scope="module")
def _as_the_noise_gives_them() -> Iterator[None]:
    """Intervals before they are cut off at zero and reach as far as the count, which makes them cover more."""
    with plain_intervals():
        yield


RUNS = 120
PAPER = HtfPaper(stop_count=20)
# Without pruning, which selects on the noise that the intervals are about.
TREES = {"ag": AdaptiveGrid(), "quadtree": Quadtree(prune_below=0), "htf": Htf()}


@pytest.fixture(scope="module")
def matrix() -> FrequencyMatrix:
    city = synthetic_city(1_000_000)
    return read_points((city.x, city.y), Domain.from_bounds(*city.domain_bounds, cells=1024))


def leaves_below(release: Release) -> IntArray:
    """The number of leaves in each region."""
    numbers = np.zeros(len(release.tree), dtype=np.int64)
    numbers[release.leaves] = 1
    for layer in reversed(release.tree.layers(1)):
        np.add.at(numbers, release.tree.parent[layer], numbers[layer])
    return numbers


def boxes_of(release: Release, regions: IntArray) -> Any:
    """Regions as W,S,E,N."""
    x, y = release.domain.axes
    low, high = release.tree.low[regions], release.tree.high[regions]
    edges = [x.from_cells(low[:, 0]), y.from_cells(low[:, 1])]
    return np.column_stack([*edges, x.from_cells(high[:, 0]), y.from_cells(high[:, 1])])


def half_widths_away(release: Release, truth: ExactCounter, regions: IntArray) -> FloatArray:
    """How far the exact counts of regions are from the middle of their intervals."""
    answers = release.count(boxes_of(release, regions))
    assert np.all(answers.partial == 0), "these boxes follow leaf edges"
    boxes = Boxes(release.tree.low[regions], release.tree.high[regions])
    return distances(answers, truth.count(boxes))


def distances(answers: Answer, truth: IntArray) -> FloatArray:
    middle, half = (answers.low + answers.high) / 2, (answers.high - answers.low) / 2
    return np.asarray(np.abs(middle - truth) / half)


Seen = dict[str, list[FloatArray]]  # by size, in each release


def look(
    matrix: FrequencyMatrix, runs: int = RUNS, mechanism: Mechanism = PAPER, epsilon: str = "0.5"
) -> Seen:
    seen: Seen = {"1": [], "10": [], "1000": []}
    truth = ExactCounter(matrix)
    for seed in range(runs):
        release = publish(matrix, epsilon, mechanism, noise=f"seeded:{seed}")
        numbers = leaves_below(release)
        generator = np.random.default_rng(seed)
        for name, (fewest, most) in {"1": (1, 1), "10": (8, 12), "1000": (700, 1400)}.items():
            found = np.flatnonzero((numbers >= fewest) & (numbers <= most))
            chosen = generator.permutation(found)[:60]
            seen[name].append(half_widths_away(release, truth, chosen))
    return seen


def coverages(seen: Seen, widen: float = 1.0, runs: int = RUNS) -> dict[str, float]:
    """The shares that intervals so much wider would cover, of the first few releases."""
    return {
        name: float(np.mean(np.concatenate(parts[:runs]) <= widen)) for name, parts in seen.items()
    }


@pytest.fixture(scope="module")
def seen(matrix: FrequencyMatrix) -> Seen:
    return look(matrix)


def test_coverage_is_what_it_says(seen: Seen) -> None:
    found = coverages(seen)
    assert all(0.93 <= share <= 0.97 for share in found.values()), found


def test_wrong_widths_would_be_seen(seen: Seen) -> None:
    for widen in (0.8, 1.25):
        found = coverages(seen, widen, runs=30)
        assert not all(0.93 <= share <= 0.97 for share in found.values()), found


@pytest.mark.parametrize(
    ("name", "epsilon", "runs"),
    telling(
        [("ag", "0.1", RUNS), ("quadtree", "0.5", RUNS), ("htf", "0.5", 60)],
        lambda name, *_: name != "htf",
    ),
)
def test_coverage_after_least_squares(
    matrix: FrequencyMatrix, name: str, epsilon: str, runs: int
) -> None:
    found = coverages(look(matrix, runs, TREES[name], epsilon))
    assert all(0.93 <= share <= 0.97 for share in found.values()), found


def test_independent_leaves_would_be_seen(matrix: FrequencyMatrix) -> None:
    """The sum of leaf variances, which is what the index alone would give, is far too large."""
    release = publish(matrix, "0.5", TREES["quadtree"], noise="seeded:1")
    regions = np.flatnonzero(leaves_below(release) >= 1000)
    low, high = release.tree.low[regions], release.tree.high[regions]
    plain = release.derived.index.measure(low.astype(np.float64), high.astype(np.float64))
    answers = release.count(boxes_of(release, regions))
    assert np.all(plain[:, VARIANCE] > 5 * answers.std_error**2)


def coverage_anywhere(matrix: FrequencyMatrix, mechanism: Mechanism, epsilon: str) -> float:
    """Of boxes of whole cells at random places, 5 to 400 cells wide, on three releases."""
    truth, seen = ExactCounter(matrix), []
    for seed in range(3):
        release = publish(matrix, epsilon, mechanism, noise=f"seeded:{seed}")
        generator = np.random.default_rng(seed)
        sizes = np.exp(generator.uniform(np.log(5), np.log(400), (2000, 2))).astype(np.int64)
        low = generator.integers(0, 1024 - sizes)
        x, y = release.domain.axes
        edges = [x.from_cells(low[:, 0]), y.from_cells(low[:, 1])]
        edges += [x.from_cells((low + sizes)[:, 0]), y.from_cells((low + sizes)[:, 1])]
        answers = release.count(np.column_stack(edges))
        away = distances(answers, truth.count(Boxes(low, low + sizes)))
        seen.append(away[answers.partial > 0])
    return float(np.mean(np.concatenate(seen) <= 1))


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("epsilon", ["0.1", "1"])
def test_coverage_of_boxes_that_cut_leaves(
    matrix: FrequencyMatrix, name: str, epsilon: str
) -> None:
    """6,000 boxes, though of one city: overlapping ones are wrong together. Hence wide limits."""
    assert 0.92 <= coverage_anywhere(matrix, TREES[name], epsilon) <= 0.99


def uneven_at_all_scales() -> FrequencyMatrix:
    """100,000 records shared out to halves of halves by the model of uneven leaves, with kappa 1/4."""
    random, shares = np.random.default_rng(4), np.ones((1, 1))
    for turn in range(16):
        left = random.beta(1.5, 1.5, shares.shape)
        halves = np.stack([shares * left, shares * (1 - left)], axis=1 + turn % 2)
        rows, columns = shares.shape
        shares = halves.reshape(rows * (2 - turn % 2), columns * (1 + turn % 2))
    counts = random.multinomial(100_000, shares.ravel() / shares.sum()).reshape(shares.shape)
    return FrequencyMatrix.from_dense(Domain.from_bounds(0, 0, 256, 256, 256, crs=None), counts)


def test_coverage_of_small_squares_around_records() -> None:
    """400 squares of 2 x 2 cells in each of 20 releases, drawn as records are. The share of a release varies
    by 1.2 %, and so the mean by 0.3 %: 99 % was found. Intervals that reach as far up as they reach down
    cover 91 to 92 %."""
    matrix, held, alike = uneven_at_all_scales(), [], []
    truth, squares = ExactCounter(matrix), read_workload("data-0.006%")
    for seed in range(20):
        release = publish(matrix, "0.05", noise=f"seeded:{seed}")
        boxes = squares.draw(matrix, 400, np.random.SeedSequence(seed))
        found, exact = release.count(np.column_stack([boxes.low, boxes.high])), truth.count(boxes)
        held.append(np.mean((exact >= found.low) & (exact <= found.high)))
        high = found.low + 2 * 1.96 * found.std_error + 1
        alike.append(np.mean((exact >= found.low) & (exact <= high)))
    assert 0.96 <= np.mean(held) <= 0.995, held
    assert np.mean(alike) < 0.93, alike


def places_of_all_sizes() -> FrequencyMatrix:
    """400 places about eight centres, 20,000 records in them with a Pareto tail, as check-ins have."""
    random, shape = np.random.default_rng(5), (256, 256)
    centres = random.uniform(0.25, 0.75, (8, 2))[random.integers(0, 8, 400)]
    cells = np.clip((random.normal(centres, 0.12) * 256).astype(int), 0, 255)
    busy = random.pareto(1.0, 400) + 1
    counts = np.zeros(shape, dtype=np.int64)
    np.add.at(counts, tuple(cells.T), 1 + random.multinomial(19_600, busy / busy.sum()))
    return FrequencyMatrix.from_dense(Domain.from_bounds(0, 0, *shape, 256, crs=None), counts)


def test_coverage_of_places_and_of_the_busiest_of_them() -> None:
    """2 x 2 cells around each of some 400 places, most of which the release knows nothing about, in each of ten
    releases. The share of a release varies by 0.5 % over all places and by 2 % over the busiest tenth, so means lie within
    0.2 and 0.6 % of the 99 and 98 % that 24 releases gave: the limits of 93 % are passed by chance less than once in a
    million runs. With room for published counts alone, and for a part of a clump, they were 62 and 76 %."""
    matrix, held, busiest = places_of_all_sizes(), [], []
    low = np.clip(matrix.exact_coordinates.T.astype(np.int64) - 1, 0, 254)
    truth = ExactCounter(matrix).count(Boxes(low, low + 2))
    most = np.argsort(-truth, kind="stable")[: len(truth) // 10]
    for seed in range(10):
        found = publish(matrix, "0.1", noise=f"seeded:{seed}").count(np.hstack([low, low + 2]))
        covered = (truth >= found.low) & (truth <= found.high)
        held.append(np.mean(covered))
        busiest.append(np.mean(covered[most]))
    assert np.mean(held) >= 0.93, held
    assert np.mean(busiest) >= 0.93, busiest
