"""A prior: public weights that say where records may be expected, made without looking at them. Public.

It may be a land mask, a population raster, public points or an earlier release, which the curator gives
along with the data. Estimates then count records per unit of prior measure instead of per cell
(htf.estimation.homogeneous). The prior travels with the release, because its estimates follow from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from htf.base import arguments
from htf.base.read_only import ReadOnlyArrays
from htf.errors import InputError
from htf.frame.domain import Domain, FloatArray, IntArray, check_domain
from htf.frame.grids import sum_boxes, summed_area_table
from htf.frame.tree import RegionTree

if TYPE_CHECKING:
    from htf.privacy.origins import FileMark

MOST_PRIOR_CELLS = 2**20  # of a prior: what a file can carry beside its boxes
MOST_PRIORS = 4  # every choice of them is tried
MOST_AXES = 5  # a box is made of up to 6**axes sums
# Of the measure. The rest is even over all cells: a prior may be wrong, and where it is zero there
# must be room for records still.
PRIOR_SHARE = 0.9
# Whole numbers up to this, for at most MOST_PRIOR_CELLS of them add up exactly.
LARGEST_WEIGHT = 2**31


@dataclass(frozen=True, eq=False)
class Prior(ReadOnlyArrays):
    """What is known about the map without the data: weights over cells of its own. `read_prior` makes one.

    Attributes
    ----------
    domain : Domain
        The map, in the cells of the prior.
    weights : ndarray of uint32
        The weight of each cell.
    name : str
        The name of the file it came from.
    sha256 : str
        The digest of that file.
    file : FileMark, optional
        For the curator. No release has it.

    Examples
    --------
    >>> import htf
    >>> import numpy as np
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> prior = htf.read_prior(np.array([[1, 1], [0, 0]]), domain)
    >>> prior.weights
    array([[1, 1],
           [0, 0]], dtype=uint32)
    """

    domain: Domain  # the map in the prior's cells
    weights: NDArray[np.uint32]
    name: str  # of the file it came from
    sha256: str  # of that file
    file: FileMark | None = field(default=None, repr=False)  # for the curator; no release has it

    def __post_init__(self) -> None:
        check_domain(self.domain)
        arguments.text(self.name, "the name of a prior")
        arguments.text(self.sha256, "the SHA-256 of a prior")
        if self.file is not None:
            from htf.privacy.origins import FileMark  # slow to load

            arguments.instance(self.file, FileMark, "file")
        if not isinstance(self.weights, np.ndarray) or self.weights.dtype != np.uint32:
            remedy = "make a prior with htf.read_prior"
            raise arguments.unfit("weights", "an array of uint32", self.weights, remedy)
        if self.weights.shape != self.domain.shape or self.weights.size > MOST_PRIOR_CELLS:
            raise InputError(f"the prior {self.name} does not fit its cells")
        if self.domain.dimensions > MOST_AXES:
            raise InputError(
                f"a prior works on maps of at most {MOST_AXES} axes, but this one has "
                f"{self.domain.dimensions}: leave it out"
            )
        if not self.weights.any():
            raise InputError(
                f"the prior {self.name} is zero everywhere on this map: do its bounds agree with the map's?"
            )
        self.weights.flags.writeable = False

    @classmethod
    def of(
        cls, values: ArrayLike, domain: Domain, name: str, sha256: str, file: FileMark | None = None
    ) -> Prior:
        """Make a prior from an array `[x, y, …]` that covers the map.

        Parameters
        ----------
        values : array_like
            Weights or truth values, with any number of cells along each axis.
        domain : Domain
            The map.
        name : str
            What to call the prior.
        sha256 : str
            The digest of where it came from.
        file : FileMark, optional
            The file it came from.

        Returns
        -------
        Prior
            The prior.

        Raises
        ------
        InputError
            If values are negative or not finite, or do not cover the map.

        Examples
        --------
        >>> from htf.estimation.prior import Prior
        >>> Prior.of([[1, 1], [0, 0]], domain, "array", prior.sha256) == prior
        True
        """
        check_domain(domain)
        arguments.text(name, "the name of a prior")
        array = read_weights(values)
        if array.ndim != domain.dimensions or array.size == 0 or array.dtype.kind not in "biuf":
            raise InputError(
                f"the prior {name} is an array of {array.dtype} of shape {array.shape}: give numbers with "
                f"one axis for each of the map's, {', '.join(domain.names)}"
            )
        array = array.astype(np.float64)
        wrong = array[~(np.isfinite(array) & (array >= 0))]
        if wrong.size:
            raise InputError(
                f"the prior {name} has the value {wrong[0]}: values must be finite and not negative; "
                "use 0 where nothing is expected"
            )
        own = prior_cells(_with_cells(domain, array.shape))
        return cls(own, _whole_numbers(array, own.shape), name, sha256, file)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Prior):
            return NotImplemented
        same = (self.domain, self.name, self.sha256) == (other.domain, other.name, other.sha256)
        return same and np.array_equal(self.weights, other.weights)

    def __hash__(self) -> int:
        return hash(self.sha256)

    def as_published(self) -> Prior:
        """Leave out the mark of the file, which names a folder of the curator.

        Returns
        -------
        Prior
            What a release carries.

        Examples
        --------
        >>> prior.as_published().file is None
        True
        """
        return replace(self, file=None)

    def to_dict(self) -> dict[str, Any]:
        """Describe everything but the weights with plain values.

        Returns
        -------
        dict
            Name, digest and cells.

        Examples
        --------
        >>> prior.to_dict()["cells"]
        [2, 2]
        """
        return {"name": self.name, "sha256": self.sha256, "cells": list(self.domain.shape)}

    @classmethod
    def from_dict(cls, data: dict[str, Any], domain: Domain, weights: Any) -> Prior:
        """Make a prior from what `to_dict` gave, and its weights.

        Parameters
        ----------
        data : dict
            Name, digest and cells.
        domain : Domain
            The map.
        weights : ndarray
            The weights.

        Returns
        -------
        Prior
            The prior.

        Raises
        ------
        InputError
            If the weights do not fit the cells.

        Examples
        --------
        >>> from htf.estimation.prior import Prior
        >>> Prior.from_dict(prior.to_dict(), domain, prior.weights) == prior
        True
        """
        own = _with_cells(domain, data["cells"])
        if weights.size != own.size:
            raise InputError(f"the prior {data['name']} does not fit its cells")
        return cls(own, weights.astype(np.uint32).reshape(own.shape), data["name"], data["sha256"])

    def check_map(self, domain: Domain) -> None:
        """Refuse a map with other axes or other bounds.

        Parameters
        ----------
        domain : Domain
            The map of the data.

        Raises
        ------
        InputError
            If the prior is of another map.

        Examples
        --------
        >>> prior.check_map(domain)
        """
        check_domain(domain)
        if _with_cells(self.domain, domain.shape) != domain:
            raise InputError(
                f"the prior {self.name} is of another map ({show_bounds(self.domain)}) than the data "
                f"({show_bounds(domain)}): give one with the same bounds"
            )

    def measure(self, tree: RegionTree, regions: IntArray) -> FloatArray:
        """The share of all records that is expected in each region, before any is counted.

        Parameters
        ----------
        tree : RegionTree
            The regions of the map.
        regions : ndarray of int
            Which of them.

        Returns
        -------
        ndarray of float
            The shares.

        Examples
        --------
        >>> from htf.mechanisms import RegionTree
        >>> tree = RegionTree(domain.shape)
        >>> halves = tree.split(np.array([0]), np.array([0]), np.array([1]))[0]
        >>> prior.measure(tree, halves).round(2)
        array([0.95, 0.05])
        """
        shape = tree.high[0]
        spans = [
            _spans(tree.low[regions, axis], tree.high[regions, axis], int(cells), own)
            for axis, (cells, own) in enumerate(zip(shape, self.domain.shape, strict=True))
        ]
        mass = np.zeros(len(regions))
        for some in product(*spans):
            begin, end, shares = (np.array(part) for part in zip(*some, strict=True))
            share = np.prod(shares, axis=0)
            if share.any():
                mass += share * sum_boxes(self._table, begin.T, end.T)
        even = tree.cells(regions) / float(np.prod(shape, dtype=np.float64))
        return np.asarray(PRIOR_SHARE * mass / self._total + (1 - PRIOR_SHARE) * even)

    @cached_property
    def _total(self) -> float:
        return float(self.weights.sum(dtype=np.int64))

    @cached_property
    def _table(self) -> IntArray:
        """Sums of the weights before each corner."""
        return summed_area_table(self.weights.astype(np.int64))


def all_priors(given: object) -> tuple[Prior, ...]:
    """The priors that a caller gives: none, one or several."""
    if given is None:
        return ()
    several = given if isinstance(given, (list, tuple)) else [given]
    for one in several:
        arguments.instance(one, Prior, "prior", "make one with htf.read_prior(source, domain)")
    if len(several) > MOST_PRIORS:
        raise InputError(f"give at most {MOST_PRIORS} priors, not {len(several)}")
    return tuple(several)


# Cells of a prior along one axis, from one to another, and the share of each that a region covers.
_Span = tuple[IntArray, IntArray, FloatArray]


def _spans(low: IntArray, high: IntArray, cells: int, own: int) -> tuple[_Span, _Span, _Span]:
    """What regions cover of a prior's `own` cells: part of a first one, whole ones, part of a last.

    Parts are added up and nothing is taken away, so that even the smallest region has its exact share.
    """
    start, before = np.divmod(low * own, cells)
    stop, after = np.divmod(high * own, cells)
    inside = start == stop  # of a single cell
    first = np.where(inside, after - before, -before % cells) / cells
    last = np.where(inside, 0, after) / cells
    whole = np.where(inside, start, start + (before > 0))
    behind = np.minimum(stop, own - 1)
    middle = whole, stop, np.ones(len(low))
    return (start, start + 1, first), middle, (behind, behind + 1, last)


def read_weights(values: object) -> NDArray[Any]:
    """An array of numbers, or of truth values as in a mask."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "b":
        return values
    return arguments.array(values, "the values of a prior")


