"""The sources of noise: one interface, four implementations.

| text         | source                                              | private |
| ------------ | --------------------------------------------------- | ------- |
| `opendp`     | OpenDP's discrete Laplace, the default              | yes     |
| `fast`       | our exact sampler over operating-system randomness  | yes     |
| `seeded:42`  | the same sampler over a seeded generator            | no      |
| (tests only) | numbers written down beforehand                     | no      |

Noise is an integer with P(X = k) proportional to exp(-|k| * epsilon / sensitivity). An epsilon is at
least 1e-15, so a scale is at most some 1e15, and 64 bits hold the noise a thousand times over.
"""

from __future__ import annotations

import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fractions import Fraction
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from htf.base import arguments
from htf.base.numerals import whole
from htf.base.processes import once_per_process
from htf.curator.sampler import Words, WordSource, sample_discrete_laplace
from htf.errors import InputError
from htf.frame.domain import IntArray
from htf.privacy.epsilon import UNITS_PER_EPSILON

# Below it, rational numbers are divided wrongly (opendp#2638), and noise of most scales is wrong.
FIRST_SOUND_OPENDP = (0, 14, 2)
OTHER_NOISE = f"Install it with: pip install 'opendp>={'.'.join(map(str, FIRST_SOUND_OPENDP))}'; or choose the noise `fast`"
THREADED_FROM = 200  # draws from which OpenDP is worth more than one thread


class NoiseSource(ABC):
    """Where discrete Laplace noise comes from. `publish` takes one, or its name.

    Attributes
    ----------
    private : bool
        Whether nobody can know what it draws.
    description : str
        What releases say about it.

    Examples
    --------
    >>> import htf
    >>> import numpy as np
    >>> from htf.curator.noise import NoiseSource
    >>> class NoNoise(NoiseSource):
    ...     private, description = False, "none at all, for a test"
    ...     def draw_at(self, rate, size):
    ...         return np.zeros(size, dtype=np.int64)
    >>> source = NoNoise()
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> matrix = htf.FrequencyMatrix.from_dense(domain, [[500, 20], [0, 30]])
    >>> htf.publish(matrix, 1, noise=source).private
    False
    """

    private: bool
    description: str

    def draw(self, epsilon_units: IntArray, sensitivity: int) -> IntArray:
        """Draw once for each epsilon, with scale sensitivity / epsilon.

        Parameters
        ----------
        epsilon_units : ndarray of int
            The epsilons, in units of 1e-15.
        sensitivity : int
            By how much one record can move an answer.

        Returns
        -------
        ndarray of int
            The noise.

        Examples
        --------
        >>> source.draw(np.array([10**15, 10**15]), 1)
        array([0, 0])
        """
        noise = np.empty(len(epsilon_units), dtype=np.int64)
        distinct, places = np.unique(epsilon_units, return_inverse=True)
        for number, units in enumerate(distinct):
            chosen = places == number if len(distinct) > 1 else slice(None)
            rate = Fraction(int(units), sensitivity * UNITS_PER_EPSILON)
            noise[chosen] = self.draw_at(rate, int(np.sum(places == number)))
        return noise

    @abstractmethod
    def draw_at(self, rate: Fraction, size: int) -> IntArray:
        """Draw `size` times with scale 1 / rate.

        Parameters
        ----------
        rate : Fraction
            The inverse of the scale.
        size : int
            How many draws.

        Returns
        -------
        ndarray of int
            The noise.

        Examples
        --------
        >>> from fractions import Fraction
        >>> source.draw_at(Fraction(1, 2), 3)
        array([0, 0, 0])
        """

    def words(self, number: int) -> Words:
        """Draw uniform 32-bit words, for choices that are not noise added to a number.

        Parameters
        ----------
        number : int
            How many.

        Returns
        -------
        ndarray of uint32
            The words.

        Examples
        --------
        >>> len(source.words(4))
        4
        """
        return system_words(number)


