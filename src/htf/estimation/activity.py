"""What the noisy activity of people says: which K to keep, how many records there are, how far they are misplaced. Public.

Classes of people with few records are taken as measured. In the *tail*, noise is large beside the few people of a
class, and these hold most of the records. So the tail follows a curve: the log density of people over the log number
of records is a parabola that bends down. All parabolas of a grid are weighed by the likelihood of the noisy tail, with
room for a misfit, and by a prior for the bend. The tail is at most the quarter of people with most records, or starts
earlier: with any class from which a parabola fits, each weighed by how well it does. What follows is computed for each
of them, so its uncertainty is known too. docs/people.md has what was measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from htf.base import arguments
from htf.estimation.noise_law import NORMAL_DEVIATIONS
from htf.frame.domain import FloatArray, IntArray
from htf.privacy.activity import CLASS_ENDS, Activity
from htf.privacy.epsilon import Epsilon
from htf.privacy.protection import MOST_RECORDS_OF_A_PERSON, PERSON, Protection

ENDS = np.array(CLASS_ENDS)
LAST_SINGLE = 16  # numbers of records up to here are points of their own
POINTS_PER_DOUBLING = 8  # above
TAIL = 0.25  # the share of people, those with most records, whose numbers are smoothed at least
SEEN = 6.0  # scales of noise: a class with more people is not empty
PLAIN = 12.0  # scales: a class with more people is taken as measured, whatever the curve says
MISFIT = 0.15  # how far, relatively, true classes are from the curve
BEND = 0.3  # of log density, per doubling squared: the median
BEND_SPREAD = 0.65  # the deviation of its log
SLOPES = np.linspace(-3.0, 0.5, 29)
BENDS = -BEND * np.exp(BEND_SPREAD * np.linspace(-2.5, 2.5, 19))
HEIGHTS = np.linspace(-3.0, 3.0, 9)  # standard errors from the best height
FREE = 0.5  # of log likelihood: what a class costs that is taken as measured, not from the curve
WITHIN = 0.1  # relative error of records beyond K that no noise explains: tails of another form
WHOLE = 0.5  # of the variance if people were drawn from the curve: some of it is measured
LEAST_WEIGHT = 1e-3  # of a parabola, beside the best
ISLAND = 4.0  # times what the curve expects: a class that is off it

# Of relative noise beside displaced records, in a square with 1 % of the records. Found on six data sets.
NOISE_WEIGHT = 12.0
CLUMPS = 0.5  # of the variance if all of a person's records were in one place
KEPT = np.unique(np.rint(2 ** np.arange(0, 20.01, 0.125)).astype(np.int64))  # the K to choose from


@dataclass(frozen=True, slots=True, eq=False)
class Profiles:
    """Possible numbers of people with each number of records, and the probability of each possibility."""

    people: FloatArray  # (profiles, points)
    weights: FloatArray  # of profiles; they sum to 1

    @property
    def mean(self) -> FloatArray:
        """The expected number of people at each point."""
        return np.asarray(self.weights @ self.people)

    def records_beyond(self, most: int, kept: float) -> tuple[float, float, float]:
        """The records beyond `most` of each person, in all, where `kept` are within; and its standard errors.

        The estimate is the one that makes the expected relative error of the total least: the median, with
        profiles weighed by one over their total. The errors are for a truth below and above it: what profiles
        leave open, with what is unknown within classes, of other tails, and because people are whole.
        """
        each = np.maximum(NUMBERS - most, 0)
        beyond = self.people @ each
        low, high = weighted_quantiles(beyond, self.weights, (0.16, 0.84))
        (middle,) = weighted_quantiles(beyond, self.weights / (max(kept, 1.0) + beyond), (0.5,))
        (far,) = weighted_quantiles(beyond, self.weights, (0.975,))
        whole = WHOLE * weighted_quantiles(self.people @ each**2, self.weights, (0.84,))[0]
        common = WITHIN * middle, self._unknown_within_classes(each), np.sqrt(whole)
        below = float(np.linalg.norm(((high - low) / 2, *common)))
        above = max((high - low) / 2, (far - middle) / NORMAL_DEVIATIONS)
        return middle, below, float(np.linalg.norm((above, *common)))

    def _unknown_within_classes(self, each: FloatArray) -> float:
        """The standard error of a sum of `each` over people, if those of a lone class are all alike.

        A class with less on both sides may be people who all have the same number, such as one record a minute,
        anywhere in it. Where its neighbours hold as much, the curve through them tells where its people are.
        """
        people = self.mean @ IN_CLASS
        widths = WIDTHS @ IN_CLASS
        density = np.pad(people / widths, 1)
        alone = np.maximum(people - (density[:-2] + density[2:]) * widths, 0.0)
        mean = (EVEN * each) @ IN_CLASS
        variance = np.maximum((EVEN * each**2) @ IN_CLASS - mean**2, 0.0)
        return float(np.sqrt(np.sum(alone**2 * variance)))

    def records_up_to(self, most: int) -> float:
        """The records up to `most` of each person, in all: what keeping that many should leave."""
        return float(np.minimum(NUMBERS, most) @ self.mean)

    def clump(self, most: int) -> float:
        """The variance that records on the wrong people add to a count, per record: they come in clumps, the
        records of one person. The median over profiles."""
        kept, total = np.minimum(NUMBERS, most), np.maximum(self.people @ NUMBERS, 1e-9)
        factor = total / np.maximum(self.people @ kept, 1e-9)
        off = np.square(factor[:, None] * kept - NUMBERS)
        squares = np.sum(self.people * off, axis=1) / total
        return CLUMPS * weighted_quantiles(squares, self.weights, (0.5,))[0]

    def displaced(self, most: ArrayLike) -> FloatArray:
        """The records that scaling puts on the wrong people, gained and lost, as a share of all; for each K.

        The sum of |F min(n, K) - n| over people with n records, divided by all records, with F the factor that
        brings those kept to all. It lies between 0 and 2.
        """
        people, total = self.mean, max(float(NUMBERS @ self.mean), 1e-9)
        kept = np.minimum(NUMBERS, np.atleast_1d(np.asarray(most, dtype=np.float64))[:, None])
        factor = total / np.maximum(kept @ people, 1e-9)
        return np.asarray(np.abs(factor[:, None] * kept - NUMBERS) @ people / total)


def best_max_records(
    activity: Activity, epsilon: Epsilon, most: int = MOST_RECORDS_OF_A_PERSON
) -> int:
    """Find the number of records to keep per person that has the least expected error.

    The error is that of squares with about 1 % of the records. If few are kept, scaling puts more records on the
    wrong people; if many are kept, there is more noise. It is at least the median number of records: where there is
    much noise, the error hardly depends on the number. This uses only noisy numbers, so it costs nothing.

    Parameters
    ----------
    activity : Activity
        What `measure_activity` found.
    epsilon : Epsilon
        What is left for the map.
    most : int
        The largest number to consider.

    Returns
    -------
    int
        The number, for `read_points(max_records=…)`.

    Raises
    ------
    InputError
        If an argument is wrong.

    Examples
    --------
    >>> import htf
    >>> people = htf.RecordsPerPerson([5000, 3000, 1500, 400, 100])
    >>> activity = htf.measure_activity(people, 0.1, noise="seeded:1")
    >>> htf.best_max_records(activity, htf.Epsilon.of("0.9"))
    3
    """
    arguments.instance(activity, Activity, "activity", "make one with htf.measure_activity")
    left = float(Epsilon.of(epsilon))
    choices = KEPT[Protection(PERSON, most).max_records >= KEPT]
    profiles = read_profiles(activity)
    people = profiles.mean
    kept = np.maximum(np.minimum(NUMBERS, choices[:, None]) @ people, 1.0)
    noise = 100 * choices / (left * kept)  # relative, in a square with 1 % of the records
    error = (NOISE_WEIGHT * noise) ** 2 + profiles.displaced(choices) ** 2
    median = NUMBERS[np.searchsorted(np.cumsum(people), people.sum() / 2)]
    return max(int(choices[np.argmin(error)]), min(int(median), int(choices[-1])))


def read_profiles(activity: Activity) -> Profiles:
    """The possible profiles that a noisy activity leaves."""
    return _read(activity.people, activity.epsilon.units)


def _points() -> tuple[FloatArray, FloatArray, IntArray]:
    """Numbers of records, the width of each in doublings, and its class."""
    single = np.arange(1, LAST_SINGLE + 1, dtype=np.float64)
    steps = np.arange(np.log2(LAST_SINGLE), np.log2(ENDS[-1]) + 1e-9, 1 / POINTS_PER_DOUBLING)
    low, high = 2 ** steps[:-1], 2 ** steps[1:]
    # The mean of whole numbers above low, up to high.
    middle = (high - low) / np.log(high / low) + 0.5
    widths = np.concatenate([np.log2((single + 0.5) / (single - 0.5)), np.log2(high / low)])
    classes = np.searchsorted(ENDS, np.concatenate([single, np.floor(high)]))
    return np.concatenate([single, middle]), widths, classes


NUMBERS, WIDTHS, CLASSES = _points()
IN_CLASS = (CLASSES[:, None] == np.arange(len(ENDS))).astype(np.float64)
EVEN = WIDTHS / (WIDTHS @ IN_CLASS)[CLASSES]  # a class spread evenly over doublings


def weighted_quantiles(
    values: FloatArray, weights: FloatArray, shares: tuple[float, ...]
) -> list[float]:
    order = np.argsort(values)
    below = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    return [float(value) for value in np.interp(shares, below, values[order])]


@lru_cache(maxsize=8)  # of a few MB
def _read(noisy: tuple[int, ...], units: int) -> Profiles:
    seen, scale = np.array(noisy, dtype=np.float64), 1 / float(Epsilon(units))
    fits = [Fit.of(seen, scale, first) for first in range(_tail_start(seen, scale) + 1)]
    best = max(float(fit.log_weight.max()) for fit in fits)
    weights = [np.exp(fit.log_weight - best) for fit in fits]
    likely = [weight > LEAST_WEIGHT for weight in weights]
    people = [fit.people(seen, scale, kept) for fit, kept in zip(fits, likely, strict=True)]
    all_weights = np.concatenate([w[kept] for w, kept in zip(weights, likely, strict=True)])
    return Profiles(np.concatenate(people), all_weights / all_weights.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """All parabolas through the classes from `first` on, and how likely each is at each height."""

    first: int
    curve: FloatArray  # (parabolas, points of the tail), of height 1
    by_class: FloatArray  # (parabolas, classes of the tail)
    expected: FloatArray  # (heights, parabolas, classes of the tail)
    log_weight: FloatArray  # (heights, parabolas)

    @classmethod
    def of(cls, seen: FloatArray, scale: float, first: int) -> Fit:
        inside, tail = first <= CLASSES, seen[first:]
        slope, bend = (grid.ravel() for grid in np.meshgrid(SLOPES, BENDS, indexing="ij"))
        doublings = np.log2(NUMBERS[inside] / NUMBERS[inside][0])
        density = np.exp(slope[:, None] * doublings + bend[:, None] * doublings**2 / 2)
        curve = WIDTHS[inside] * density
        by_class = curve @ IN_CLASS[inside, first:]
        variance = 2 * scale**2 + (MISFIT * np.maximum(tail, 0.0)) ** 2
        information = (by_class**2 / variance).sum(axis=1)
        best, spread = (by_class * tail / variance).sum(axis=1) / information, information**-0.5
        height = np.maximum(best + HEIGHTS[:, None] * spread, 1e-9)
        expected = height[:, :, None] * by_class
        reach = scale + MISFIT * expected
        log_weight = np.log(spread / np.maximum(best, spread))
        log_weight = log_weight - (np.abs(tail - expected) / reach + np.log(reach)).sum(axis=2)
        log_weight -= (np.log(-bend / BEND) / BEND_SPREAD) ** 2 / 2
        log_weight -= np.sum(FREE + np.log(scale + MISFIT * np.maximum(seen[:first], 0.0)))
        return cls(first, curve, by_class, expected, log_weight)

    def people(self, seen: FloatArray, scale: float, kept: NDArray[np.bool_]) -> FloatArray:
        """People at each point, for the kept heights and parabolas."""
        inside, tail = self.first <= CLASSES, seen[self.first :]
        parabola, expected = np.nonzero(kept)[1], self.expected[kept]
        trust = (MISFIT * expected) ** 2 / (scale**2 + (MISFIT * expected) ** 2)
        classes = np.maximum(expected + trust * (tail - expected), 0.0)
        plain = tail > PLAIN * scale
        classes[:, plain] = tail[plain]
        place = CLASSES[inside] - self.first
        shape = self.curve[parabola] / np.maximum(self.by_class[parabola], 1e-300)[:, place]
        shape = np.where((plain & (expected * ISLAND < tail))[:, place], EVEN[inside], shape)
        people = np.empty((len(parabola), len(NUMBERS)))
        people[:, inside] = shape * classes[:, place]
        people[:, ~inside] = (EVEN * np.maximum(seen, 0.0)[CLASSES])[~inside]
        return people


def _tail_start(seen: FloatArray, scale: float) -> int:
    """The first class above which a share of at most TAIL of the people remain.

    If no class stands out, all of them are smoothed: noise in a class of people with many records would otherwise
    be taken for more records than there are.
    """
    full = np.flatnonzero(seen > SEEN * scale)
    last = int(full[-1]) if len(full) else 0
    above = seen[: last + 1].sum() - np.cumsum(seen[: last + 1])
    few = int(np.argmax(above <= TAIL * max(seen[: last + 1].sum(), 1.0)))
    return min(few, max(last - 1, 0))
