"""From noisy numbers of people in boxes to best guesses with intervals, and how many boxes of a person to count. Public.

A person counts in at most M boxes. So a box misses those who were in more than M and were counted elsewhere. How many
people were in how many boxes, which is known with noise, bounds this loss in two ways. Someone who was in b > M boxes is
missing from one of them with probability 1 - M / b, so no box misses more people than the sum of that over all people. And
of all pairs of a person and a box, a known share is missing; a single box was never found to miss more than some
multiple of that share. The interval reaches from a box that misses nobody to one that misses as many as the smaller bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from htf.estimation.noise_law import NORMAL_DEVIATIONS, noise_variance
from htf.frame.domain import FloatArray
from htf.privacy.distinct import CLASS_ENDS, DistinctCounts, most_boxes, number_of_classes
from htf.privacy.epsilon import Epsilon

# Chosen by measurement: docs/measurements.md.
# What a box misses, root mean square over boxes, of the most that one can miss.
OF_LARGEST_LOSS = 0.3
UNEVEN_LOSS = 2.5  # by how much the share that one box misses may exceed that of all
DEVIATIONS_OF_LOSS = 1.64  # of the noise in both bounds: one in twenty is exceeded
DEVIATIONS_OF_PEOPLE = 3.0  # of the noise in the number of all people, which no box exceeds
LAST_CLASS = 96  # people in more than 48 boxes of many are thought to be in up to so many


@cache
def _classes(boxes: int) -> tuple[range, ...]:
    """The numbers of boxes that people of each class were in, all equally likely."""
    starts = (0, *CLASS_ENDS[:-1])[: number_of_classes(boxes)]
    ends = (*CLASS_ENDS[:-1], LAST_CLASS)[: len(starts)]
    return tuple(
        range(start + 1, min(end, boxes) + 1) for start, end in zip(starts, ends, strict=True)
    )


def _mean_over_classes(boxes: int, max_boxes: int) -> tuple[list[float], list[float], list[float]]:
    """For people of each class: the chance to be missing from a box where they were, and how many of their boxes are
    missing and how many are counted."""
    absent, missing, counted = [], [], []
    for numbers in _classes(boxes):
        size = len(numbers)
        absent.append(sum(max(1 - max_boxes / n, 0.0) for n in numbers) / size)
        missing.append(sum(max(n - max_boxes, 0) for n in numbers) / size)
        counted.append(sum(min(n, max_boxes) for n in numbers) / size)
    return absent, missing, counted


def best_max_boxes(people: Sequence[int], boxes: int, epsilon: Epsilon) -> int:
    """In how many boxes to count each person: the number with the least expected error of a box.

    `epsilon` is for the counts. Only sums, products and quotients are used, so that every processor finds the same
    number.
    """
    best, least = 1, float("inf")
    for number in range(1, most_boxes(boxes) + 1):
        absent, _, _ = _mean_over_classes(boxes, number)
        loss = sum(chance * max(size, 0) for chance, size in zip(absent, people, strict=True))
        scale = number / float(epsilon)
        error = 2 * scale * scale + OF_LARGEST_LOSS * loss * OF_LARGEST_LOSS * loss
        if error < least:
            best, least = number, error
    return best


@dataclass(frozen=True, slots=True, eq=False)
class DistinctPeople:
    """How many different people were in each box, with errors."""

    different_people: FloatArray
    std_error: FloatArray
    low: FloatArray
    high: FloatArray
    quantity: str  # `different people` or, for example, `different person-days`


def estimate_distinct(distinct: DistinctCounts) -> DistinctPeople:
    """Best guesses and intervals for each box."""
    from htf.estimation.noise_kernels import single_half_width

    noisy = np.array(distinct.counts, dtype=np.float64)
    variance = noise_variance(distinct.max_boxes / float(distinct.counts_epsilon))
    half = single_half_width(variance, 1.0)
    loss = Loss.of(distinct)
    found, missed = np.maximum(noisy, 0.0), loss.expected(noisy - half)
    beyond = np.maximum(loss.largest(noisy + half / 2) - missed, 0.0)
    people = np.minimum(found + missed, loss.everybody)
    high = np.minimum(np.maximum(noisy + missed + np.hypot(half, beyond), 0.0), loss.everybody)
    low = np.minimum(np.maximum(noisy - half, 0.0), high)
    error = np.sqrt(variance + (np.maximum(beyond, missed) / NORMAL_DEVIATIONS) ** 2)
    return DistinctPeople(people, error, low, high, distinct.quantity)


@dataclass(frozen=True, slots=True)
class Loss:
    """How many people boxes miss because people count in at most so many of them."""

    share: float = 0.0  # of pairs of a person and a box that is missing, as expected
    largest_share: float = 0.0  # that one box may miss
    people: float = 0.0  # the most that a box misses, as expected
    largest_people: float = 0.0  # with the noise of that number
    everybody: float = float("inf")  # all people there are, and some more for noise

    @classmethod
    def of(cls, distinct: DistinctCounts) -> Loss:
        if not distinct.people:
            return cls()
        sizes = np.array(distinct.people, dtype=np.float64)
        deviation = noise_variance(1 / float(distinct.people_epsilon)) ** 0.5
        absent, missing, counted = map(
            np.array, _mean_over_classes(distinct.boxes, distinct.max_boxes)
        )
        margin = DEVIATIONS_OF_LOSS * deviation
        people, pairs = max(float(absent @ sizes), 0.0), max(float(missing @ sizes), 0.0)
        kept = max(float(counted @ np.maximum(sizes, 0.0)), 1.0)
        most = pairs + margin * float(np.linalg.norm(missing))
        # Nobody is thought to be in more boxes than LAST_CLASS, nor is anybody in more than there are.
        largest = 1 - distinct.max_boxes / max(min(distinct.boxes, LAST_CLASS), distinct.max_boxes)
        everybody = float(sizes.sum()) + DEVIATIONS_OF_PEOPLE * deviation * len(sizes) ** 0.5
        return cls(
            min(pairs / (kept + pairs), largest),
            min(UNEVEN_LOSS * most / (kept + most), largest),
            people,
            people + margin * float(np.linalg.norm(absent)),
            max(everybody, 1.0),
        )

    def expected(self, counted: FloatArray) -> FloatArray:
        """How many people boxes with so many counted ones probably miss."""
        return _at_most(counted, self.share, self.people)

    def largest(self, counted: FloatArray) -> FloatArray:
        """How many people such boxes miss at most."""
        return _at_most(counted, self.largest_share, self.largest_people)


def _at_most(counted: FloatArray, share: float, people: float) -> FloatArray:
    return np.asarray(np.minimum(share / (1 - share) * np.maximum(counted, 0.0), people))
