"""What statistical offices did before differential privacy: rounding, and cell keys. Of the bench, not mechanisms.

Both publish a grid of counts. Neither has an epsilon or a guarantee: whoever knows all records but one can often work out
that one. The bench shows what their accuracy is bought with.

- *Rounding*: each count is rounded to the nearest multiple of a base. No noise is drawn.
- *Cell keys* (Fraser and Wooton 2005): every record has a secret random key. The keys of the records of a count add up to the key
  of the count, and a table of chances, the p-table, turns that key into noise. So the same records always have the same
  noise, which repeated questions cannot average out. The chances are those with the largest entropy that are at
  most `most` away from the true count, without bias, with the given variance, never below zero, and nothing for an empty
  square (Giessing 2016).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from htf.base import numerals
from htf.curator.frequency import FrequencyMatrix
from htf.errors import InputError
from htf.forecasts.workloads import Boxes
from htf.frame.domain import FloatArray, IntArray
from htf.frame.grids import even_edges
from htf_bench.mechanisms.hdmm import minimise

MOST_STEPS = 500  # by far, to the chances of a table


class Table(NamedTuple):
    """Published counts of the squares of a grid, each spread evenly over its square."""

    edges: tuple[IntArray, IntArray]  # in cells
    sums: FloatArray  # of all squares below and left of each corner

    @classmethod
    def of(cls, edges: tuple[IntArray, IntArray], counts: FloatArray) -> Table:
        return cls(edges, np.pad(counts, ((1, 0), (1, 0))).cumsum(0).cumsum(1))

    def answer(self, boxes: Boxes) -> FloatArray:
        """Sums of boxes of whole cells: the table of sums, interpolated between its corners."""
        low, high = boxes.low, boxes.high
        (left, right), (below, above) = (
            [np.interp(ends[:, n], edge, np.arange(len(edge), dtype=float)) for ends in (low, high)]
            for n, edge in enumerate(self.edges)
        )
        at = self._at
        return at(right, above) - at(left, above) - at(right, below) + at(left, below)

    def _at(self, x: FloatArray, y: FloatArray) -> FloatArray:
        last_x, last_y = (size - 2 for size in self.sums.shape)
        i, j = np.minimum(x.astype(np.int64), last_x), np.minimum(y.astype(np.int64), last_y)
        u, v, table = x - i, y - j, self.sums
        return np.asarray(
            (1 - u) * (1 - v) * table[i, j]
            + u * (1 - v) * table[i + 1, j]
            + (1 - u) * v * table[i, j + 1]
            + u * v * table[i + 1, j + 1]
        )


@dataclass(frozen=True)
class Traditional:
    """A way to publish a grid of counts, of `squares` per side."""

    name: ClassVar[str]
    squares: int = 64

    @classmethod
    def read(cls, settings: dict[str, str]) -> Self:
        """The method with settings from the command line."""
        known = {one.name: one for one in fields(cls)}
        given: dict[str, Any] = {}
        for name, text in settings.items():
            if name not in known:
                raise InputError(f"{cls.name} has no parameter {name!r}: it has {', '.join(known)}")
            try:
                number = numerals.decimal(text)
            except ValueError:
                number = -1.0
            whole = known[name].type == "int"
            if number <= 0 or (whole and not number.is_integer()):
                kind = "a whole number" if whole else "a number"
                raise InputError(f"{name} of {cls.name} is {kind} above 0, got {text!r}")
            given[name] = int(number) if whole else number
        return cls(**given)

    def parameters(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def publish(self, matrix: FrequencyMatrix, generator: np.random.Generator) -> Table:
        """The grid of counts as this method would publish it."""
        if matrix.domain.dimensions != 2:
            raise InputError(f"{self.name} is for maps with two axes")
        shape = matrix.domain.shape
        edges = even_edges(shape, (min(self.squares, shape[0]), min(self.squares, shape[1])))
        places = [
            np.searchsorted(edge, cells, side="right") - 1
            for edge, cells in zip(edges, matrix.exact_coordinates, strict=True)
        ]
        counts = np.zeros([len(edge) - 1 for edge in edges], dtype=np.int64)
        np.add.at(counts, tuple(places), matrix.exact_counts)
        changed = self.change(counts.ravel(), generator).astype(np.float64)
        return Table.of((edges[0], edges[1]), changed.reshape(counts.shape))

    def change(self, counts: IntArray, generator: np.random.Generator) -> IntArray:
        """The counts as published."""
        raise NotImplementedError


@dataclass(frozen=True)
class Rounding(Traditional):
    """Each count is rounded to the nearest multiple of `base`, halves up."""

    name: ClassVar[str] = "rounding"
    base: int = 5

    def change(self, counts: IntArray, generator: np.random.Generator) -> IntArray:  # noqa: ARG002
        return (2 * counts + self.base) // (2 * self.base) * self.base


@dataclass(frozen=True)
class CellKey(Traditional):
    """Noise of at most `most`, with a variance, that the keys of the records decide."""

    name: ClassVar[str] = "cell-key"
    most: int = 5
    variance: float = 3.0

    def change(self, counts: IntArray, generator: np.random.Generator) -> IntArray:
        # The sum of uniform keys, without its whole part, is uniform again, and independent for counts without common
        # records. So one draw for each count has the same law as one for each record.
        keys = generator.random(len(counts))
        noise = np.zeros(len(counts), dtype=np.int64)
        for count in range(1, self.most + 1):
            chosen = counts == count if count < self.most else counts >= count
            steps = np.arange(-min(count, self.most), self.most + 1)
            ends = np.cumsum(p_table(count, self.most, self.variance))
            noise[chosen] = steps[np.minimum(np.searchsorted(ends, keys[chosen]), len(steps) - 1)]
        return counts + noise


@lru_cache(maxsize=1024)
def p_table(count: int, most: int, variance: float) -> FloatArray:
    """The chances of noise from -min(count, most) to most, with mean 0 and the given variance, that have the largest entropy.

    They are exp(a v + b v^2) up to a factor. A small count cannot have every variance: then
    the largest it can have is taken, on the two ends alone.
    """
    steps = np.arange(-min(count, most), most + 1, dtype=np.float64)
    largest = -steps[0] * steps[-1]
    if variance >= largest:
        ends = np.zeros(len(steps))
        ends[0], ends[-1] = steps[-1] / (steps[-1] - steps[0]), -steps[0] / (steps[-1] - steps[0])
        return ends
    features = np.stack([steps, steps**2 - variance]) / most

    def surprise(weights: FloatArray) -> tuple[float, FloatArray]:
        """What is least where both features have the mean 0, which is its slope."""
        logs = weights @ features
        return math.log(np.exp(logs - logs.max()).sum()) + logs.max(), features @ _chances(logs)

    return _chances(minimise(surprise, np.full(2, 0.01), MOST_STEPS) @ features)


def _chances(logs: FloatArray) -> FloatArray:
    unscaled = np.exp(logs - logs.max())
    return np.asarray(unscaled / unscaled.sum())


TRADITIONAL: dict[str, type[Traditional]] = {one.name: one for one in (Rounding, CellKey)}
