"""Measures how many records have a weight above the largest one, with noise. Sensitive.

Every record is in one of two classes: its weight is up to the limit, or above it. So a record moves one of two numbers
by one, and a person of whom K records are kept moves them by K together. Of split people shares are counted, and one
person moves them by all their shares together. Proof: docs/proofs/weights.md.
"""

from __future__ import annotations

import numpy as np

from htf.base import arguments
from htf.curator.frequency import FrequencyMatrix
from htf.curator.noise import NoiseSource
from htf.curator.payment import Payment
from htf.errors import InputError
from htf.frame.domain import IntArray
from htf.privacy.budget import BudgetFile
from htf.privacy.clipping import Clipped, check_price
from htf.privacy.epsilon import Epsilon, EpsilonLike


def measure_clipped(
    matrix: FrequencyMatrix,
    epsilon: EpsilonLike,
    *,
    noise: NoiseSource | str = "opendp",
    budget: BudgetFile | None = None,
    label: str = "",
) -> Clipped:
    """Spend `epsilon`, for one unit, on how many records were cut at the largest weight.

    Hand the result to `publish`, whose epsilon is then the total of both. How much was cut off is not measured: one
    record could change that by any amount.

    Parameters
    ----------
    matrix : FrequencyMatrix
        Sums of weights, from `read_points` with `weight`.
    epsilon : Epsilon, str, int, float, Decimal or Fraction
        The privacy budget of this measurement.
    noise : NoiseSource or str
        As in `publish`.
    budget : BudgetFile, optional
        The budget to charge before anything is drawn. The charge stands whatever follows.
    label : str
        What to call the charge.

    Returns
    -------
    Clipped
        The noisy numbers of records, and what they have cost.

    Raises
    ------
    InputError
        If an argument is wrong, or the matrix does not know which records were cut.
    BudgetError
        If the budget does not suffice.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> taxis = {"lon": [0.5] * 500, "lat": [0.5] * 500, "passengers": [2] * 480 + [9] * 20}
    >>> matrix = htf.read_points(taxis, domain, weight="passengers", max_weight=6)
    >>> htf.measure_clipped(matrix, 1, noise="seeded:1").above
    22
    """
    first = "count the points first, with htf.read_points(points, domain, weight=column, max_weight=most)"
    arguments.instance(matrix, FrequencyMatrix, "matrix", first)
    exact = records_by_weight(matrix)
    protection = matrix.protection
    price, told_apart = Epsilon.of(epsilon), matrix.told_apart
    check_price(price, protection)
    payment = Payment.of(price, noise, budget, label, protection.name, told_apart)
    with payment.charged(Clipped.kind) as entry:
        within, above = payment.add_noise(exact, price, protection.most_records)
        return Clipped(within, above, protection, price, *payment.drawn, entry, told_apart)


def records_by_weight(matrix: FrequencyMatrix) -> IntArray:
    """The exact number of records up to the largest weight, and above it. Sensitive. A record is in one of them, and a
    unit has at most `most_records` records, or shares."""
    if matrix.exact_weighed is None:
        raise InputError(
            "this matrix does not know which records were cut at the largest weight: read it with htf.read_points and "
            "weight, or leave out this measurement"
        )
    return np.array(matrix.exact_weighed.exact, dtype=np.int64)
