"""Estimates all regions of a given hierarchy from noisy counts: whole numbers, none negative. Public: no data, no noise.

Each region is *measured* by the counts in it and below it (htf.estimation.sharp says how they are combined). Then, from the
top down, the records of a region are divided between its children. Alike, each would have its *expected* count, in
proportion to its cells. How far measured counts can be trusted against that is learnt from all regions of the level
(htf.estimation.shrinkage): in a table of trips most pairs of zones are empty, so a small count is taken for noise, and
the median of what a region may hold is 0. Children add up to their parent at every step, and are rounded to whole numbers
by largest remainders. If no count is near 0, this is least squares but for the rounding.

In a series, what was measured of a region is first joined with what earlier releases count there
(htf.estimation.background). All that follows is the same, so estimates stay whole and add up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from htf.errors import InputError
from htf.estimation.background import Background, join, trust_in_shares
from htf.estimation.least_squares import (
    UNKNOWN,
    SiblingLayer,
    TreeCounts,
    smooth_variances,
    sum_upwards,
)
from htf.estimation.noise_law import scales_of_variances
from htf.estimation.shrinkage import LearntCounts
from htf.frame.domain import FloatArray, IntArray
from htf.frame.tree import RegionTree

HIERARCHY = "hierarchy"  # the name of this estimator in a release
NOTHING = 0.5  # standard deviations: a true count below it is none
# Of its variance: what a region that is called empty takes of what its siblings leave.
SURELY_EMPTY = 1e-4
ABSOLUTE = 2.0**60  # records: the median is of the count, whatever its size
# Records: remainders are told apart by it, because the last digits depend on the processor.
STEP = 2.0**-10
HALF = 0.5 - 2.0**-12  # of a step
LARGEST = 2.0**52  # records: whole numbers stay whole, and nothing overflows


def estimate_hierarchy(
    tree: RegionTree,
    leaves: IntArray,
    counts: TreeCounts,
    shares: int = 1,
    background: Background | None = None,
) -> tuple[FloatArray, FloatArray]:
    """The estimates of the leaves from all counts and from the background, and the scale of the noise that least squares
    leave in each, from which the intervals are made. Where the counts are of shares of people, `shares` is the number of
    them that one person has."""
    _, variances = sum_upwards(tree, counts)
    if np.any(variances == UNKNOWN):
        raise InputError("a region without any count in it or below it cannot be estimated")
    estimates = estimate_regions(tree, counts, shares, background)
    return estimates[leaves], scales_of_variances(smooth_variances(tree, variances)[leaves])


def estimate_regions(
    tree: RegionTree, counts: TreeCounts, shares: int = 1, background: Background | None = None
) -> FloatArray:
    """The estimates of all regions that were counted, and of the whole map; 0 for those in between."""
    own, of_own = counts.as_drawn(tree)
    layers = counted_layers(tree, of_own < UNKNOWN)
    measured, variances = _measure(layers, own, of_own)
    cells, estimates = tree.cells().astype(np.float64), np.zeros(len(tree))
    if background is not None and layers:
        measured, variances = _borrow(background, layers, cells, measured, variances, shares)
    estimates[0] = np.rint(np.clip(measured[0], 0.0, LARGEST))
    for layer in layers:
        some, total = layer.regions, estimates[layer.parents]
        even = cells[some] / cells[layer.parents][layer.group]
        mean, variance = _learn(
            layer, measured[some], variances[some], total[layer.group] * even, tree.slabs[some] == 0
        )
        estimates[some] = round_siblings(layer, total, layer.share_out(total, mean, variance))
    return estimates


def counted_layers(tree: RegionTree, counted: NDArray[np.bool_]) -> list[SiblingLayer]:
    """The regions that were counted, by how many counted ones they lie in. All in the same one are siblings.

    Regions in between, which come of cutting along one axis at a time, say nothing of their own.
    """
    counted = counted.copy()
    counted[0] = True
    above, depth = tree.nearest(counted), np.zeros(len(tree), dtype=np.int64)
    for layer in tree.layers(1):
        depth[layer] = depth[above[layer]] + 1
    found = []
    for level in range(1, int(depth.max()) + 1):
        regions = np.flatnonzero(counted & (depth == level))
        regions = regions[np.argsort(above[regions], kind="stable")]
        found.append(SiblingLayer.of(regions, above[regions]))
    return found


def _measure(
    layers: list[SiblingLayer], own: FloatArray, of_own: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Each region from the counts in it and below it, and the variance of that."""
    from htf.estimation.sharp import combine  # slow to load

    measured, variances = own.copy(), of_own.copy()
    for layer in reversed(layers):
        parents = layer.parents
        below, spread = layer.sum(measured[layer.regions]), layer.sum(variances[layer.regions])
        measured[parents], variances[parents] = below, spread
        counted = of_own[parents] < UNKNOWN
        both = parents[counted]
        measured[both], variances[both] = combine(
            below[counted], spread[counted], own[both], of_own[both]
        )
    return measured, variances


