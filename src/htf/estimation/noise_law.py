"""The noise of a leaf: discrete Laplace with scale b, P(X = k) proportional to exp(-|k| / b).

It is the difference of two geometric variables, so its cumulants are known exactly. What they say of
intervals is in htf.query.half_widths.
"""

from __future__ import annotations

import numpy as np

from htf.frame.domain import FloatArray


def noise_variances(scales: FloatArray) -> FloatArray:
    """The variance of discrete Laplace noise, 2 p / (1 - p)^2 with p = exp(-1 / b); 0 for b = 0."""
    with np.errstate(divide="ignore", over="ignore"):
        exponents = -1 / scales
    # expm1, because 1 - p loses every digit for large scales.
    return np.asarray(2 * np.exp(exponents) / np.expm1(exponents) ** 2)


def noise_fourth_cumulants(variances: FloatArray) -> FloatArray:
    """The fourth cumulant of discrete Laplace noise, given its variance v: v + 3 v^2.

    With o = p / (1 - p), a geometric variable has second cumulant o (1 + o) = v / 2 and fourth
    o (1 + o) (1 + 6 o (1 + o)) = (v / 2) (1 + 3 v). The difference of two has twice that.
    """
    return variances * (1 + 3 * variances)
