"""Finds the least epsilon at which a forecast reaches a target, with few simulated releases.

Errors fall with epsilon nearly along a line if both are drawn by their logarithms. So two releases far apart give a
first guess, one release there a better one, and a few more at that place take out the luck of a single release. Every
release asks the same questions as the others of its run, so that the curve is smoother than its points are certain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any

import numpy as np

from htf.forecasts.questions import Kind
from htf.forecasts.simulation import Errors, Made, Simulation
from htf.forecasts.targets import Target
from htf.frame.domain import FloatArray
from htf.privacy.epsilon import Epsilon
from htf.privacy.meaning import Meaning

FIRST = (0.2, 2.0)  # the first two epsilons
LEAST, MOST = 0.001, 20.0  # those that are tried at all
NEAR = 0.1  # as logarithm of the error: closer than this, a guess needs no other
FARTHEST = math.log(12)  # how far from all others the next guess may be, as a logarithm
AROUND = 0.8  # the width of the part of the curve that is taken for a line, as a logarithm
BESIDE = 2.5  # how many times as large or small another place on the curve is
FITS = 5  # of that line, each around the place that the last one found
STEEPEST, FLATTEST = -1.5, -0.15  # slopes that real curves have
MOST_GUESSES = 5
RUNS = 3  # at the place that is found
THREADS = 2
TINY = 1e-9  # an error of 0 has no logarithm

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Tried:
    """The errors of one simulated release."""

    epsilon: Epsilon
    run: int
    errors: Errors


@dataclass(frozen=True, slots=True)
class Found:
    """The epsilon that reaches the target, and what was tried to find it."""

    plan: Simulation
    target: Target
    epsilon: Epsilon | None  # None if even the largest does not reach it
    tried: tuple[Tried, ...]
    is_least: bool = False  # even the least that was tried reaches it

    @property
    def curve(self) -> list[tuple[Epsilon, float, int]]:
        """By epsilon: the mean error, and of how many releases."""
        found: dict[Epsilon, list[float]] = {}
        for one in self.tried:
            found.setdefault(one.epsilon, []).append(self.target.error(one.errors))
        return [(epsilon, float(np.mean(e)), len(e)) for epsilon, e in sorted(found.items())]

    @property
    def count(self) -> float:
        """The typical true count."""
        return float(np.mean([one.errors.count for one in self.tried]))

    def to_dict(self) -> dict[str, Any]:
        """Describe what was found with plain values, for JSON."""
        meaning = None
        if self.epsilon is not None:
            meaning = Meaning(self.epsilon, self.plan.protection).to_dict()
        return {
            **self.plan.to_dict(),
            "target": {
                "text": self.target.told(self.plan.protection.quantity),
                "limit": self.target.limit,
                "relative": self.target.is_relative,
            },
            "epsilon": None if self.epsilon is None else str(self.epsilon),
            "meaning": meaning,
            "typical_count": self.count,
            "curve": [
                {"epsilon": str(epsilon), "typical_error": error, "releases": number}
                for epsilon, error, number in self.curve
            ],
        }


def find_epsilon(plan: Simulation, target: Target, tell: Tell | None = None) -> Found:
    """Simulate releases until the least epsilon that reaches the target is known."""
    tell = tell or (lambda _: None)
    target.check_counted(plan.protection.quantity)
    tell("preparing the stand-in")
    search = _Search(plan, target, tell)
    search.try_all([(epsilon, 0) for epsilon in FIRST])
    guess = search.guess()
    for number in range(MOST_GUESSES):
        beside = [(search.beside(guess), 0)] if number == 0 else []
        search.try_all([(guess, 0), *beside])
        better = search.guess()
        if abs(search.off(guess)) < NEAR or abs(math.log(better / guess)) < NEAR / 2:
            break
        guess = better
    search.try_all([(guess, 0)])
    if guess >= MOST * 0.99 and search.off(guess) > 0:
        return Found(plan, target, None, tuple(search.tried))
    search.try_all([(search.guess(), run) for run in range(1, plan.runs)])
    least = search.guess()
    return Found(plan, target, round_up(least), tuple(search.tried), is_least=least <= LEAST)


class _Search:
    """What was tried so far."""

    def __init__(self, plan: Simulation, target: Target, tell: Tell) -> None:
        self.plan, self.kind, self.target, self.tell = plan, target.kind(plan), target, tell
        self.tried: list[Tried] = []

    def try_all(self, wanted: Sequence[tuple[float, int]]) -> None:
        """Simulate a release for each, two at a time where they share their data."""
        known = {(one.epsilon, one.run) for one in self.tried}
        jobs = dict.fromkeys((round_near(epsilon), run) for epsilon, run in wanted)
        new = [job for job in jobs if job not in known]
        if not new:
            return
        self.tell(f"releasing at epsilon {' and '.join(dict.fromkeys(str(e) for e, _ in new))}")
        self.plan.stand_in.draw(0)  # before both threads want it
        with ThreadPoolExecutor(THREADS if self.plan.stand_in.crowd is None else 1) as pool:
            self.tried += pool.map(self._try, new)

    def _try(self, job: tuple[Epsilon, int]) -> Tried:
        return Tried(*job, ask_once(self.plan, self.kind, *job))

    def guess(self) -> float:
        """Where the curve meets the target."""
        x, y = (np.array(points) for points in zip(*map(self._point, self.tried), strict=True))
        found = float(x[np.argmin(np.abs(y))])
        for _ in range(FITS):
            level, slope = _fit(x, y, found)
            found -= level / slope
            found = float(np.clip(found, x.min() - FARTHEST, x.max() + FARTHEST))
        return float(np.clip(math.exp(found), LEAST, MOST))

    def _point(self, one: Tried) -> tuple[float, float]:
        """The logarithms of its epsilon, and of its error over the target."""
        error = max(self.target.error(one.errors), TINY)
        return math.log(float(one.epsilon)), math.log(error / self.target.limit)

    def off(self, epsilon: float) -> float:
        """How far the error there is from the target, as a logarithm."""
        wanted = round_near(epsilon)
        return float(np.mean([self._point(one)[1] for one in self.tried if one.epsilon == wanted]))

    def beside(self, guess: float) -> float:
        """An epsilon beside the guess, on the side where less was tried: for the curve, and for its slope."""
        tried = np.array([float(one.epsilon) for one in self.tried])
        sides = np.array([guess / BESIDE, guess * BESIDE])
        alone = np.abs(np.log(tried[:, None] / sides)).min(axis=0)
        return float(np.clip(sides[np.argmax(alone)], LEAST, MOST))


def ask_once(plan: Simulation, kind: Kind, epsilon: Epsilon, run: int) -> Errors:
    """Simulate one release, and ask it."""
    return Made.of(plan, epsilon, run).typical_errors(kind)


def _fit(x: FloatArray, y: FloatArray, place: float) -> tuple[float, float]:
    """The height and slope at a place of the line that fits the points around it best."""
    weights = np.exp(-(((x - place) / AROUND) ** 2) / 2) + 1e-6
    spread = np.cov(x, y, aweights=weights)
    slope = float(np.clip(spread[0, 1] / spread[0, 0], STEEPEST, FLATTEST))
    x_mean, y_mean = np.average([x, y], axis=1, weights=weights).tolist()
    return y_mean + slope * (place - x_mean), slope


def round_near(epsilon: float) -> Epsilon:
    """To two digits, the same for guesses that hardly differ."""
    return Epsilon.of(f"{epsilon:.2g}")


def round_up(epsilon: float) -> Epsilon:
    """To two digits, or three after a leading 1: at most 5 % more than needed."""
    exact = Decimal(repr(epsilon))
    digits = 2 if exact.as_tuple().digits[0] == 1 else 1
    step = Decimal(1).scaleb(exact.adjusted() - digits)
    return Epsilon.of(exact.quantize(step, rounding=ROUND_CEILING))
