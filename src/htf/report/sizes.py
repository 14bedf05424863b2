"""Where a map is fine and where it is coarse: the sizes of its leaves, by area and by what they hold. Public."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htf.forecasts.release_errors import nearest_round
from htf.frame.areas import cell_metres, length_text
from htf.frame.domain import FloatArray
from htf.maps.views import rasterise
from htf.release.release import Release

MOST_CLASSES = 6
PIXELS = 240  # a side of the small picture


@dataclass(frozen=True, eq=False)
class LeafSizes:
    """The sizes of leaves on a map: the side of a square of the same area."""

    sides: FloatArray  # in kilometres, or in cells
    area: FloatArray  # shares of the map
    held: FloatArray  # shares of what the release counts
    in_km: bool

    @classmethod
    def of(cls, release: Release) -> LeafSizes | None:
        """None for a release that is no map: its cells have names, and are what they are."""
        if not release.domain.has_map:
            return None
        cell = cell_metres(release.domain)
        across = (release.high - release.low)[:, :2].astype(np.float64)
        sides = np.sqrt(np.prod(across if cell is None else across * cell / 1000, axis=1))
        volume = np.prod((release.high - release.low).astype(np.float64), axis=1)
        held = np.maximum(release.estimates, 0.0)
        whole = held.sum() or 1.0
        return cls(sides, volume / volume.sum(), held / whole, cell is not None)

    def told(self, side: float) -> str:
        """A side in words."""
        if self.in_km:
            return length_text(1000 * float(f"{side:.2g}"))
        return f"{side:.2g} cells" if side >= 1.5 else "1 cell"

    @property
    def fine(self) -> str:
        """Half of what is counted lies in leaves of at most this side."""
        return self.told(_weighted_median(self.sides, self.held))

    @property
    def coarse(self) -> str:
        """Half of the area lies in leaves of at least this side."""
        return self.told(_weighted_median(self.sides, self.area))

    @property
    def classes(self) -> list[tuple[float, int, float, float]]:
        """Sides from fine to coarse, at most six, with the number of leaves and the shares of the map and of what is counted;
        those at the ends take in what is beyond."""
        rounded = np.array([nearest_round(side) for side in np.unique(self.sides)])
        of_leaf = rounded[np.unique(self.sides, return_inverse=True)[1]]
        steps = np.unique(rounded)
        if len(steps) > MOST_CLASSES:
            steps = steps[np.linspace(0, len(steps) - 1, MOST_CLASSES).round().astype(int)]
        nearest = np.abs(np.log(of_leaf[:, None] / steps)).argmin(axis=1)
        leaves, area, held = (
            np.bincount(nearest, weights, len(steps)).tolist()
            for weights in (None, self.area, self.held)
        )
        return list(zip(steps.tolist(), leaves, area, held, strict=True))


def size_raster(release: Release, sizes: LeafSizes) -> FloatArray:
    """The size of leaves on a small grid of the map, as rows from south to north: the mean of its logarithm."""
    low, high = release.low[:, :2], release.high[:, :2]
    cells = np.array(release.domain.shape[:2], dtype=np.int64)
    shape = (min(PIXELS, int(cells[0])), min(PIXELS, int(cells[1])))
    frame = np.array([[0, 0], cells], dtype=np.int64)
    sums = rasterise(low, high, sizes.area * np.log10(sizes.sides), frame, shape)
    return np.asarray(sums / rasterise(low, high, sizes.area, frame, shape)).T


def _weighted_median(values: FloatArray, weights: FloatArray) -> float:
    order = np.argsort(values)
    ends = np.cumsum(weights[order])
    return float(values[order][min(np.searchsorted(ends, ends[-1] / 2), len(order) - 1)])
