"""Trips between zones as lines: wide where they start and narrow where they end, darker where there are more.

Only trips whose interval lies above zero are drawn, and of those the most frequent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from htf.frame.domain import FloatArray, IntArray
from htf.maps.plot import colours_of_density, shown_ratio
from htf.maps.views import View
from htf.maps.zones import FlowView, Shapes, outlines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_FLOWS = 150
WIDEST, THINNEST = 0.022, 0.0022  # of a line, as shares of the longer side of the map
PALEST_LINE = 0.22  # of the scale of colours: paler lines would not be seen
NARROWING = 0.22  # the end of a line, compared with its start
BEND = 0.16  # how far a line bends aside, compared with its length: there and back lie apart
POINTS = 24  # along a line


class FlowLayer:
    """The most frequent trips between zones, as lines."""

    def __init__(self, view: FlowView, quantity: str) -> None:
        self.view, self.quantity, self.summed = view, quantity, view.summed
        self.shapes: Shapes = outlines(view.domain, view.origins)
        self.unit = f"pair of {view.level}s" if " to " not in view.level else "pair"
        is_line = np.isfinite(np.column_stack(view.places)).all(axis=1) & ~view.is_within
        self.clear: IntArray = np.flatnonzero(view.is_clear & is_line)
        order = np.argsort(-view.answers.count[self.clear], kind="stable")
        self.shown: IntArray = self.clear[order[:MOST_FLOWS]]
        self.is_line = is_line

    @property
    def has_values(self) -> bool:
        return len(self.shown) > 0

    @property
    def counts(self) -> FloatArray:
        return np.asarray(self.view.answers.count[self.shown])

    @property
    def values(self) -> tuple[FloatArray, FloatArray]:
        """What colours are for; all weigh the same."""
        return self.counts, np.ones(len(self.shown))

    @property
    def notes(self) -> list[str]:
        counts = self.view.answers.count
        rest, noise = len(self.clear) - len(self.shown), int(self.is_line.sum()) - len(self.clear)
        share = counts[self.shown].sum() / max(counts.sum(), 1e-9)
        within = counts[self.view.is_within].sum() / max(counts.sum(), 1e-9)
        told = f"{len(self.shown):,} lines, {share:.0%} of all {self.quantity}"
        less = [f"{rest:,} smaller ones"] if rest else []
        less += [f"{noise:,} that are no more than noise"] if noise else []
        less += [f"{within:.0%} that stay within one zone"] if within > 0.005 else []
        return [f"{told}. Not drawn: {', '.join(less)}" if less else told, *self.shared_notes]

    @property
    def shared_notes(self) -> list[str]:
        return ["Trips go from the wide end of a line to its narrow end"]

    def draw(
        self, ax: Axes, limits: tuple[float, float], seen: View, *, of_panels: bool = False
    ) -> Any:
        from matplotlib.collections import PolyCollection
        from matplotlib.colors import LogNorm

        order = np.argsort(self.counts, kind="stable")  # the most frequent lie on top
        start, end = (places[self.shown[order]] for places in self.view.places)
        widest = limits[1] if limits[1] > 0 else 1.0
        share = np.clip(self.counts[order] / widest, 0, 1)
        ribbons = _ribbons(start, end, share, seen, 1.6 if of_panels else 1.0)
        lines = PolyCollection(
            ribbons, cmap=colours_of_density(PALEST_LINE), norm=LogNorm(*limits), alpha=0.9,
            edgecolors="none", linewidths=0,
        )  # fmt: skip
        lines.set_array(np.clip(self.counts[order], *limits))
        ax.add_collection(lines, autolim=False)
        return lines


def _ribbons(
    start: FloatArray, end: FloatArray, share: FloatArray, seen: View, wider: float
) -> list[FloatArray]:
    """Outlines of bent lines. They are made in a plane in which both axes have the same scale."""
    x, y = seen.domain.axes
    sides = np.array([1.0, shown_ratio(seen)]) / [x.high - x.low, y.high - y.low]
    longest = max(1.0, shown_ratio(seen))
    a, b = start * sides, end * sides
    along = b - a
    middle = (a + b) / 2 + BEND * np.column_stack([along[:, 1], -along[:, 0]])
    t = np.linspace(0, 1, POINTS)[None, :, None]
    a, b, middle = a[:, None], b[:, None], middle[:, None]
    line = (1 - t) ** 2 * a + 2 * t * (1 - t) * middle + t**2 * b
    slope = 2 * (1 - t) * (middle - a) + 2 * t * (b - middle)
    aside = np.stack([-slope[..., 1], slope[..., 0]], axis=2)
    aside /= np.maximum(np.linalg.norm(aside, axis=2, keepdims=True), 1e-12)
    width = np.maximum(WIDEST * share, THINNEST)[:, None, None] * longest * wider
    half = width * (1 - (1 - NARROWING) * t) / 2
    both = np.concatenate([line + half * aside, (line - half * aside)[:, ::-1]], axis=1)
    return list(both / sides)
