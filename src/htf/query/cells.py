"""What a release counts in each cell of a grid: for priors, which are made of earlier releases."""

from __future__ import annotations

import numpy as np

from htf.estimation.prior import prior_cells
from htf.frame.domain import FloatArray
from htf.query.kernels import ESTIMATE
from htf.release.release import Release


def cell_counts(release: Release) -> FloatArray:
    """The counts in the cells that a prior of this map has. Negative counts become 0."""
    own = prior_cells(release.domain)
    cells = np.indices(own.shape).reshape(own.dimensions, -1).T
    steps = np.array(release.domain.shape) / np.array(own.shape)
    counts = release.derived.index.measure(cells * steps, (cells + 1) * steps)[:, ESTIMATE]
    return np.maximum(counts, 0.0).reshape(own.shape)
