"""What looks have drawn and not told: accurate counts, for whoever pays the rest. Sensitive."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from htf.errors import InputError
from htf.frame.domain import IntArray


class HeldCounts:
    """An accurate count for each region that was looked at, with the price of the rest. Each is told once."""

    __slots__ = ("_accurate", "_regions", "_rest", "_told")

    def __init__(self) -> None:
        self._regions = self._rest = self._accurate = np.empty(0, dtype=np.int64)
        self._told: NDArray[np.bool_] = np.empty(0, dtype=np.bool_)

    def __repr__(self) -> str:
        return "HeldCounts(accurate counts not shown)"

    def check_new(self, regions: IntArray, label: str) -> None:
        """Refuse a second look at a region."""
        if len(np.unique(regions)) < len(regions) or np.isin(regions, self._regions).any():
            raise InputError(f"{label}: a region can be looked at once")

    def hold(self, regions: IntArray, rest: IntArray, accurate: IntArray) -> None:
        """Keep accurate counts, in the order of regions."""
        order = np.argsort(np.concatenate([self._regions, regions]))
        for name, more in (
            ("_regions", regions),
            ("_rest", rest),
            ("_accurate", accurate),
            ("_told", np.zeros(len(regions), dtype=np.bool_)),
        ):
            setattr(self, name, np.concatenate([getattr(self, name), more])[order])

    def check_rest(self, regions: IntArray, rest: IntArray, label: str) -> None:
        """Refuse regions that were not looked at, were refined before, or have another price."""
        places = self._places(regions)
        if not np.array_equal(self._regions[places], regions):
            raise InputError(f"{label}: only regions that were looked at can be refined")
        if len(np.unique(regions)) < len(regions) or self._told[places].any():
            raise InputError(f"{label}: a look can be refined once")
        if not np.array_equal(self._rest[places], rest):
            raise InputError(f"{label}: the rest costs what a look left of the full price")

    def tell(self, regions: IntArray) -> IntArray:
        """The accurate counts, once."""
        places = self._places(regions)
        self._told[places] = True
        return self._accurate[places]

    def _places(self, regions: IntArray) -> IntArray:
        places = np.searchsorted(self._regions, regions)
        return np.asarray(places[places < len(self._regions)], dtype=np.int64)
