"""What a mechanism holds: the public side of the Curator.

A mechanism is a generator. It yields measurements and is sent noisy answers; the Curator drives it.
So the mechanism holds the public domain, the public tree and the budget, and nothing from which the
data could be reached: there is no reference to follow.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from htf.curator.measurements import CountRegions, Measurement, ScoreSplits
from htf.domain import Domain, IntArray
from htf.epsilon import Epsilon
from htf.tree import RegionTree

T = TypeVar("T")
Steps = Generator[Measurement, IntArray, T]


@dataclass(frozen=True, slots=True)
class Window:
    """The domain, the tree of regions and the total budget, with a method for each measurement.

    Use them as `noisy = yield from window.count(regions, epsilon, "what it is for")`.
    """

    domain: Domain
    tree: RegionTree
    epsilon: Epsilon

    def count(self, regions: Any, epsilon: Epsilon | IntArray, label: str) -> Steps[IntArray]:
        """Noisy numbers of records in `regions`."""
        regions = _integers(regions)
        return (yield CountRegions(label, regions, _each(epsilon, regions)))

    def score_splits(
        self, regions: Any, axes: Any, cuts: Any, epsilon: Epsilon | IntArray, label: str
    ) -> Steps[IntArray]:
        """Noisy homogeneity objectives of cutting `regions` at `cuts` along `axes`."""
        regions, axes, cuts = _integers(regions), _integers(axes), _integers(cuts)
        return (yield ScoreSplits(label, regions, _each(epsilon, regions), axes, cuts))


def _integers(values: Any) -> IntArray:
    array = np.array(values, dtype=np.int64, ndmin=1)
    array.flags.writeable = False
    return array


def _each(epsilon: Epsilon | IntArray, regions: IntArray) -> IntArray:
    if isinstance(epsilon, Epsilon):
        return np.full(len(regions), epsilon.units, dtype=np.int64)
    return _integers(epsilon)
