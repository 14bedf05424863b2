"""The levels of a map whose cells have names: districts, then tracts, then the hours of each tract. Public.

A level is given by its edges along every axis. The first one is the whole map, and each further one refines the one
before it, down to the cells. Axes with the same names, such as the start and the end of a trip, are refined together:
pairs of districts, then pairs of tracts. All others follow one after the other, in the order of the axes. An axis
without names has two levels, all of it and its cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from htf.frame.domain import Domain, IntArray
from htf.frame.grids import even_edges, limit_parts
from htf.frame.tree import RegionTree

Edges = tuple[IntArray, ...]  # of one level: along each axis


def levels_of(domain: Domain, most_cells: int) -> list[Edges]:
    """The levels of a map, from the whole of it down to its cells.

    Cells of axes without names are joined where the map has more than `most_cells`. Those with names stay apart.
    """
    chains = _chains(domain, most_cells)
    edges = [np.array([0, cells], dtype=np.int64) for cells in domain.shape]
    levels = [tuple(edges)]
    for axes in _refined_together(domain):
        for finer in chains[axes[0]]:
            for axis in axes:
                edges[axis] = finer
            levels.append(tuple(edges))
    return levels


def level_size(edges: Edges) -> int:
    """The number of regions of a level."""
    return math.prod(len(edge) - 1 for edge in edges)


def cells_below(levels: Sequence[Edges]) -> list[tuple[IntArray, IntArray]]:
    """For each level, the numbers of cells of the last level that its regions have, and how many regions have each."""
    found = []
    for edges in levels:
        cells, times = np.ones(1, dtype=np.int64), np.ones(1, dtype=np.int64)
        for edge, last in zip(edges, levels[-1], strict=True):
            each, number = np.unique(np.diff(np.searchsorted(last, edge)), return_counts=True)
            cells, place = np.unique(np.outer(cells, each).ravel(), return_inverse=True)
            times = np.bincount(place, np.outer(times, number).ravel()).astype(np.int64)
        found.append((cells, times))
    return found


def refined_sizes(tree: RegionTree, regions: IntArray, edges: Edges) -> IntArray:
    """How many regions of a finer level each region holds."""
    sizes = np.ones(len(regions), dtype=np.int64)
    for axis, edge in enumerate(edges):
        low, high = tree.low[regions, axis], tree.high[regions, axis]
        sizes *= np.searchsorted(edge, high) - np.searchsorted(edge, low)
    return sizes


def refine(tree: RegionTree, regions: IntArray, edges: Edges) -> IntArray:
    """Cut regions at the edges of a finer level. Returns its regions; one that has no edge inside is its own."""
    for axis, edge in enumerate(edges):
        first = np.searchsorted(edge, tree.low[regions, axis]) + 1
        number = np.searchsorted(edge, tree.high[regions, axis]) - first
        place = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
        regions = cut_some(tree, regions, axis, edge[np.repeat(first, number) + place], number)
    return regions


def cut_some(
    tree: RegionTree, regions: IntArray, axes: IntArray | int, cuts: IntArray, number: IntArray
) -> IntArray:
    """Cut region i along `axes[i]` at the next `number[i]` cuts. Returns its pieces; one without a cut is its own."""
    cut, pieces = number > 0, np.repeat(regions, number + 1)
    along = np.broadcast_to(axes, len(regions))[cut]
    pieces[np.repeat(cut, number + 1)] = tree.cut(regions[cut], along, cuts, number[cut])
    return pieces


def _chains(domain: Domain, most_cells: int) -> list[list[IntArray]]:
    """The edges of every axis, level by level, without the whole of it."""
    plain = [number for number, axis in enumerate(domain.axes) if not axis.levels]
    named = math.prod(axis.cells for axis in domain.axes if axis.levels)
    cells = np.array([domain.shape[number] for number in plain], dtype=np.int64)
    most = max(most_cells // named, 1)
    grid = limit_parts(cells[None], most)[0].tolist() if plain else []
    finest = dict(zip(plain, even_edges(cells.tolist(), grid), strict=True))
    return [_distinct(_chain(domain, axis, finest.get(axis))) for axis in range(domain.dimensions)]


def _chain(domain: Domain, axis: int, cells: IntArray | None) -> list[IntArray]:
    one = domain.axes[axis]
    if not one.levels:
        return [] if cells is None else [cells]
    return [one.edges(level) for level in reversed(range(len(one.levels)))]


def _distinct(chain: Sequence[IntArray]) -> list[IntArray]:
    """Levels that divide something, each once."""
    found: list[IntArray] = []
    for edges in chain:
        if len(edges) > (len(found[-1]) if found else 2):
            found.append(edges)
    return found


def _refined_together(domain: Domain) -> list[list[int]]:
    """Axes of the same names, which are cut at once."""
    groups: dict[object, list[int]] = {}
    for number, axis in enumerate(domain.axes):
        groups.setdefault(axis.levels or number, []).append(number)
    return list(groups.values())
