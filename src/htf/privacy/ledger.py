"""The privacy accounting.

A record lies in exactly one cell. Its privacy loss is the sum of the epsilons of the measurements
whose region contains that cell; the loss of the release is the largest over all cells. Regions
form a tree, so the regions that contain a cell are a path from the root, and the loss is the
largest sum along a path. Proof, for choices that depend on earlier noise: docs/proofs/accounting.md.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from htf.errors import BudgetError
from htf.frame.domain import IntArray
from htf.frame.tree import RegionTree
from htf.privacy.epsilon import Epsilon, epsilon_from_text

if TYPE_CHECKING:
    from htf.curator.measurements import Measurement

PRICES = ("smallest_epsilon", "largest_epsilon", "spent_after")  # of a line
ROUGHLY = 1.0001  # what float sums may be off by, and far more


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One charge inside a release: what was asked, how often, at what price, and the loss so far.

    Attributes
    ----------
    label : str
        What the measurement was for.
    kind : str
        The kind of measurement, such as `count`.
    sensitivity : int
        By how much one record can move an answer.
    answers : int
        How many answers were given.
    smallest_epsilon, largest_epsilon : Epsilon
        The range of their prices.
    spent_after : Epsilon
        The privacy loss of a record after this charge.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> matrix = htf.FrequencyMatrix.from_dense(domain, [[500, 20], [0, 30]])
    >>> line = htf.publish(matrix, 1, noise="seeded:1").ledger[0]
    >>> line.kind, str(line.spent_after)
    ('count', '0.01')
    """

    label: str
    kind: str
    sensitivity: int
    answers: int
    smallest_epsilon: Epsilon
    largest_epsilon: Epsilon
    spent_after: Epsilon

    def to_dict(self) -> dict[str, Any]:
        """Describe the line with plain values, for JSON.

        Returns
        -------
        dict
            What `from_dict` takes.

        Examples
        --------
        >>> line.to_dict()["answers"]
        1
        """
        return asdict(self) | {name: str(getattr(self, name)) for name in PRICES}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LedgerLine:
        """Make a line from what `to_dict` gave.

        Parameters
        ----------
        data : dict
            All fields by name.

        Returns
        -------
        LedgerLine
            The line.

        Examples
        --------
        >>> from htf.privacy.ledger import LedgerLine
        >>> LedgerLine.from_dict(line.to_dict()) == line
        True
        """
        return cls(**{**data, **{name: epsilon_from_text(data[name]) for name in PRICES}})


class Ledger:
    """Charges measurements against a cap that was fixed before the first draw."""

    __slots__ = ("_lines", "_loss", "_tree", "cap")

    def __init__(self, tree: RegionTree, cap: Epsilon) -> None:
        self.cap = Epsilon.of(cap)  # which refuses what 64-bit sums could not hold
        self._tree = tree
        self._loss = np.zeros(1, dtype=np.int64)  # of a record in each region, from the root down
        self._lines: list[LedgerLine] = []

    @property
    def lines(self) -> tuple[LedgerLine, ...]:
        return tuple(self._lines)

    @property
    def spent(self) -> Epsilon:
        """The largest loss of any record so far. It depends on the noise; the cap is what is claimed."""
        return Epsilon(int(self._loss.max()))

    def charge(self, measurement: Measurement) -> None:
        """Enter the measurement, or raise BudgetError and leave everything as it was."""
        if not self._surely_fits_64_bits(measurement):
            # In floats nothing wraps around; what is within the cap there is far below 2**63.
            rough = self._loss_with(measurement, np.float64)
            self._refuse_beyond_cap(measurement, int(rough.max() / ROUGHLY))
        loss = self._loss_with(measurement, np.int64)
        spent = int(loss.max())
        self._refuse_beyond_cap(measurement, spent)
        self._loss = loss
        self._lines.append(
            LedgerLine(
                label=measurement.label,
                kind=measurement.kind,
                sensitivity=measurement.sensitivity,
                answers=measurement.rows,
                smallest_epsilon=Epsilon(int(measurement.epsilon.min())),
                largest_epsilon=Epsilon(int(measurement.epsilon.max())),
                spent_after=Epsilon(spent),
            )
        )

    def _refuse_beyond_cap(self, measurement: Measurement, spent: int) -> None:
        if spent > self.cap.units:
            raise BudgetError(
                f"{measurement.label}: this would bring the privacy loss to {Epsilon(spent)}, "
                f"more than the total of {self.cap}. Nothing was drawn."
            )

    def _surely_fits_64_bits(self, measurement: Measurement) -> bool:
        """Even if every row of the most repeated region stood on every region of a path."""
        repeats = int(np.bincount(measurement.regions).max())
        regions_on_a_path = int(self._tree.depth.max()) + 1
        largest = int(measurement.epsilon.max()) * repeats * regions_on_a_path
        return self.cap.units + largest < 2**63

    def _loss_with(self, measurement: Measurement, kind: type[np.generic]) -> NDArray[Any]:
        """The loss in each region, were this charged too, in numbers of this kind."""
        loss = extend_losses(self._tree, self._loss)
        added = np.zeros(len(loss), dtype=kind)
        np.add.at(added, measurement.regions, measurement.epsilon)
        # The charge reaches every region below.
        if np.any(self._tree.slabs[measurement.regions] > 0):
            added = sum_along_paths(self._tree, added)
        return loss + added


def extend_losses(tree: RegionTree, losses: IntArray) -> IntArray:
    """A new region starts with the loss of the region it was cut from."""
    added = np.zeros(len(tree), dtype=np.int64)
    known = len(losses)
    added[:known] = losses
    for layer in tree.layers(known):
        added[layer] = added[tree.parent[layer]]
    return added


def sum_along_paths(tree: RegionTree, values: NDArray[Any]) -> NDArray[Any]:
    """For each region, the sum of `values` from the root down to it."""
    sums = values.copy()
    for layer in tree.layers(1):
        sums[layer] += sums[tree.parent[layer]]
    return sums
