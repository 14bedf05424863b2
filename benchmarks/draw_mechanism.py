"""The picture of docs/mechanism.md: how a release of the made-up city comes about.

python benchmarks/draw_mechanism.py docs/mechanism.png
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.colors import LogNorm
from matplotlib.patches import Rectangle

from htf import Domain, Release, publish, read_points
from htf.estimation.least_squares import least_squares
from htf.frame.domain import FloatArray, IntArray
from htf.synthetic.city import synthetic_city

EPSILON, POINTS, CELLS = "0.3", 300_000, 512
BLANK = "#e9edf2"


def draw(
    ax: Any, low: IntArray, high: IntArray, counts: FloatArray, title: str, *, lines: bool
) -> None:
    """Boxes in the colour of their density; those with nothing in them are blank."""
    density = counts / np.prod(high - low, axis=1)
    boxes = [
        Rectangle((float(x), float(y)), float(w), float(h))
        for (x, y), (w, h) in zip(low, high - low, strict=True)
    ]
    shown = PatchCollection(boxes, cmap="magma_r", norm=LogNorm(0.02, 30))
    shown.set_array(np.where(density > 0.02, density, np.nan))
    shown.set_edgecolor("#5a6570" if lines else "face")
    shown.set_linewidth(0.25 if lines else 0.1)
    ax.set_facecolor(BLANK)
    ax.add_collection(shown)
    ax.set(xlim=(0, CELLS), ylim=(0, CELLS), aspect="equal", xticks=[], yticks=[])
    ax.set_title(title, fontsize=10)


def draw_round(ax: Any, release: Release, line: int, title: str) -> None:
    table = release.measurements
    rows = table.line == line
    regions = table.region[rows]
    low, high = release.tree.low[regions], release.tree.high[regions]
    draw(ax, low, high, table.value[rows].astype(float), title, lines=True)
    kept = np.isin(regions, release.leaves)
    for x, y, w, h in np.column_stack([low, high - low])[kept].tolist():
        ax.add_patch(Rectangle((x, y), w, h, fill=False, hatch="////", lw=0, ec="#8fa0b0"))


def main(path: str) -> None:
    city = synthetic_city(POINTS)
    domain = Domain.from_bounds(*city.domain_bounds, cells=CELLS)
    matrix = read_points((city.x, city.y), domain)
    release = publish(matrix, EPSILON, "htf", noise="seeded:7")
    raw = least_squares(release.tree, release.measurements.tree_counts())[0][release.leaves]
    figure, axes = plt.subplots(2, 3, figsize=(11, 7.6), layout="constrained")
    draw_round(axes[0, 0], release, 2, "round 2: counts (hatched: a leaf from now on)")
    draw_round(axes[0, 1], release, 3, "round 3: counts")
    low, high, parts = release.low, release.high, release.derived.parts
    draw(axes[0, 2], low, high, raw, "all leaves, by least squares", lines=True)
    draw(axes[1, 0], low, high, release.estimates, "all leaves, as estimated", lines=True)
    draw(axes[1, 1], parts.low, parts.high, parts.estimates, "interpolated inside", lines=False)
    cells = matrix.exact_coordinates.T.astype(np.int64)
    exact = matrix.exact_counts.astype(float)
    draw(axes[1, 2], cells, cells + 1, exact, "the made-up truth, cell by cell", lines=False)
    figure.suptitle(f"htf, {POINTS:,} made-up points, ε = {EPSILON}", fontsize=11)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1])
