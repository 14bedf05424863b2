"""Half widths against exact distributions, computed from characteristic functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, special

from htf.estimation.level import LEVEL, OUTSIDE
from htf.estimation.noise_kernels import continuous_half_width
from htf.estimation.noise_kernels import half_width as half_width_of_cumulants
from htf.estimation.noise_law import KURTOSES, QUANTILES, noise_fourth_cumulants, noise_variances
from htf.frame.domain import FloatArray

SCALES = [0.1, 0.2, 0.25, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0, 1e4, 1e6]
STEP = 0.05  # every weight below is a multiple of it


def sum_of_laplaces_outside(number: float, deviations: float) -> float:
    """P(|S| > deviations * sigma) for the sum of `number` equal Laplace variables.

    S is normal with variance 2 G for a gamma variable G of shape `number`.
    """
    bound = deviations * math.sqrt(2 * number)

    def integrand(gamma: float) -> float:
        density = math.exp((number - 1) * math.log(gamma) - gamma - special.gammaln(number))
        return float(density * special.erfc(bound / math.sqrt(2 * gamma) / math.sqrt(2)))

    top = number + 60 + 60 * math.sqrt(number)
    return float(integrate.quad(integrand, 0, top, points=[number], limit=500)[0])


@pytest.mark.parametrize(("kurtosis", "quantile"), [*zip(KURTOSES[1:], QUANTILES[1:], strict=True)])
def test_each_constant_leaves_five_percent_outside(kurtosis: float, quantile: float) -> None:
    number = 3 / kurtosis
    assert sum_of_laplaces_outside(number, quantile) == pytest.approx(OUTSIDE, abs=2e-7)
    # A constant wrong in the fourth digit would be seen.
    assert sum_of_laplaces_outside(number, quantile + 1e-4) != pytest.approx(OUTSIDE, abs=2e-7)


def test_the_ends_of_the_table_are_the_normal_and_the_laplace_quantile() -> None:
    assert QUANTILES[0] == pytest.approx(special.ndtri((1 + LEVEL) / 2), abs=1e-6)
    assert QUANTILES[-1] == pytest.approx(math.log(1 / OUTSIDE) / math.sqrt(2), abs=1e-6)
    assert np.all(np.diff(KURTOSES) > 0)


def test_interpolation_between_constants_is_fine() -> None:
    for kurtosis in (0.125, 0.375, 0.75, 1.25, 1.75, 2.5):
        deviations = continuous_half_width(1.0, kurtosis)
        assert deviations == pytest.approx(np.interp(kurtosis, KURTOSES, QUANTILES), rel=1e-12)
        assert sum_of_laplaces_outside(3 / kurtosis, deviations) == pytest.approx(OUTSIDE, abs=3e-4)
    for kurtosis, nearest in ((-1.0, QUANTILES[0]), (0.0, QUANTILES[0]), (7.0, QUANTILES[-1])):
        assert continuous_half_width(1.0, kurtosis) == nearest


@pytest.mark.parametrize("scale", [0.1, 0.5, 1.0, 4.0, 30.0])
def test_cumulants_are_those_of_the_distribution(scale: float) -> None:
    values = np.arange(-2000, 2001)
    weights = np.exp(-np.abs(values) / scale)
    weights /= weights.sum()
    second, fourth = weights @ values**2, weights @ values**4
    variance = noise_variances(np.array([scale]))
    assert variance[0] == pytest.approx(second, rel=1e-9)
    assert noise_fourth_cumulants(variance)[0] == pytest.approx(fourth - 3 * second**2, rel=1e-9)


def test_variance_of_no_noise_and_of_large_noise() -> None:
    scales = np.array([0.0, 1e-320, 1e-3, 1e8, 1e12])
    variances = noise_variances(scales)
    assert variances[:3].tolist() == [0, 0, 0]
    # 2 b^2 - 1/6 + ...: naive 1 - exp(-1/b) keeps only four digits at 1e12.
    assert variances[3:] == pytest.approx(2 * scales[3:] ** 2, rel=1e-12)


def half_width(weights: FloatArray, scales: FloatArray) -> float:
    variances = noise_variances(scales)
    half: float = half_width_of_cumulants(
        weights**2 @ variances,
        weights**4 @ noise_fourth_cumulants(variances),
        float(np.count_nonzero(scales)),
        weights.min(),
        weights.max(),
    )
    return half


def coverage(weights: FloatArray, scales: FloatArray, half: float, step: float) -> float:
    """P(|sum| <= half), exactly, for a sum that takes multiples of `step`.

    With phi the characteristic function, P(|S| <= k) is the integral of
    phi(t) sin((k + 1/2) t) / sin(t/2) over [0, pi], divided by pi; and that of discrete Laplace
    noise of variance v is 1 / (1 + 2 v sin(t/2)^2).
    """
    bound = math.floor(half / step + 1e-9) + 0.5
    t, rule = quadrature(float(np.sqrt(weights**2 @ noise_variances(scales))) / step)
    log_phi = np.zeros_like(t)
    groups, sizes = np.unique(
        np.column_stack([weights / step, noise_variances(scales)]), axis=0, return_counts=True
    )
    for (multiple, variance), size in zip(groups, sizes, strict=True):
        log_phi -= size * np.log1p(2 * variance * np.sin(multiple * t / 2) ** 2)
    return float(rule @ (np.exp(log_phi) * np.sin(bound * t) / np.sin(t / 2)) / np.pi)


def quadrature(sigma: float) -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre on pieces of [0, pi], finest near 0, where phi falls within 1 / sigma."""
    pieces = [np.linspace(0, np.pi, 50), np.linspace(0, min(np.pi, 60 / sigma), 150)]
    if 1e-3 / sigma < np.pi:
        pieces.append(np.geomspace(1e-3 / sigma, np.pi, 300))
    edges = np.unique(np.concatenate([*pieces, [np.pi]]).clip(0, np.pi))
    nodes, weights = np.polynomial.legendre.leggauss(32)
    middles, halves = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    t = middles[:, None] + halves[:, None] * nodes
    return t.ravel(), (halves[:, None] * weights).ravel()


