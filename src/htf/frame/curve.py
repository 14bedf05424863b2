"""A space-filling curve: regions that lie together on the map stand together along it."""

from __future__ import annotations

import numpy as np

from htf.frame.domain import IntArray

CODE_BITS = 62  # of a place on the curve, within a signed 64-bit integer


def places_on_curve(low: IntArray, high: IntArray) -> IntArray:
    """The place of each leaf's centre on the Morton curve, with every axis stretched to the same
    length, because queries are as likely to cut an axis of few cells as one of many."""
    dimensions = low.shape[1]
    bits = min(max(1, CODE_BITS // dimensions), 31)
    centres = (low + high).astype(np.float64)
    centres -= centres.min(axis=0)
    steps = centres * ((2**bits - 1) / np.maximum(centres.max(axis=0), 1))
    return morton_index(steps.astype(np.int64).T, bits)


def morton_index(places: IntArray, bits: int) -> IntArray:
    """The bits of all axes, a row each, interleaved, the first axis first."""
    index: IntArray = np.zeros(places.shape[1], dtype=np.int64)
    for bit in reversed(range(bits)):
        for row in places:
            index = (index << 1) | ((row >> bit) & 1)
    return index
