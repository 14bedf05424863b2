"""What published counts are worth of what was counted: shares of people, or kept records out of all. Public.

A matrix of people holds shares, and a release holds people. A matrix of records of people holds at most K of each
person; with the noisy activity of people (htf.privacy.activity) a release holds all records. Counts are multiplied,
and intervals are widened by what that adds to their error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htf.estimation.noise_law import noise_variances, scales_of_variances
from htf.frame.domain import FloatArray, IntArray
from htf.privacy.activity import Activity
from htf.privacy.protection import Protection


@dataclass(frozen=True, slots=True)
class Worth:
    """How published counts follow from what was counted."""

    each: float = 1.0  # published, for one that was counted
    relative_error: float = 0.0  # of the total that counts were scaled to
    clump: float = (
        0.0  # records by which one record of the dropped ones comes with others of the same person
    )

    @classmethod
    def of(cls, protection: Protection, activity: Activity | None, factor: float) -> Worth:
        if activity is None:
            return cls(1 / protection.shares)
        return cls(factor / protection.shares)

    def of_estimates(
        self, estimates: FloatArray | IntArray, scales: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Published estimates and scales. The noise of a part of a person is no whole number, so only its
        variance is kept."""
        found, noise = np.asarray(estimates, np.float64), np.asarray(scales, np.float64)
        if self.each == 1:
            return found, noise
        return found * self.each, scales_of_variances(noise_variances(noise) * self.each**2)

    def as_counted(
        self, estimates: FloatArray, scales: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The way back."""
        return Worth(1 / self.each).of_estimates(estimates, scales)

    def of_answers(
        self, count: FloatArray, std_error: FloatArray, low: FloatArray, high: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Published counts with their errors and intervals."""
        each = self.each
        return count * each, std_error * each, low * each, high * each


AS_COUNTED = Worth()


def scale_to_all(
    estimates: FloatArray | IntArray, protection: Protection, activity: Activity | None
) -> float:
    """The factor from kept records to all records."""
    return 1.0
