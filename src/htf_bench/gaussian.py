"""The paper's synthetic data: one Gaussian cluster on a grid.

[HTF, section 5.1]: "a cluster center is selected uniformly at random. Next, coordinates for each
data point x and y are drawn from a Gaussian distribution", with standard deviations 20, 50 and 100.
The paper leaves open what is fixed here:

* the unit of the standard deviation: cells of the 1024 x 1024 grid;
* the number of points: one million;
* how six sets come from three deviations: two draws of the centre for each;
* points that fall outside the map: drawn again, so that every set has the same size.
"""

from __future__ import annotations

import numpy as np

from htf.curator.frequency import FrequencyMatrix
from htf.errors import InputError
from htf.frame.domain import Axis, Domain, FloatArray

CELLS = 1024
POINTS = 1_000_000
SIGMAS = (20, 50, 100)
DRAWS = (1, 2)
SEED = 2021


def gaussian_domain(cells: int = CELLS) -> Domain:
    """A map whose coordinates are cells; it lies nowhere on Earth."""
    return Domain((Axis("x", 0.0, float(cells), cells), Axis("y", 0.0, float(cells), cells)))


def gaussian_matrix(
    sigma: float, draw: int, points: int = POINTS, cells: int = CELLS
) -> FrequencyMatrix:
    """`points` points around a centre; the same for the same arguments."""
    if not sigma > 0 or points < 0:
        raise InputError(f"a Gaussian set needs sigma > 0 and points >= 0, got {sigma}, {points}")
    generator = np.random.default_rng([SEED, round(1000 * sigma), draw])
    centre = generator.uniform(0, cells, 2)
    positions = np.empty((0, 2))
    while len(positions) < points:
        more = _draw_inside(generator, centre, sigma, cells, points - len(positions))
        positions = np.concatenate([positions, more])
    cell = np.floor(positions).astype(np.int64)
    return FrequencyMatrix.from_cells(gaussian_domain(cells), cell.T)


def _draw_inside(
    generator: np.random.Generator, centre: FloatArray, sigma: float, cells: int, number: int
) -> FloatArray:
    drawn = generator.normal(centre, sigma, (number, 2))
    return np.asarray(drawn[np.all((drawn >= 0) & (drawn < cells), axis=1)])
