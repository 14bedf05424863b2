"""Tests the noise briefly in each process, before its first charge.

Part of the code that draws noise is not ours, and we do not know the machines it runs on. A library has drawn
wrong noise before (OpenDP below 0.14.2), and only the noise itself showed it. So each process draws a few
thousand numbers, uses them for nothing else, and compares them with the distribution that the proofs need.

Sound noise is refused with a probability below 1e-12: one process in about a hundred finds its first draws
odd, draws ten times as many, and refuses only what chance does not do in a lifetime. docs/noise.md says what
this test can find, and what it cannot.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htf.base.processes import once_per_process
from htf.curator.noise import NoiseSource
from htf.curator.sampler import Words
from htf.errors import InputError
from htf.frame.domain import IntArray

SCALE = 3  # at which OpenDP 0.14.1 is most wrong
# A scale beyond 32 bits, at which no two of some thousand draws are the same by chance.
WIDE = 10**16
DRAWS, MORE_DRAWS = 4_000, 40_000
WIDE_SHARE = 20  # one draw of the wide scale for so many of the other
ODD = 2e-3  # first draws less likely than this are not believed yet, ...
WRONG = 1e-12  # ... and further draws less likely than this are refused
NOT_BY_CHANCE = 0.0
LOW_BITS, WORD_BITS = 16, 32


def check_noise(source: NoiseSource) -> None:
    """Refuse a source whose noise is wrong. Each kind is tested once; noise that hides nothing is not."""
    tested = _tested()
    if source.private and type(source) not in tested:
        refuse_wrong(source)
        tested.add(type(source))


def refuse_wrong(source: NoiseSource) -> None:
    """Test twice: with few draws, and with many if those are odd."""
    if likelihood(source, DRAWS) < ODD and likelihood(source, MORE_DRAWS) < WRONG:
        raise InputError(
            f"the noise of {source.description} does not have the distribution that privacy needs: it failed the "
            "test that each process makes before its first charge. Nothing was charged. Install the newest "
            "opendp, or use the other noise (opendp or fast)"
        )


@once_per_process
def _tested() -> set[type[NoiseSource]]:
    return set()


def likelihood(source: NoiseSource, size: int) -> float:
    """The smallest p-value of several tests of `size` draws."""
    near = source.draw_at(Fraction(1, SCALE), size)
    wide = source.draw_at(Fraction(1, WIDE), size // WIDE_SHARE)
    words = source.words(size // 2)
    return min([*_near_fits(near), *_wide_fits(wide), *_words_fit(words)])


def _near_fits(draws: IntArray) -> Iterator[float]:
    """Signs; and of what is not zero, the remainder and the quotient by the scale: both are geometric."""
    q = math.exp(-1 / SCALE)
    sides = np.array([q, 1 - q, q]) / (1 + q)
    yield chi_square(np.bincount(np.sign(draws) + 1, minlength=3), sides)
    sizes = np.abs(draws[draws != 0]) - 1
    if len(sizes) == 0:
        yield NOT_BY_CHANCE
        return
    remainders = (1 - q) / (1 - q**SCALE) * q ** np.arange(SCALE)
    yield chi_square(np.bincount(sizes % SCALE, minlength=SCALE), remainders)
    bins = 4
    quotients = np.append((1 - 1 / math.e) * math.e ** -np.arange(bins), math.e**-bins)
    yield chi_square(np.bincount(np.minimum(sizes // SCALE, bins), minlength=bins + 1), quotients)


def _wide_fits(draws: IntArray) -> Iterator[float]:
    """Nothing is cut short or rounded at a scale beyond 32 bits: sizes in fifths, low bits fair, none twice."""
    fifths = -WIDE * np.log1p(-np.arange(1, 5) / 5)
    yield chi_square(
        np.bincount(np.searchsorted(fifths, np.abs(draws)), minlength=5), np.full(5, 0.2)
    )
    yield _fair_bits(draws, LOW_BITS)
    yield _none_twice(draws)


def _words_fit(words: Words) -> Iterator[float]:
    """Fair bits; and of pairs, which have 64, none twice."""
    yield _fair_bits(words, WORD_BITS)
    yield _none_twice(words[: len(words) // 2 * 2].copy().view(np.uint64))


def _none_twice(values: NDArray[Any]) -> float:
    """In Python's set: the first call of numpy's `unique` takes as long as all the draws."""
    return 1.0 if len(set(values.tolist())) == len(values) else NOT_BY_CHANCE


def _fair_bits(values: IntArray | Words, bits: int) -> float:
    ones = np.array([np.count_nonzero(values & values.dtype.type(1 << bit)) for bit in range(bits)])
    return tail(float(np.sum((2 * ones - len(values)) ** 2) / len(values)), bits)


def chi_square(found: IntArray, probabilities: NDArray[Any]) -> float:
    expected = probabilities * found.sum()
    return tail(float(np.sum((found - expected) ** 2 / expected)), len(found) - 1)


def tail(statistic: float, degrees: int) -> float:
    """P(chi-square >= statistic), for an even number of degrees of freedom."""
    half = statistic / 2
    if half > 700:
        return 0.0
    term = total = 1.0
    for number in range(1, degrees // 2):
        term *= half / number
        total += term
    return math.exp(-half) * total