@pytest.mark.parametrize("scale", [0.2, 1.0, 7.0])
def test_the_exact_coverage_is_that_of_a_convolution(scale: float) -> None:
    values = np.arange(-400, 401)
    one = np.exp(-np.abs(values) / scale)
    one /= one.sum()
    two = np.convolve(one, one)
    inside = np.abs(np.arange(-800, 801)) <= 5
    weights = np.ones(2)
    assert coverage(weights, scale * weights, 5.0, 1.0) == pytest.approx(two[inside].sum(), 1e-9)


def assert_covers(weights: list[float], scales: list[float], step: float, tight: bool) -> None:
    """At least 94.7 %; and where noise is not too coarse for it, at most 96.5 %."""
    w, b = np.array(weights, dtype=float), np.array(scales, dtype=float)
    half = half_width(w, b)
    covered = coverage(w, b, half, step)
    assert covered >= 0.947, (covered, half)
    if tight:
        assert covered <= 0.965, (covered, half)


@pytest.mark.parametrize("number", [1, 2, 3, 10, 1000])
@pytest.mark.parametrize("scale", SCALES)
def test_coverage_of_whole_leaves(number: int, scale: float) -> None:
    assert_covers([1.0] * number, [scale] * number, 1.0, tight=scale >= 2)


@pytest.mark.parametrize(
    "weights",
    [[1, 0.5], [0.5, 0.25], [1, 0.05], [0.95, 0.9], [1, 1, 0.5, 0.2], [0.5] * 20],
    ids=str,
)
@pytest.mark.parametrize("scale", SCALES)
def test_coverage_of_leaves_covered_in_part(weights: list[float], scale: float) -> None:
    assert_covers(weights, [scale] * len(weights), STEP, tight=scale >= 3)


@pytest.mark.parametrize("ratio", [5.0, 20.0])
@pytest.mark.parametrize("scale", SCALES)
def test_coverage_of_unequal_scales(scale: float, ratio: float) -> None:
    assert_covers([1, 1], [scale, ratio * scale], 1.0, tight=scale >= 3)
    assert_covers([1, 0.5], [scale, ratio * scale], 0.5, tight=scale >= 3)
    assert_covers([1] * 101, [scale] * 100 + [ratio * scale], 1.0, tight=scale >= 3)


def test_coverage_does_not_dip_between_the_scales_above() -> None:
    for number in (2, 3, 10, 30):
        for scale in np.geomspace(0.1, 2, 60):
            assert_covers([1.0] * number, [scale] * number, 1.0, tight=False)


@pytest.mark.parametrize("scale", [3.0, 100.0])
def test_the_check_of_coverage_rejects_other_widths(scale: float) -> None:
    for number in (1, 10, 1000):
        ones = np.ones(number)
        half = half_width(ones, scale * ones)
        assert coverage(ones, scale * ones, half / 1.3, 1.0) < 0.947
        assert coverage(ones, scale * ones, half * 1.3, 1.0) > 0.965


@pytest.mark.parametrize("scale", [*SCALES, 0.27, 0.28, 7.3])
@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_a_single_leaf_has_the_least_sufficient_width(scale: float, weight: float) -> None:
    half = half_width(np.array([weight]), np.array([scale]))
    steps = round(half / weight)
    assert half / weight == pytest.approx(steps, rel=1e-12)

    def outside(k: float) -> float:
        return 2 * math.exp(-(k + 1) / scale) / (1 + math.exp(-1 / scale))

    assert outside(steps) <= 0.05 * (1 + 1e-9)
    assert steps == 0 or outside(steps - 1) > 0.05


def test_no_noise_has_no_width() -> None:
    assert half_width_of_cumulants(0.0, 0.0, 0.0, 1.0, 0.0) == 0


def test_whole_leaves_have_whole_widths() -> None:
    for scale in (0.3, 2.2, 17.0):
        half = half_width(np.ones(7), np.full(7, scale))
        assert half == math.floor(half)
