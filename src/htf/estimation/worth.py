"""What published counts are worth of what was counted: shares of people, or kept records out of all. Public.

A matrix of people holds shares, and a release holds people. A matrix of records of people holds at most K of each
person. With the noisy activity of people (htf.estimation.activity) counts are multiplied so that they are of all
records, and intervals are widened by what that adds to their error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from htf.estimation.noise_law import NORMAL_DEVIATIONS, noise_variances, scales_of_variances
from htf.frame.domain import FloatArray, IntArray
from htf.privacy.activity import Activity
from htf.privacy.protection import Protection

if TYPE_CHECKING:
    from htf.estimation.activity import Profiles
    from htf.release.release import Release

# How much a place differs from the whole map, relatively, for each displaced record: measured (docs/measurements.md).
LOCAL = 0.2
FEW = 4000  # people: with fewer, places differ more, because less of what people do averages out
LARGEST = 2.0**61  # published count or noise; a release allows twice that


@dataclass(frozen=True, slots=True)
class Worth:
    """How published counts follow from what was counted."""

    each: float = 1.0  # published, for one that was counted
    of_total: float = 0.0  # relative error of the total that counts were scaled to, if it is below
    of_place: float = 0.0  # relative error of a small place, compared with the whole map
    total: float = np.inf  # published, of the whole map
    clump: float = 0.0  # variance per record, because records of one person come together
    above: float = 0.0  # relative error of the total for a truth above it

    @classmethod
    def of(
        cls, protection: Protection, activity: Activity | None, factor: float, total: float
    ) -> Worth:
        if activity is None:
            return cls(1 / protection.shares)
        from htf.estimation.activity import read_profiles  # slow to load

        profiles, most = read_profiles(activity), protection.max_records
        kept = _plausible(total / factor, profiles, most)
        limit = profiles.limit_of(protection, kept)
        beyond, below, above = profiles.records_beyond(most, kept)
        below, above = below / (kept + beyond), above / (kept + beyond)
        few = max(FEW / max(float(profiles.mean.sum()), 1.0), 1.0)
        of_place = min(LOCAL * few, 1.0) * float(profiles.displaced(limit)[0])
        return cls(factor, below, of_place, total, profiles.clump(limit), above)

    def of_estimates(
        self, estimates: FloatArray | IntArray, scales: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Published estimates and scales. Their noise is no whole number, so only its variance is kept."""
        found, noise = np.asarray(estimates, np.float64), np.asarray(scales, np.float64)
        if self.each == 1:
            return found, noise
        return found * self.each, scales_of_variances(noise_variances(noise) * self.each**2)

    def as_counted(
        self, estimates: FloatArray, scales: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The way back from published estimates and scales."""
        return Worth(1 / self.each).of_estimates(estimates, scales)

    def of_answers(
        self, count: FloatArray, std_error: FloatArray, low: FloatArray, high: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Published counts with their standard errors and intervals.

        Scaling adds an error that grows with the count. On the upper side it is one of the upper end, and of a
        total that may be further above its estimate than below: nobody knows of a few people with very many records.
        """
        count, std_error, low, high = (self.each * one for one in (count, std_error, low, high))
        if self.of_total == self.above == self.of_place == self.clump == 0:
            return count, std_error, low, high
        middle = np.maximum(count, 0.0)
        top = np.maximum(middle, high)
        off = self._off(middle, middle, self.of_total)
        off_top = self._off(middle, top, self.above)
        own_up, own_down = np.maximum(high - middle, 0.0), np.maximum(middle - low, 0.0)
        up = np.hypot(own_up / NORMAL_DEVIATIONS, off_top)
        down = np.hypot(own_down / NORMAL_DEVIATIONS, off)
        error = np.hypot(std_error, np.maximum(off, self._off(middle, middle, self.above)))
        high = middle + NORMAL_DEVIATIONS * up
        return count, error, middle - NORMAL_DEVIATIONS * down, high

    def _off(self, count: FloatArray, records: FloatArray, of_total: float) -> FloatArray:
        """The standard error that scaling adds to a place with so many records.

        What a place has too much, the rest of the map has too little, so in a place that counts a share s of the
        map, what differs from place to place has a factor of sqrt(1 - s).
        """
        rest = 1 - np.clip(count / max(self.total, 1e-9), 0.0, 1.0)
        local = np.square(self.of_place * records) + self.clump * records
        return np.sqrt(np.square(of_total * records) + rest * local)


AS_COUNTED = Worth()


def worth_of(release: Release) -> Worth:
    """How the published counts of a release follow from what was counted."""
    total = float(release.estimates.sum())
    return Worth.of(release.protection, release.activity, release.factor, total)


def scale_to_all(
    estimates: FloatArray | IntArray,
    scales: FloatArray,
    protection: Protection,
    activity: Activity | None,
) -> float:
    """The factor from the kept records, whose estimates these are, to all records.

    Nothing overflows: a release that was paid for must not fail for its numbers.
    """
    if activity is None:
        return 1.0
    from htf.estimation.activity import read_profiles  # slow to load

    profiles, most = read_profiles(activity), protection.max_records
    kept = _plausible(float(np.sum(estimates)), profiles, most)
    beyond, *_ = profiles.records_beyond(most, kept)
    largest = max(np.max(np.abs(estimates), initial=1.0), np.max(scales, initial=1.0))
    return min(1.0 + beyond / kept, max(LARGEST / float(largest), 1.0))


def _plausible(kept: float, profiles: Profiles, most: int) -> float:
    """How many records were kept. Where noise hides that, their sum may be near 0, or below: so at least half of
    what the activity says was kept counts."""
    return max(kept, profiles.records_up_to(most) / 2, 1.0)
