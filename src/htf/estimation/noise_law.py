"""The law of the noise, and all that follows from it. Another law would change only this file and
`htf.estimation.noise_kernels`, which has the compiled half widths of intervals.

A count carries discrete Laplace noise with scale b, P(X = k) proportional to exp(-|k| / b). It is the
difference of two geometric variables, so its cumulants are known exactly.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from htf.estimation import level
from htf.frame.domain import FloatArray, IntArray
from htf.privacy.epsilon import UNITS_PER_EPSILON

# Half the width of an interval around a sum of much independent noise, in standard deviations.
NORMAL_DEVIATIONS = level.NORMAL_DEVIATIONS

# Excess kurtosis of a sum of equal continuous Laplace variables, and the number of standard
# deviations within which it lies at LEVEL. The tests compute them anew.
KURTOSES = np.array([0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0])
QUANTILES = np.array([1.959964, 1.977800, 1.995667, 2.028421, 2.056502, 2.080412, 2.118303])

MOST_EXPONENT = 200.0  # of a scalar variance, which is then never quite zero
# At an epsilon of hundreds a variance underflows, and its inverse overflows.
LEAST_VARIANCE = 1e-100


def count_scales(epsilon_units: IntArray) -> FloatArray:
    """The scale of the noise in a count that was taken with this epsilon."""
    return np.asarray(1 / (epsilon_units / UNITS_PER_EPSILON))


def count_variances(epsilon_units: IntArray) -> FloatArray:
    """The variance of the noise in a count that was taken with this epsilon."""
    return np.asarray(np.maximum(noise_variances(count_scales(epsilon_units)), LEAST_VARIANCE))


def noise_variances(scales: FloatArray) -> FloatArray:
    """The variance of discrete Laplace noise, 2 p / (1 - p)^2 with p = exp(-1 / b); 0 for b = 0."""
    with np.errstate(divide="ignore", over="ignore"):
        exponents = -1 / scales
    # expm1, because 1 - p loses every digit for large scales.
    return np.asarray(2 * np.exp(exponents) / np.expm1(exponents) ** 2)


def noise_variance(scale: float) -> float:
    """The same for one scale, as 1 / (2 sinh(1 / (2 b))^2): about 2 b^2, and never quite zero."""
    return 0.5 / math.sinh(min(0.5 / scale, MOST_EXPONENT)) ** 2


def noise_deviations(scales: FloatArray) -> FloatArray:
    """The standard deviation of discrete Laplace noise."""
    return np.sqrt(noise_variances(scales))


def scales_of_variances(variances: FloatArray) -> FloatArray:
    """The scale of discrete Laplace noise of these variances; about sqrt(variance / 2).

    The inverse of `noise_variances`, since 2 p / (1 - p)^2 is also 1 / (2 sinh(1 / (2 b))^2).
    """
    with np.errstate(divide="ignore"):  # no variance, no scale
        return np.asarray(0.5 / np.arcsinh(1 / np.sqrt(2 * variances)))


def noise_fourth_cumulants(variances: FloatArray) -> FloatArray:
    """The fourth cumulant of discrete Laplace noise, given its variance v: v + 3 v^2.

    With o = p / (1 - p), a geometric variable has second cumulant o (1 + o) = v / 2 and fourth
    o (1 + o) (1 + 6 o (1 + o)) = (v / 2) (1 + 3 v). The difference of two has twice that.
    """
    return variances * (1 + 3 * variances)


def log_likelihoods(distances: FloatArray, single: NDArray[np.bool_]) -> FloatArray:
    """The log-likelihood of noise that many standard deviations off, up to a constant: of continuous
    Laplace noise for a single count, of normal noise for a sum of many."""
    return np.where(single, -np.sqrt(2) * distances, -0.5 * distances**2)