def _borrow(
    background: Background,
    layers: list[SiblingLayer],
    cells: FloatArray,
    measured: FloatArray,
    variances: FloatArray,
    shares: int,
) -> tuple[FloatArray, FloatArray]:
    """What was measured of the regions that were counted, joined with the background, and the variance of that."""
    level, measured, variances = np.zeros(len(cells), np.int64), measured.copy(), variances.copy()
    for number, layer in enumerate(layers, 1):
        level[layer.regions] = number
    known = np.append(0, np.flatnonzero(level))
    trust = trust_in_shares(background, layers, cells, measured, variances, level)
    before = Background(background.values[known], background.variances[known], background.periods)
    measured[known], variances[known] = join(
        measured[known], variances[known], before, level[known], trust[known], shares
    )
    return measured, variances


def _learn(
    layer: SiblingLayer,
    measured: FloatArray,
    variances: FloatArray,
    expected: FloatArray,
    single: NDArray[np.bool_],
) -> tuple[FloatArray, FloatArray]:
    """What to make of the regions of a layer: a mean and a variance of each.

    Where all siblings would be called empty, but their parent is not, what was measured stands.
    """
    deviations, level = np.sqrt(variances), np.zeros(len(measured), dtype=np.int64)
    noisy, scaled, inside = measured / deviations, expected / deviations, expected > 0
    learnt = LearntCounts(noisy[inside], scaled[inside], single[inside], level[inside])
    known = learnt.posterior(noisy, scaled, single, level)
    empty = learnt.is_empty(noisy, scaled, single, deviations, ABSOLUTE, NOTHING)
    lost = (layer.sum(~empty) == 0)[layer.group]
    mean = np.where(empty, 0.0, known.mean * deviations)
    variance = np.where(empty, SURELY_EMPTY, known.variance) * variances
    return np.where(lost, measured, mean), np.where(lost, variances, variance)


def round_siblings(layer: SiblingLayer, total: FloatArray, values: FloatArray) -> FloatArray:
    """Whole numbers that sum to the whole `total` of each group, by largest remainders; of equal ones the first."""
    stepped = np.floor(np.minimum(values, total[layer.group]) / STEP + HALF) * STEP
    whole = np.maximum(np.floor(stepped), 0.0)
    lack = total - layer.sum(whole)
    order = np.lexsort((whole - stepped, layer.group))  # the largest remainder first, in each group
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - layer.starts[layer.group[order]]
    size = np.diff(np.append(layer.starts, len(order)))
    more = np.maximum(np.floor(lack / size), 0.0)  # beyond one each only where digits were lost
    whole += more[layer.group] + (rank < (lack - more * size)[layer.group])
    # Digits of huge numbers may be lost the other way, too: then the largest gives them back.
    excess = np.maximum(layer.sum(whole) - total, 0.0)
    if excess.any():
        largest = np.lexsort((-whole, layer.group))[layer.starts]
        whole[largest] = np.maximum(whole[largest] - excess, 0.0)
    return whole
