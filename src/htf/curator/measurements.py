"""Measurements: the questions that a Curator answers. `catalogue.py` has the closed set of them.

Each knows its exact value and its sensitivity: how far one record more or less, in a cell of the
measured region, can move the answer. A record elsewhere does not move it at all. A new
measurement belongs in this folder and names its proof in docs/proofs/.

Most add noise to integers (`NoisyIntegers`). Some choose (`MedianCuts`, `PrivTreeSplits`): they reveal
only the choice, and so need less noise than if they revealed everything that led to it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from htf.base import arguments
from htf.base.read_only import ReadOnlyArrays
from htf.errors import InputError
from htf.frame.domain import IntArray
from htf.frame.tree import RegionTree
from htf.privacy.epsilon import UNITS_PER_EPSILON, Epsilon

if TYPE_CHECKING:
    from htf.curator.cells import ExactCells
    from htf.curator.noise import NoiseSource


LARGEST_SCALE = 2**52  # noise must be 2,048 times this to pass 64 bits: never, in exp(-2048)
LARGEST_THRESHOLD = 2**40
LARGEST_COEFFICIENT = 2**22  # times 2**40 records fits 64 bits


@dataclass(frozen=True, slots=True, eq=False)
class Measurement(ReadOnlyArrays, ABC):
    """A question to the Curator about some regions, each answer charged its epsilon.

    The set of measurements is closed: make them with the methods of a Window.

    Attributes
    ----------
    kind : str
        The kind of measurement, such as `count`.
    sensitivity : int
        By how much one record can move an answer. The scale of the noise is that over epsilon.
    label : str
        What the answers are for.
    regions : ndarray of int
        The regions asked about.
    epsilon : ndarray of int
        The price of each answer in units of 1e-15.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> from htf.mechanisms import RegionTree
    >>> from htf.mechanisms import Window
    >>> window = Window(domain, RegionTree(domain.shape), htf.Epsilon.of(1))
    >>> question = next(window.count([0], window.epsilon, "total"))
    >>> from htf.curator.measurements import Measurement
    >>> isinstance(question, Measurement), question.label
    (True, 'total')
    """

    kind: ClassVar[str]
    sensitivity: ClassVar[int]  # what one record can move; the noise is that much over epsilon
    proof: ClassVar[str]  # the page that shows that an answer costs no more than its epsilon

    label: str
    regions: IntArray
    epsilon: IntArray

    def __post_init__(self) -> None:
        """Keep copies of our own, so that nobody changes a question after it was charged."""
        arguments.text(self.label, "the label of a measurement")
        for place in fields(self):
            if place.type == "IntArray":
                own = own_integers(getattr(self, place.name), place.name)
                object.__setattr__(self, place.name, own)

    @abstractmethod
    def answer(self, cells: ExactCells, noise: NoiseSource) -> IntArray:
        """What leaves the Curator. Only it calls this, after the charge, with what only it has."""

    @property
    def rows(self) -> int:
        """How many rows `details` has."""
        return len(self.regions)

    def details(self, answer: IntArray) -> dict[str, IntArray | int]:
        """The rows that are kept with the release, by default one for each region asked about.

        Parameters
        ----------
        answer : ndarray of int
            The noisy answers.

        Returns
        -------
        dict
            Columns by name.

        Examples
        --------
        >>> import numpy as np
        >>> question.details(np.array([41]))["value"]
        array([41])
        """
        return {"region": self.regions, "epsilon": self.epsilon, "value": answer}

    def check(self, tree: RegionTree) -> None:
        """Refuse a question that makes no sense, before it is charged.

        Parameters
        ----------
        tree : RegionTree
            The regions that there are.

        Raises
        ------
        InputError
            If the question makes no sense.

        Examples
        --------
        >>> question.check(window.tree)
        """
        tree.check_regions(self.regions)
        if self.epsilon.shape != self.regions.shape:
            raise InputError("a measurement needs one epsilon for each region")
        if len(self.epsilon) == 0:
            raise InputError(f"{self.label}: the measurement names no region")
        if self.epsilon.min() <= 0:
            raise InputError(f"{self.label}: every epsilon must be positive")
        if self.sensitivity * UNITS_PER_EPSILON > int(self.epsilon.min()) * LARGEST_SCALE:
            raise InputError(
                f"{self.label}: the noise of so small an epsilon does not fit into 64 bits"
            )

    def _check_after(self, cells: ExactCells) -> None:
        """Refuse, before it is charged, what the answers so far rule out."""


class NoisyIntegers(Measurement):
    """An integer for each region, plus discrete Laplace noise of scale sensitivity / epsilon."""

    __slots__ = ()

    @abstractmethod
    def exact(self, cells: ExactCells) -> IntArray:
        """The exact integers."""

    def answer(self, cells: ExactCells, noise: NoiseSource) -> IntArray:
        return self.exact(cells) + noise.draw(self.epsilon, self.sensitivity)


@dataclass(frozen=True, slots=True, eq=False)
class CountRegions(NoisyIntegers):
    """The number of records in each region."""

    kind = "count"
    sensitivity = 1
    proof = "docs/proofs/count.md"

    def exact(self, cells: ExactCells) -> IntArray:
        return cells.count(self.regions)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreSplits(NoisyIntegers):
    """The homogeneity objective of cutting each region at `cuts` along `axes` [HTF, Eq. 4],
    each half rounded down to an integer."""

    kind = "homogeneity"
    sensitivity = 2
    proof = "docs/proofs/homogeneity.md"

    axes: IntArray
    cuts: IntArray

    def exact(self, cells: ExactCells) -> IntArray:
        return cells.score_splits(self.regions, self.axes, self.cuts)

    def details(self, answer: IntArray) -> dict[str, IntArray | int]:
        return {**Measurement.details(self, answer), "axis": self.axes, "cut": self.cuts}

    def check(self, tree: RegionTree) -> None:
        Measurement.check(self, tree)
        _check_axes(self.axes, self.regions, tree)
        if self.cuts.shape != self.regions.shape:
            raise InputError("scoring splits needs one cut for each region")
        low, high = tree.low[self.regions, self.axes], tree.high[self.regions, self.axes]
        if np.any((self.cuts <= low) | (self.cuts >= high)):
            raise InputError("a split must leave cells on both sides of it")


@dataclass(frozen=True, slots=True, eq=False)
class MedianCuts(Measurement):
    """Where to cut each region along its axis, near the median, by the exponential mechanism.

    The utility of a cut is -|2 * left - n|, with n records in the region and `left` below the cut.
    """

    kind = "median"
    sensitivity = 1  # of the utility
    proof = "docs/proofs/median.md"

    axes: IntArray

    def answer(self, cells: ExactCells, noise: NoiseSource) -> IntArray:
        """A cut k with probability proportional to exp(-epsilon / 2 * |2 * left(k) - n|)."""
        return cells.choose_medians(self.regions, self.axes, self.epsilon, noise.words)

    def details(self, answer: IntArray) -> dict[str, IntArray | int]:
        return {**Measurement.details(self, answer), "axis": self.axes, "cut": answer}

    def check(self, tree: RegionTree) -> None:
        Measurement.check(self, tree)
        _check_axes(self.axes, self.regions, tree)
        if np.any(tree.high[self.regions, self.axes] - tree.low[self.regions, self.axes] < 2):
            raise InputError("a region of one cell has no place for a cut")


@dataclass(frozen=True, slots=True, eq=False)
class PrivTreeSplits(Measurement):
    """PrivTree's structure: which regions to cut, with constant noise whatever the depth.

    Starts at one region, which must not be cut yet. The tree itself grows: a region that is to be
    split is cut in half along every axis of `axes_by_depth[depth]` that has two cells or more (the
    list repeats). The answer says of every region that could have been split whether it was (0 or 1),
    in the order visited: decisions only, never a count.
    """

    kind = "privtree"
    sensitivity = 1
    proof = "docs/proofs/privtree.md"

    axes_by_depth: tuple[tuple[int, ...], ...]
    threshold: int

    def __post_init__(self) -> None:
        Measurement.__post_init__(self)
        axes = tuple(tuple(own_integers(a, "axes").tolist()) for a in self.axes_by_depth)
        object.__setattr__(self, "axes_by_depth", axes)
        own_whole_number(self, "threshold", LARGEST_THRESHOLD)

    @property
    def fan_out(self) -> int:
        return 1 << max(len(axes) for axes in self.axes_by_depth)

    @property
    def rate(self) -> Fraction:
        """1 / lambda = epsilon (beta - 1) / (2 beta - 1)"""
        beta = self.fan_out
        return Fraction(int(self.epsilon[0]) * (beta - 1), UNITS_PER_EPSILON * (2 * beta - 1))

    @property
    def decay(self) -> int:
        """delta = ceil(lambda * ln beta): rounded down it would overspend."""
        return round_up_logarithm(self.fan_out, self.rate)

    def answer(self, cells: ExactCells, noise: NoiseSource) -> IntArray:
        return cells.grow_privtree(
            int(self.regions[0]),
            self.axes_by_depth,
            lambda counts, depth: self._decide(counts, depth, noise),
        )

    def _decide(self, counts: IntArray, depth: int, noise: NoiseSource) -> NDArray[np.bool_]:
        biased = np.maximum(counts - depth * self.decay, self.threshold - self.decay)
        return biased + noise.draw_at(self.rate, len(counts)) > self.threshold

    def details(self, answer: IntArray) -> dict[str, IntArray | int]:
        """The decisions are the tree itself; one row holds their number."""
        return {**Measurement.details(self, answer), "value": len(answer)}

    def check(self, tree: RegionTree) -> None:
        Measurement.check(self, tree)
        if len(self.regions) != 1 or tree.slabs[self.regions].any():
            raise InputError("PrivTree starts at one region, not cut yet")
        if not self.axes_by_depth or not all(self.axes_by_depth):
            raise InputError("PrivTree needs at least one axis to cut at every depth")
        for axes in self.axes_by_depth:
            _check_axes(np.array(axes), np.array(axes), tree)


class GridQueries(Measurement):
    """Questions about a coarser grid, with `edges` along each axis, that are charged once: to the whole map."""

    __slots__ = ()
    edges: tuple[IntArray, ...]

    def __post_init__(self) -> None:
        Measurement.__post_init__(self)
        object.__setattr__(self, "edges", tuple(own_integers(e, "edges") for e in self.edges))

    def details(self, answer: IntArray) -> dict[str, IntArray | int]:
        """All rows are paid for once, with the first; `cut` numbers them."""
        epsilon = np.zeros(len(answer), dtype=np.int64)
        epsilon[0] = self.epsilon[0]
        return {"region": 0, "epsilon": epsilon, "value": answer, "cut": np.arange(len(answer))}

    def check(self, tree: RegionTree) -> None:
        Measurement.check(self, tree)
        if self.regions.tolist() != [0]:
            raise InputError("questions about a grid are about the whole map")
        if len(self.edges) != tree.dimensions:
            raise InputError("a grid needs edges for each axis")
        for edges, cells in zip(self.edges, tree.high[0].tolist(), strict=True):
            if len(edges) < 2 or edges[0] != 0 or edges[-1] != cells or np.any(np.diff(edges) <= 0):
                raise InputError(f"the edges of an axis must ascend from 0 to {cells}")


class NoisySums(GridQueries, NoisyIntegers):
    """An integer for each row, plus discrete Laplace noise of scale sensitivity / epsilon."""

    __slots__ = ()

    def answer(self, cells: ExactCells, noise: NoiseSource) -> IntArray:
        rate = Fraction(int(self.epsilon[0]), UNITS_PER_EPSILON * self.sensitivity)
        return self.exact(cells) + noise.draw_at(rate, self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class LinearQueries(NoisySums):
    """Integer combinations of all cells: the Kronecker product of one matrix for each axis.

    Row (i, j, …) is the sum over cells of factors[0][i, x] * factors[1][j, y] * … * count(x, y, …).
    Cells may be joined first into those of a coarser grid, with the given edges along each axis. All
    rows together are one measurement of the root, with the L1 sensitivity of the product.
    """

    kind = "linear"
    proof = "docs/proofs/linear-queries.md"

    factors: tuple[IntArray, ...]
    edges: tuple[IntArray, ...]

    def __post_init__(self) -> None:
        GridQueries.__post_init__(self)
        factors = tuple(own_integers(factor, "factors", dimensions=2) for factor in self.factors)
        object.__setattr__(self, "factors", factors)

    @property
    def sensitivity(self) -> int:  # type: ignore[override]
        """The product of the factors' largest column sums of absolute values."""
        return math.prod(
            int(np.abs(factor).sum(axis=0, dtype=np.int64).max(initial=0))
            for factor in self.factors
        )

    @property
    def rows(self) -> int:
        return math.prod(len(factor) for factor in self.factors)

    def exact(self, cells: ExactCells) -> IntArray:
        return cells.combine(self.factors, self.edges)

    def check(self, tree: RegionTree) -> None:
        if any(_largest(factor) > LARGEST_COEFFICIENT for factor in self.factors):
            raise InputError("an entry of a factor must not pass 2**22")  # so that sums are exact
        GridQueries.check(self, tree)
        if len(self.factors) != len(self.edges):
            raise InputError("linear queries need one factor for each axis")
        for factor, edges in zip(self.factors, self.edges, strict=True):
            if factor.shape[1] != len(edges) - 1:
                raise InputError("a factor needs one column for each cell between the edges")
        if self.sensitivity < 1:
            raise InputError("linear queries must ask for something")
        if math.prod(_largest(factor) for factor in self.factors) > LARGEST_COEFFICIENT:
            raise InputError("the product of the factors' largest entries must not pass 2**22")