class OpenDPNoise(NoiseSource):
    """OpenDP's discrete Laplace over 64-bit integers (its plain `int` saturates at 32 bits)."""

    private = True
    description = "OpenDP discrete Laplace (exact, secure randomness)"

    def __init__(self) -> None:
        check_opendp_version()

    def draw_at(self, rate: Fraction, size: int) -> IntArray:
        measurement = _opendp_laplace(round_up(1 / rate))
        threads = os.cpu_count() or 1
        if size < THREADED_FROM or threads == 1:
            return _draw_opendp(measurement, size)
        sizes = [size // threads + (number < size % threads) for number in range(threads)]
        parts = _threads().map(lambda n: _draw_opendp(measurement, n), sizes)
        return np.concatenate(list(parts))


class FastNoise(NoiseSource):
    """Our exact sampler over the operating system's randomness."""

    private = True
    description = "exact digit-wise discrete Laplace (operating-system randomness)"

    def draw_at(self, rate: Fraction, size: int) -> IntArray:
        return sample_discrete_laplace(rate, size, system_words)


class SeededNoise(NoiseSource):
    """The same noise every time, for tests and benchmarks. Whoever knows the seed knows the data."""

    private = False

    def __init__(self, seed: int) -> None:
        number = arguments.seed(seed, "the seed of noise")
        self.description = f"seeded:{number}"
        self._words = _seeded_words(number)

    def draw_at(self, rate: Fraction, size: int) -> IntArray:
        return sample_discrete_laplace(rate, size, self._words)

    def words(self, number: int) -> Words:
        return self._words(number)


class ScriptedNoise(NoiseSource):
    """Noise written down beforehand, for tests; the last number is repeated for ever."""

    private = False
    description = "scripted"

    def __init__(self, script: Iterable[int] = (0,)) -> None:
        self._script = list(script)

    def draw_at(self, rate: Fraction, size: int) -> IntArray:  # noqa: ARG002
        taken = [self._next() for _ in range(size)]
        return np.array(taken, dtype=np.int64)

    def words(self, number: int) -> Words:
        """Always the middle."""
        return np.full(number, 2**31, dtype=np.uint32)

    def _next(self) -> int:
        return self._script.pop(0) if len(self._script) > 1 else self._script[0]


def noise_from_text(text: str) -> NoiseSource:
    """`opendp`, `fast` or `seeded:NUMBER`."""
    if text == "opendp":
        return OpenDPNoise()
    if text == "fast":
        return FastNoise()
    name, _, seed = text.partition(":")
    if name == "seeded" and seed[:1].isdigit():  # no sign
        with suppress(ValueError):
            return SeededNoise(whole(seed))
    raise InputError(f"noise must be opendp, fast or seeded:NUMBER, got {text!r}")


def noise_of(given: object) -> NoiseSource:
    """A source of noise, or the one that a text names."""
    source = noise_from_text(given) if isinstance(given, str) else given
    remedy = "or one of the texts opendp, fast and seeded:NUMBER"
    return arguments.instance(source, NoiseSource, "noise", remedy)  # type: ignore[type-abstract]


def system_words(number: int) -> Words:
    """Uniform 32-bit words from the operating system's secure generator."""
    return np.frombuffer(os.urandom(4 * number), dtype=np.uint32)


def round_up(value: Fraction) -> float:
    """The smallest float not below `value`: noise may be larger than asked for, never smaller."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _seeded_words(seed: int) -> WordSource:
    generator = np.random.Generator(np.random.PCG64(seed))
    return lambda number: generator.integers(0, 2**32, size=number, dtype=np.uint32)


@once_per_process
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="htf-noise")


def check_opendp_version() -> None:
    """Refuse one that is missing, or so old that its noise is wrong. Quick: it is not loaded yet."""
    try:
        found = version("opendp")
    except PackageNotFoundError:
        raise InputError(f"OpenDP is not installed. {OTHER_NOISE}") from None
    if not _is_sound(found):
        raise InputError(
            f"OpenDP {found} draws wrong noise, which does not protect people as claimed. {OTHER_NOISE}"
        )


def _is_sound(opendp: str) -> bool:
    """By its version. A pre-release of the first sound one may still be wrong."""
    parts = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)(.*)", opendp)
    if parts is None:
        return False
    numbers, rest = tuple(int(part) for part in parts.groups()[:3]), parts[4]
    return numbers > FIRST_SOUND_OPENDP or (numbers == FIRST_SOUND_OPENDP and not rest)


@cache
def load_opendp() -> Any:
    """OpenDP's names. It loads a library of its own, which may fail in ways of its own."""
    try:
        import opendp.prelude as dp

        dp.enable_features("contrib")
    except Exception as error:
        raise InputError(
            f"OpenDP cannot be loaded ({type(error).__name__}: {error}). {OTHER_NOISE}"
        ) from error
    return dp


@lru_cache(maxsize=1024)
def _opendp_laplace(scale: float) -> Any:
    dp = load_opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return dp.m.make_laplace(*space, scale=scale)


def _draw_opendp(measurement: Any, size: int) -> IntArray:
    """Noise alone: what the measurement makes of zeros."""
    return np.asarray(measurement(np.zeros(size, dtype=np.int64)), dtype=np.int64)
