"""How records lie inside leaves, where nothing was counted. Public: no data, no noise.

Inside a leaf the density leans towards fuller regions beside it, and follows public priors as far as they are trusted
(htf.estimation.expectation). The count of a leaf is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from htf.errors import InputError
from htf.estimation.expectation import (
    PULL,
    TURNS_OF_A_LEVEL,
    Expectation,
    density_classes,
    mix,
    rounded,
    shares_of_pieces,
    trust_shape,
)
from htf.estimation.prior import Prior
from htf.frame.domain import FloatArray, IntArray
from htf.frame.halving import Neighbourhood, halve_often
from htf.frame.tree import RegionTree

FINER = 4  # halvings of a leaf in which its density is interpolated
LARGEST = 2.0**100  # records: far beyond any sum of counts, and nothing overflows
MOST_PARTS = 2**21  # what a laptop holds; beyond, the leaves that would gain least stay whole
LEAST_MOVED = 0.5  # records that interpolation must move for a leaf to be divided


def interpolate(
    tree: RegionTree,
    leaves: IntArray,
    estimates: FloatArray,
    priors: Sequence[Prior] = (),
    trust: FloatArray | None = None,
    boxes: FloatArray | None = None,
) -> tuple[RegionTree, FloatArray, IntArray]:
    """A finer tree, in which the density of leaves leans towards fuller neighbours, and its estimates.

    The count of a leaf is kept. Inside the leaf the density is interpolated, with no more parts than
    needed: a leaf stays whole if it is empty, or level with its surroundings and its priors. For each
    part of a leaf, the last array has the index of that leaf in `leaves`; for other regions it has -1.

    Without priors, `boxes` in cells leave all leaves whole but those on whose parts their answers depend.
    """
    if not np.all((estimates >= 0) & (estimates < LARGEST)) or np.any(tree.slabs[leaves] > 0):
        raise InputError(
            "leaves must not be cut, and their counts must be neither negative nor absurdly large"
        )
    known = np.zeros(trust_shape(tree.high[0], 0)) if trust is None else trust
    finer, leaf = _divide(tree, leaves, estimates, priors, known, boxes)
    found = np.concatenate([estimates, np.zeros(len(finer) - len(tree))])
    turns = Neighbourhood(finer, all_boxes=False)
    expectation = Expectation(finer, turns.turns, priors, known)
    for step in turns.steps:
        new = step.among(np.flatnonzero(step.left >= len(tree)))
        total = found[new.cut]
        left = rounded(total * expectation.share(new, found))
        found[new.left], found[new.left + 1] = left, total - left
    return finer, found, leaf


def _divide(
    tree: RegionTree,
    leaves: IntArray,
    estimates: FloatArray,
    priors: Sequence[Prior],
    trust: FloatArray,
    boxes: FloatArray | None,
) -> tuple[RegionTree, IntArray]:
    """The finer tree and, for each of its regions that is a part of a leaf, the index of that leaf.

    Parts are divided again while the priors are uneven in them: a large leaf may hold much of their detail.
    """
    finer, turns = tree, Neighbourhood(tree)
    moved = _moved_records(turns, leaves, estimates, Expectation(tree, turns.turns, priors, trust))
    parts, owner = leaves, np.arange(len(leaves))
    found: list[tuple[IntArray, IntArray]] = []  # parts that stay whole, and their leaves
    records, had = estimates[leaves], turns.turns[leaves]
    weights = np.ones((1, len(leaves)))
    while len(parts):
        room = max(MOST_PARTS - len(parts) - sum(len(kept) for kept, _ in found), 0) // 2**FINER
        if priors:
            density = density_classes(finer, parts, records, float(estimates[0]))
            weights = mix(trust, had // TURNS_OF_A_LEVEL, density)
            full = _largest(records, LEAST_MOVED, room)
            by_priors = _moved_by_priors(
                finer, parts[full], had[full], records[full], weights[:, full], priors
            )
            moved[full] = np.maximum(moved[full], by_priors)
        some = _largest(moved, LEAST_MOVED, room)
        if boxes is not None:
            some = _needed(tree, turns, leaves, some, boxes)
        found.append((parts[~some], owner[~some]))
        cut, steps = parts[some], np.full(int(some.sum()), FINER)
        finer = finer.copy(len(cut) * (2 ** (FINER + 1) - 2))
        parts, of = halve_often(finer, cut, had[some], steps)
        owner = owner[some][of]
        if not priors:
            found.append((parts, owner))
            break
        share = shares_of_pieces(finer, cut, parts, of, weights[:, some], priors)
        records, moved = records[some][of] * share, np.zeros(len(parts))
        had = had[some][of] + FINER
    leaf = np.full(len(finer), -1)
    for some_parts, owners in found:
        leaf[some_parts] = owners
    return finer, leaf


def _needed(
    tree: RegionTree,
    turns: Neighbourhood,
    leaves: IntArray,
    divided: NDArray[np.bool_],
    boxes: FloatArray,
) -> NDArray[np.bool_]:
    """Which of the leaves that are divided boxes cut, or have parts on which the parts of those depend.

    A region that had n turns is cut by what is known of regions beside it that had n at most. So if parts of a leaf are
    needed down to those that had n, then parts of leaves beside it are needed down to those that had n - 1.
    """
    some, had, ends = leaves[divided], turns.turns, tree.dimensions
    low, high = tree.low[some], tree.high[some]
    is_divided, reach = np.zeros(len(tree), dtype=np.bool_), np.zeros(len(tree), dtype=np.int64)
    is_divided[some] = True
    for begin, end in zip(boxes[:, :ends], boxes[:, ends:], strict=True):
        touched = np.all((low <= end) & (high >= begin), axis=1)
        cut = some[touched & ~np.all((low >= begin) & (high <= end), axis=1)]
        reach[cut] = had[cut] + FINER
    beside = turns.neighbours[some].reshape(len(some), -1)
    rows, columns = np.nonzero(is_divided[beside])
    pair = some[rows], beside[rows, columns]
    one, other = np.concatenate(pair), np.concatenate(pair[::-1])
    while True:
        deepest = np.minimum(reach[one], had[one] + FINER) - 1
        lent = np.where(reach[one] > had[one], deepest, 0)
        if np.all(lent <= reach[other]):
            return (reach > had)[leaves]
        np.maximum.at(reach, other, lent)


def _moved_records(
    turns: Neighbourhood, leaves: IntArray, estimates: FloatArray, expectation: Expectation
) -> FloatArray:
    """The records that interpolation would move from one half of a leaf to the other, at most."""
    share = np.zeros(len(leaves))
    weights = expectation.weights(leaves, estimates)
    for weight, measure in zip(weights, expectation.measures, strict=True):
        density = estimates / measure
        slope, both = np.zeros(len(leaves)), np.zeros(len(leaves))
        for axis in range(turns.neighbours.shape[1]):
            low, high = density[turns.neighbours[leaves, axis].T]
            here = np.abs(high - low) * (turns.widths(leaves, axis) > 1)
            slope, both = np.maximum(slope, here), np.maximum(both, low + high)
        full = 2 * density[leaves] + PULL * (both - 2 * density[leaves])
        leant = PULL * slope
        share += weight * np.divide(leant, full, out=np.zeros(len(leaves)), where=full > 0)
    return np.asarray(estimates[leaves] * share / 2)


def _moved_by_priors(
    tree: RegionTree,
    parts: IntArray,
    turns: IntArray,
    records: FloatArray,
    weights: FloatArray,
    priors: Sequence[Prior],
) -> FloatArray:
    """The records of each part that lie elsewhere by the priors than if they were spread evenly."""
    trial = tree.copy()
    pieces, owners = halve_often(trial, parts, turns, np.full(len(parts), FINER))
    expected = shares_of_pieces(trial, parts, pieces, owners, weights, priors)
    even = trial.cells(pieces) / tree.cells(parts)[owners]
    apart = np.bincount(owners, np.abs(expected - even), minlength=len(parts))
    return np.asarray(records * apart / 2)


def _largest(values: FloatArray, least: float, most: int) -> NDArray[np.bool_]:
    """The values that are at least `least`, or the `most` largest of them if there are more."""
    some = values >= least
    if np.count_nonzero(some) > most:
        order = np.argsort(-values, kind="stable")
        some[order[most:]] = False
    return np.asarray(some)