def prior_cells(domain: Domain) -> Domain:
    """The map with its cells, or as many fewer as a prior may have."""
    shape = list(domain.shape)
    while math.prod(shape) > MOST_PRIOR_CELLS:
        longest = shape.index(max(shape))
        shape[longest] = -(-shape[longest] // 2)
    return _with_cells(domain, shape)


def show_bounds(domain: Domain) -> str:
    return ", ".join(f"{axis.name} {axis.low:g} to {axis.high:g}" for axis in domain.axes)


def _with_cells(domain: Domain, shape: Any) -> Domain:
    if len(shape) != domain.dimensions:
        return domain
    axes = [replace(axis, cells=int(n)) for axis, n in zip(domain.axes, shape, strict=True)]
    return Domain(tuple(axes), domain.crs)


def _whole_numbers(array: FloatArray, shape: tuple[int, ...]) -> NDArray[np.uint32]:
    """The weights of fewer cells as whole numbers: as they are, or scaled where they are none."""
    largest = array.max()
    if largest > LARGEST_WEIGHT:
        array = array / largest
    for axis, cells in enumerate(shape):
        array = _resampled(array, axis, cells)
    largest = array.max()
    if largest > LARGEST_WEIGHT or np.any(array != np.rint(array)):
        array = np.rint(array / largest * LARGEST_WEIGHT)
    return array.astype(np.uint32)


def _resampled(array: FloatArray, axis: int, cells: int) -> FloatArray:
    """Sums over `cells` equal slices along an axis; a cell across an edge counts by what is covered."""
    if array.shape[axis] == cells:
        return array
    array = np.moveaxis(array, axis, 0)
    sums = np.concatenate([np.zeros((1, *array.shape[1:])), np.cumsum(array, axis=0)])
    place, rest = np.divmod(np.arange(cells + 1) * len(array), cells)
    beyond = sums[np.minimum(place + 1, len(array))]
    share = (rest / cells).reshape(-1, *[1] * (array.ndim - 1))
    return np.moveaxis(np.diff(sums[place] + share * (beyond - sums[place]), axis=0), 0, axis)
