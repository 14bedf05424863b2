"""The window through which a mechanism asks: the public side of the Curator.

A mechanism is a generator. It yields measurements and is sent noisy answers; the Curator drives it.
So the mechanism holds the public domain, the public tree and the budget, and nothing from which the
data could be reached: there is no reference to follow.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from htf.curator.agreeing import AgreeingCounts
from htf.curator.curve_measurements import LeastCostBuckets, WeightedRuns
from htf.curator.looks import CountLooks, RefinedCounts
from htf.curator.measurements import (
    CountRegions,
    LinearQueries,
    Measurement,
    MedianCuts,
    PrivTreeSplits,
    ScoreSplits,
)
from htf.estimation.prior import Prior
from htf.frame.domain import Domain, IntArray
from htf.frame.tree import RegionTree
from htf.privacy.epsilon import Epsilon

T = TypeVar("T")
Steps = Generator[Measurement, IntArray, T]


@dataclass(frozen=True, slots=True)
class Window:
    """What a mechanism holds: the map, the tree of regions and the budget, never data.

    It has a method for each measurement. Use them inside `Mechanism.build`, as in
    `noisy = yield from window.count(regions, epsilon, "what it is for")`.

    Attributes
    ----------
    domain : Domain
        The map.
    tree : RegionTree
        Its regions so far. Cutting them is free.
    epsilon : Epsilon
        The budget for each record or, where people are counted, for each share of a person.
    priors : tuple of Prior
        What the curator says without the data about where records are.
    shares : int
        The number that counts have for one record or person. More than 1 where people are counted.

    Examples
    --------
    >>> import htf
    >>> import numpy as np
    >>> domain = htf.Domain.from_bounds(0, 0, 4, 4, cells=4)
    >>> from htf.mechanisms import RegionTree
    >>> from htf.mechanisms import Window
    >>> window = Window(domain, RegionTree(domain.shape), htf.Epsilon.of(1))
    >>> window.tree.high[0]
    array([4, 4])
    """

    domain: Domain
    tree: RegionTree
    epsilon: Epsilon
    priors: tuple[Prior, ...] = ()  # what the curator says without the data of where records are
    shares: int = 1  # in which one record or person is counted

    def count(self, regions: Any, epsilon: Epsilon | IntArray, label: str) -> Steps[IntArray]:
        """Ask for the noisy number of records in each region.

        Parameters
        ----------
        regions : array_like of int
            The regions.
        epsilon : Epsilon or ndarray of int
            The price of each answer: one for all, or one each in units of 1e-15.
        label : str
            What the answers are for. It is published in the ledger.

        Returns
        -------
        Steps of ndarray
            A generator for `yield from`, which gives the noisy counts.

        Examples
        --------
        >>> question = next(window.count([0], window.epsilon, "total"))
        >>> question.kind, question.sensitivity
        ('count', 1)
        """
        regions = _integers(regions)
        return (yield CountRegions(label, regions, _each(epsilon, regions)))

    def count_agreeing(
        self, regions: Any, epsilon: Epsilon | IntArray, label: str
    ) -> Steps[IntArray]:
        """Ask for noisy numbers of records that add up: a region has what its parts among the regions have.

        Each costs what it would cost alone, and all together are more accurate than those of `count`.

        Parameters
        ----------
        regions : array_like of int
            The regions. One in which others of them lie must be made up of those.
        epsilon : Epsilon or ndarray of int
            The price of each answer.
        label : str
            What the answers are for.

        Returns
        -------
        Steps of ndarray
            A generator for `yield from`, which gives the noisy counts.

        Examples
        --------
        >>> next(window.count_agreeing([0], window.epsilon, "total")).kind
        'agreeing'
        """
        regions = _integers(regions)
        return (yield AgreeingCounts(label, regions, _each(epsilon, regions)))

    def look(self, regions: Any, epsilon: IntArray, full: IntArray, label: str) -> Steps[IntArray]:
        """Ask for noisy numbers of records that can be made more accurate later, for the difference in price.

        Parameters
        ----------
        regions : array_like of int
            The regions. Each can be looked at once.
        epsilon : ndarray of int
            The price of each look, in units of 1e-15.
        full : ndarray of int
            What it costs together with `refine`: more than the look alone.
        label : str
            What the answers are for.

        Returns
        -------
        Steps of ndarray
            A generator for `yield from`, which gives the noisy counts.

        Examples
        --------
        >>> half = np.array([window.epsilon.units // 2])
        >>> next(window.look([0], half, 2 * half, "at first")).kind
        'look'
        """
        regions = _integers(regions)
        return (yield CountLooks(label, regions, _each(epsilon, regions), _each(full, regions)))

    def refine(self, regions: Any, rest: IntArray, label: str) -> Steps[IntArray]:
        """Ask for what the looks at these regions left out. The answers replace those of the looks.

        Parameters
        ----------
        regions : array_like of int
            Regions that were looked at. Each look can be refined once.
        rest : ndarray of int
            The full price less that of the look, in units of 1e-15.
        label : str
            What the answers are for.

        Returns
        -------
        Steps of ndarray
            A generator for `yield from`, which gives noisy counts as accurate as `count` at the full price.

        Examples
        --------
        >>> rest = np.array([window.epsilon.units // 2])
        >>> next(window.refine([0], rest, "more exactly")).kind
        'refined'
        """
        regions = _integers(regions)
        return (yield RefinedCounts(label, regions, _each(rest, regions)))

    def score_splits(
        self, regions: Any, axes: Any, cuts: Any, epsilon: Epsilon | IntArray, label: str
    ) -> Steps[IntArray]:
        """Ask for noisy homogeneity objectives of cutting each region [HTF, Eq. 4].

        Parameters
        ----------
        regions, axes, cuts : array_like of int
            The regions, the axis to cut each along, and the cell to cut each at.
        epsilon : Epsilon or ndarray of int
            The price of each answer.
        label : str
            What the answers are for.

        Returns
        -------
        Steps of ndarray
            A generator for `yield from`, which gives the noisy objectives.

        Examples
        --------
        >>> next(window.score_splits([0], [0], [2], window.epsilon, "where to cut")).kind
        'homogeneity'
        """
        regions, axes, cuts = _integers(regions), _integers(axes), _integers(cuts)
        return (yield ScoreSplits(label, regions, _each(epsilon, regions), axes, cuts))

    def choose_medians(
        self, regions: Any, axes: Any, epsilon: Epsilon | IntArray, label: str
    ) -> Steps[IntArray]:
        """Ask for cuts near the medians of regions, chosen by the exponential mechanism.

        Parameters
        ----------
        regions, axes : array_like of int
            The regions, and the axis of each.
        epsilon : Epsilon or ndarray of int
            The price of each choice.
        label : str
            What the cuts are for.

        Returns
        -------
        Steps of ndarray
            A generator for `yield from`, which gives the cuts.

        Examples
        --------
        >>> next(window.choose_medians([0], [1], window.epsilon, "medians")).kind
        'median'
        """
        regions, axes = _integers(regions), _integers(axes)
        return (yield MedianCuts(label, regions, _each(epsilon, regions), axes))

    def grow_privtree(
        self,
        region: int,
        axes_by_depth: tuple[tuple[int, ...], ...],
        epsilon: Epsilon,
        label: str,
        *,
        threshold: int = 0,
    ) -> Steps[IntArray]:
        """Let PrivTree cut a region into a subtree. Afterwards the tree has grown.

        Parameters
        ----------
        region : int
            The region.
        axes_by_depth : tuple of tuple of int
            The axes to halve along, for each depth.
        epsilon : Epsilon
            The price of all decisions together.
        label : str
            What the subtree is for.
        threshold : int
            Regions with a noisy count above it are cut.

        Returns
        -------
        Steps of ndarray
            A generator for `yield from`, which gives the decisions.

        Examples
        --------
        >>> next(window.grow_privtree(0, ((0, 1),), window.epsilon, "grow")).kind
        'privtree'
        """
        root = _integers(region)
        return (yield PrivTreeSplits(label, root, _each(epsilon, root), axes_by_depth, threshold))

    def linear_queries(
        self, factors: Sequence[IntArray], edges: Sequence[IntArray], epsilon: Epsilon, label: str
    ) -> Steps[IntArray]:
        """Ask for noisy integer combinations of all cells, row-major over the rows of the factors.

        Parameters
        ----------
        factors : sequence of ndarray of int
            A matrix of coefficients for each axis.
        edges : sequence of ndarray of int
            The edges, in cells, of the columns of each matrix.
        epsilon : Epsilon
            The price of all answers together.
        label : str
            What the answers are for.

        Returns
        -------
        Steps of ndarray
            A generator for `yield from`, which gives the noisy combinations.

        Examples
        --------
        >>> halves = [np.eye(2, dtype=np.int64)] * 2
        >>> edges = [np.array([0, 2, 4])] * 2
        >>> next(window.linear_queries(halves, edges, window.epsilon, "quarters")).kind
        'linear'
        """
        root = _integers(0)
        parts = tuple(factors), tuple(edges)
        return (yield LinearQueries(label, root, _each(epsilon, root), *parts))

    def least_cost_buckets(
        self,
        edges: Sequence[IntArray],
        positions: IntArray,
        penalty: int,
        epsilon: Epsilon,
        label: str,
    ) -> Steps[IntArray]:
        """Ask for the cheapest partition of a curve into buckets: a 1 where one begins, else a 0.

        Parameters
        ----------
        edges : sequence of ndarray of int
            The edges of a grid of cells, for each axis.
        positions : ndarray of int
            The place of each grid cell on the curve.
        penalty : int
            What each bucket costs.
        epsilon : Epsilon
            The price of the partition.
        label : str
            What it is for.

        Returns
        -------
        Steps of ndarray
            A generator for `yield from`, which gives the partition.

        Examples
        --------
        >>> edges, along = [np.array([0, 2, 4])] * 2, np.arange(4)
        >>> next(window.least_cost_buckets(edges, along, 8, window.epsilon, "buckets")).kind
        'buckets'
        """
        root = _integers(0)
        price = _each(epsilon, root)
        return (yield LeastCostBuckets(label, root, price, tuple(edges), positions, penalty))

    def weighted_runs(
        self,
        edges: Sequence[IntArray],
        positions: IntArray,
        starts: IntArray,
        stops: IntArray,
        weights: IntArray,
        epsilon: Epsilon,
        label: str,
    ) -> Steps[IntArray]:
        """Ask for noisy weighted sums of runs of positions along a curve.

        Parameters
        ----------
        edges : sequence of ndarray of int
            The edges of a grid of cells, for each axis.
        positions : ndarray of int
            The place of each grid cell on the curve.
        starts, stops, weights : ndarray of int
            Where each run begins and ends, and its weight.
        epsilon : Epsilon
            The price of all sums together.
        label : str
            What the sums are for.

        Returns
        -------
        Steps of ndarray
            A generator for `yield from`, which gives the noisy sums.

        Examples
        --------
        >>> edges, along = [np.array([0, 2, 4])] * 2, np.arange(4)
        >>> run = np.array([0]), np.array([4]), np.array([1])
        >>> next(window.weighted_runs(edges, along, *run, window.epsilon, "all")).kind
        'runs'
        """
        root = _integers(0)
        curve = _each(epsilon, root), tuple(edges), positions
        return (yield WeightedRuns(label, root, *curve, starts, stops, weights))


def _integers(values: Any) -> IntArray:
    """As an array; the measurement refuses what are not whole numbers."""
    return np.atleast_1d(np.asarray(values))


def _each(epsilon: Epsilon | IntArray, regions: IntArray) -> IntArray:
    if isinstance(epsilon, Epsilon):
        return np.full(len(regions), epsilon.units, dtype=np.int64)
    return _integers(epsilon)
