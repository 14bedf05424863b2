"""Exact discrete Laplace noise, whole arrays at a time, from uniform random words.

No float takes part: a probability is compared with as many random bits as it takes to decide, so
the distribution is exact given uniform words. Proof: docs/proofs/discrete-laplace-sampler.md.

With q = exp(-rate), noise X has P(X = k) = (1 - q) / (1 + q) * q**|k|. It is drawn as

    X = 0                  with probability (1 - q) / (1 + q) = tanh(rate / 2),
    X = ±(1 + G)           otherwise, with a fair sign and G geometric, P(G = g) = (1 - q) q**g.

The binary digits of G are independent, digit j being 1 with probability 1 / (1 + exp(rate * 2**j)),
because q**g is the product of q**(2**j) over the digits of g, and 1 - q that of
1 / (1 + q**(2**j)). All digits from place J on are zero with probability 1 - q**(2**J).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from htf.frame.domain import IntArray

Words = NDArray[np.uint32]
WordSource = Callable[[int], Words]  # the source of `n` independent uniform 32-bit words

WORD_BITS = 32
HIGH_DIGITS_RARE = 23  # exp(-23) < 2**-32: digits from place J on are then rare enough to loop
CHUNK = 1 << 15  # draws at once: the words of a chunk fit a processor's cache


@dataclass(frozen=True)
class Probability:
    """A probability that can be computed to any number of digits."""

    rate: Fraction
    formula: Callable[[Decimal, Context], Decimal]  # of exp(rate), to the context's precision

    def words(self, number: int) -> int:
        """The first `number` 32-bit words of its binary expansion, as one integer."""
        digits = 60 + 20 * number
        while True:
            low, high = self._bounds(digits)
            scale = 1 << (WORD_BITS * number)
            if int(low * scale) == int(high * scale):
                return int(low * scale)
            digits *= 2  # the expansion is that of an irrational number: this ends

    def _bounds(self, digits: int) -> tuple[Fraction, Fraction]:
        context = Context(prec=digits, Emax=10**9, Emin=-(10**9))
        rate = context.divide(Decimal(self.rate.numerator), Decimal(self.rate.denominator))
        value = Fraction(self.formula(context.exp(rate), context))
        # Rates lie between 2**-55 and 2**10. Rounding the rate moves its exponential by at most four
        # digits, and the difference exp(rate) - 1 loses at most seventeen: 25 covers all.
        margin = value / 10 ** (digits - 25)
        return value - margin, value + margin

    def happens(self, word: int, words: WordSource) -> bool:
        """Decide by the binary expansion of a uniform number, whose first word is `word`."""
        seen, number = word, 1
        while seen == (digits := self.words(number)):
            seen = (seen << WORD_BITS) | int(words(1)[0])
            number += 1
        return seen < digits


@dataclass(frozen=True)
class LaplacePlan:
    """All probabilities that noise of one rate needs."""

    probabilities: tuple[Probability, ...]  # of zero, of a digit from J on, of digits 0 to J-1
    first_words: Words

    @property
    def places(self) -> int:
        return len(self.probabilities) - 2


@lru_cache(maxsize=1024)
def plan_for(rate: Fraction) -> LaplacePlan:
    places = 0
    while rate * (1 << places) < HIGH_DIGITS_RARE:
        places += 1
    probabilities = (
        Probability(rate, _zero),
        Probability(rate * (1 << places), _at_least_one),
        *(Probability(rate * (1 << place), _digit) for place in range(places)),
    )
    first_words = np.array([p.words(1) for p in probabilities], dtype=np.uint32)
    return LaplacePlan(probabilities, first_words)


def sample_discrete_laplace(rate: Fraction, size: int, words: WordSource) -> IntArray:
    """`size` independent draws of noise with P(X = k) proportional to exp(-rate * |k|)."""
    plan = plan_for(rate)
    noise = np.empty(size, dtype=np.int64)
    for start in range(0, size, CHUNK):
        part = noise[start : start + CHUNK]
        part[:] = _sample_chunk(plan, len(part), words)
    return noise


def _sample_chunk(plan: LaplacePlan, size: int, words: WordSource) -> IntArray:
    happens = _decide(plan, size, words)
    magnitude = np.ones(size, dtype=np.int64)
    for place, digit in enumerate(happens[2:]):
        magnitude += digit.astype(np.int64) << place
    for draw in np.flatnonzero(happens[1]):
        magnitude[draw] += _high_digits(plan, words) << plan.places
    magnitude[happens[0]] = 0
    negative = (words(size) & np.uint32(1)).astype(bool)
    return np.where(negative, -magnitude, magnitude)


def _decide(plan: LaplacePlan, size: int, words: WordSource) -> NDArray[np.bool_]:
    """One independent decision for each probability and draw; ties of the first word go on."""
    number = len(plan.probabilities)
    drawn = words(number * size).reshape(number, size)
    first = plan.first_words[:, None]
    happens = drawn < first
    for row, column in zip(*np.nonzero(drawn == first), strict=True):
        happens[row, column] = plan.probabilities[row].happens(int(drawn[row, column]), words)
    return happens


def _high_digits(plan: LaplacePlan, words: WordSource) -> int:
    """G // 2**J, given that it is not zero: one more than a geometric number, for G is memoryless."""
    number, at_least_one = 1, plan.probabilities[1]
    while at_least_one.happens(int(words(1)[0]), words):
        number += 1
    return number


def _zero(exp_rate: Decimal, context: Context) -> Decimal:
    """(1 - q) / (1 + q)"""
    return context.divide(context.subtract(exp_rate, Decimal(1)), context.add(exp_rate, Decimal(1)))


def _at_least_one(exp_rate: Decimal, context: Context) -> Decimal:
    """q"""
    return context.divide(Decimal(1), exp_rate)


def _digit(exp_rate: Decimal, context: Context) -> Decimal:
    """q / (1 + q)"""
    return context.divide(Decimal(1), context.add(exp_rate, Decimal(1)))