def own_integers(values: Any, name: str, dimensions: int = 1) -> IntArray:
    """A read-only 64-bit copy of whole numbers; anything else is refused, nothing is cut short."""
    array = arguments.array(values, name)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != dimensions or array.dtype.kind not in "iu":
        raise InputError(f"{name} must be whole numbers in {dimensions} dimensions")
    if array.dtype.kind == "u" and array.size and int(array.max()) >= 2**63:
        raise InputError(f"{name} must fit 64 bits")
    copy = array.astype(np.int64, copy=True)
    copy.flags.writeable = False
    return copy


def own_whole_number(measurement: Measurement, name: str, largest: int) -> None:
    """Replace a field by a plain integer of our own, or refuse it."""
    value = own_integers([getattr(measurement, name)], name)[0]
    if abs(int(value)) > largest:
        raise InputError(f"{name} must lie between {-largest} and {largest}, got {value}")
    object.__setattr__(measurement, name, int(value))


def _largest(factor: IntArray) -> int:
    return max(abs(int(factor.max(initial=0))), abs(int(factor.min(initial=0))))


def _check_axes(axes: IntArray, regions: IntArray, tree: RegionTree) -> None:
    if axes.shape != regions.shape:
        raise InputError("each region needs one axis")
    if np.any((axes < 0) | (axes >= tree.dimensions)):
        raise InputError(f"an axis must lie between 0 and {tree.dimensions - 1}")


def round_up_logarithm(number: int, rate: Fraction) -> int:
    """ceil(ln(number) / rate), exactly."""
    from decimal import Context, Decimal

    context = Context(prec=60)
    quotient = Fraction(context.ln(Decimal(number))) / rate
    margin = quotient / 10**50
    low, high = -(-(quotient - margin) // 1), -(-(quotient + margin) // 1)
    if low != high:  # ln is irrational: sixty digits settle it
        raise ArithmeticError(f"cannot round ln({number}) / {rate}")
    return int(low)


def joint(epsilon: Epsilon) -> tuple[IntArray, IntArray]:
    """Regions and epsilon of a measurement that is charged once, to the whole map."""
    return np.zeros(1, dtype=np.int64), np.array([epsilon.units], dtype=np.int64)
