"""What the noisy activity of people says: which K to keep, how many records there are, how far they are misplaced. Public.

Marks of people with few records are taken as measured. In the *tail*, noise is large beside the few people near a
mark, and these hold most of the records. So the tail follows a curve: the log density of people over the log number
of records is a parabola that bends down. All parabolas of a grid are weighed by the likelihood of the noisy tail, with
room for a misfit, and by a prior for the bend. The tail is at most a small share of people, those with most records, or
starts earlier: with any mark from which a parabola fits, each weighed by how well it does. People at a mark that are
off the curve by more than noise explains are taken as measured; the more records they would add, the more it takes. What
follows is computed for each parabola, so its uncertainty is known too.
docs/measurements.md has what was measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from htf.base import arguments
from htf.estimation.activity_bounds import records_beyond_bounds
from htf.estimation.noise_law import NORMAL_DEVIATIONS
from htf.frame.domain import FloatArray, IntArray
from htf.privacy.activity import Activity
from htf.privacy.epsilon import Epsilon
from htf.privacy.protection import PERSON, Protection

# Records per person that `auto` chooses from: fixed, so that it says nothing of the data.
MOST_KEPT = 1000
LAST_SINGLE = 16  # numbers of records up to here are points of their own
POINTS_PER_DOUBLING = 8  # above
SEEN = 6.0  # scales of noise: a class with more people is not empty
SLOPES = np.linspace(-3.0, 0.5, 29)
BENDS = np.linspace(-2.5, 2.5, 19)  # deviations from the median
HEIGHTS = np.linspace(-3.0, 3.0, 9)  # standard errors from the best height
AT_MARK = 0.02  # doublings: the width of the point that is a mark
ROUNDS = 8  # until people match the marks
LEAST = 1e-3  # people in a class before they are matched
LEAST_WEIGHT = 1e-3  # of a parabola, beside the best
ISLAND = 4.0  # times what the curve expects: a class that is off it
DOUBT = 1.25  # scales for each log of how often people off the curve would multiply all records

# Of relative noise beside displaced records, in a square with 1 % of the records. Found on six data sets.
NOISE_WEIGHT = 12.0
CLUMPS = 0.5  # of the variance if all of a person's records were in one place
KEPT = np.unique(np.rint(2 ** np.arange(0, 20.01, 0.125)).astype(np.int64))  # the K to choose from


# What is taken for likely before anything is measured, and how far the curve is trusted.
TAIL = 0.15  # the share of people, those with most records, whose numbers are smoothed at least
PLAIN = 20.0  # scales: a class with more people is taken as measured, whatever the curve says
MISFIT = 0.05  # how far, relatively, true classes are from the curve
WHOLE = 0.3  # of the variance of people in a class, if they were drawn from the curve
FREE = 0.2  # of log likelihood: the cost of a class that is not from the curve
OFF = 3.0  # scales: what is further from the curve is a misfit, not noise
# Of log density, per doubling squared: the median, and the deviation of its log.
BEND, BEND_SPREAD = 0.4, 0.9
TRIED_BENDS = -BEND * np.exp(BEND_SPREAD * BENDS)  # of the parabolas


@dataclass(frozen=True, slots=True, eq=False)
class Profiles:
    """Possible numbers of people with each number of records, and the probability of each possibility."""

    grid: Grid
    people: FloatArray  # (profiles, points)
    records: FloatArray  # of profiles: of all people, by the marks
    weights: FloatArray  # of profiles; they sum to 1
    activity: Activity

    @property
    def mean(self) -> FloatArray:
        """The expected number of people at each point."""
        return np.asarray(self.weights @ self.people)

    def records_beyond(self, most: int, kept: float) -> tuple[float, float, float]:
        """The records beyond `most` of each person, in all, where `kept` are within; and its standard errors.

        The estimate is the one that makes the expected relative error of the total least: the median, with
        profiles weighed by one over their total. The errors are for a truth below and above it, and say how far the
        ends of an interval are that holds whatever the law of activity is.
        """
        # Between two marks only the sum of records is known, not how many of them are beyond.
        beyond = np.maximum(self.records - kept, 0.0)
        (middle,) = weighted_quantiles(beyond, self.weights / (max(kept, 1.0) + beyond), (0.5,))
        low, high = records_beyond_bounds(self.activity, most, kept)
        middle = min(max(middle, low), high)
        return middle, (middle - low) / NORMAL_DEVIATIONS, (high - middle) / NORMAL_DEVIATIONS

    def records_up_to(self, most: int) -> float:
        """The records up to `most` of each person, in all: what keeping that many should leave."""
        return float(np.minimum(self.grid.numbers, most) @ self.mean)

    def limit_of(self, protection: Protection, kept: float) -> float:
        """The limit for people by which `kept` in all were left: the number of records that are kept of each. Of weights,
        the number of units per person that would leave as much."""
        if protection.weight is None:
            return protection.max_records
        numbers = self.grid.numbers
        left = np.minimum(numbers, numbers[:, None]) @ self.mean
        return float(np.interp(kept, left, numbers))

    def clump(self, most: float) -> float:
        """The variance that records on the wrong people add to a count, per record: they come in clumps, the
        records of one person. The median over profiles."""
        numbers = self.grid.numbers
        kept, total = np.minimum(numbers, most), np.maximum(self.people @ numbers, 1e-9)
        factor = total / np.maximum(self.people @ kept, 1e-9)
        off = np.square(factor[:, None] * kept - numbers)
        squares = np.sum(self.people * off, axis=1) / total
        return CLUMPS * weighted_quantiles(squares, self.weights, (0.5,))[0]

    def displaced(self, most: ArrayLike) -> FloatArray:
        """The records that scaling puts on the wrong people, gained and lost, as a share of all; for each K.

        The sum of |F min(n, K) - n| over people with n records, divided by all records, with F the factor that
        brings those kept to all. It lies between 0 and 2.
        """
        people, numbers = self.mean, self.grid.numbers
        total = max(float(numbers @ people), 1e-9)
        kept = np.minimum(numbers, np.atleast_1d(np.asarray(most, dtype=np.float64))[:, None])
        factor = total / np.maximum(kept @ people, 1e-9)
        return np.asarray(np.abs(factor[:, None] * kept - numbers) @ people / total)


def best_max_records(activity: Activity, epsilon: Epsilon, most: int = MOST_KEPT) -> int:
    """Find the number of records to keep per person that has the least expected error.

    The error is that of squares with about 1 % of the records. If few are kept, scaling puts more records on the
    wrong people; if many are kept, there is more noise. It is at least the median number of records: where there is
    much noise, the error hardly depends on the number. This uses only noisy numbers, so it costs nothing. Where records
    have weights, the activity does not say how many records make up somebody's sum: each is taken for half of the largest.

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
    allowed = Protection(PERSON, most).max_records or 1
    choices = KEPT[min(allowed, activity.most // activity.max_weight) >= KEPT]
    profiles, usual = read_profiles(activity), (activity.max_weight + 1) / 2
    people, numbers = profiles.mean, profiles.grid.numbers
    kept = np.maximum(np.minimum(numbers, choices[:, None] * usual) @ people, 1.0)
    # Relative, in a square with 1 % of the records.
    noise = 100 * (choices * activity.max_weight) / (left * kept)
    error = (NOISE_WEIGHT * noise) ** 2 + profiles.displaced(choices * usual) ** 2
    median = numbers[np.searchsorted(np.cumsum(people), people.sum() / 2)] / usual
    return max(int(choices[np.argmin(error)]), min(int(median), int(choices[-1])))


def read_profiles(activity: Activity) -> Profiles:
    """The possible profiles that a noisy activity leaves."""
    return _read(replace(activity, noise="", private=True, decides=False))


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The numbers of records that profiles are made of: each up to 16, then eight to a doubling, and the marks."""

    ends: FloatArray  # the marks, or where classes end
    numbers: FloatArray
    widths: FloatArray  # of points, in doublings
    classes: IntArray  # of points: the first mark that is at least the number
    shares: FloatArray  # (points, marks): how much of someone with this number counts there
    even: FloatArray  # of points: a class spread evenly over doublings

    @classmethod
    @lru_cache(maxsize=8)
    def of(cls, ends: tuple[int, ...]) -> Grid:
        numbers, widths, classes = [], [], []
        for place, (before, end) in enumerate(zip((0, *ends), ends, strict=False)):
            if before < LAST_SINGLE:
                points = np.arange(before + 1, end + 1, dtype=np.float64)
                width = np.log2((points + 0.5) / (points - 0.5))
            else:
                many = int(np.ceil(POINTS_PER_DOUBLING * np.log2(end / before) - 1e-9))
                steps = np.linspace(np.log2(before), np.log2(end), many + 1)
                low, high = 2 ** steps[:-1], 2 ** steps[1:]
                # The mean of whole numbers above low, up to high.
                points, width = (high - low) / np.log(high / low) + 0.5, np.log2(high / low)
                points, width = np.append(points, end), np.append(width, AT_MARK)
            numbers.append(points)
            widths.append(width)
            classes.append(np.full(len(points), place))
        which, width = np.concatenate(classes), np.concatenate(widths)
        in_class = (which[:, None] == np.arange(len(ends))).astype(np.float64)
        even, number = width / (width @ in_class)[which], np.concatenate(numbers)
        last = np.array(ends, dtype=np.float64)
        return cls(last, number, width, which, _shares(number, last), even)


def _shares(numbers: FloatArray, marks: FloatArray) -> FloatArray:
    """How people with these numbers are split between the marks below and above."""
    below = np.clip(np.searchsorted(marks, numbers, side="right") - 1, 0, max(len(marks) - 2, 0))
    above = np.minimum(below + 1, len(marks) - 1)
    upper = (numbers - marks[below]) / np.maximum(marks[above] - marks[below], 1)
    place = np.arange(len(marks))
    return np.asarray(
        (place == below[:, None]) * (1 - upper)[:, None]
        + (place == above[:, None]) * upper[:, None]
    )


@dataclass(frozen=True, slots=True, eq=False)
class Noisy:
    """The noisy number of people at each mark, and how noisy it is."""

    grid: Grid
    seen: FloatArray
    scale: float

    @classmethod
    def of(cls, activity: Activity) -> Noisy:
        grid, seen = Grid.of(activity.ends), np.array(activity.counted, dtype=np.float64)
        return cls(grid, seen, 1 / float(activity.epsilon))


def weighted_quantiles(
    values: FloatArray, weights: FloatArray, shares: tuple[float, ...]
) -> list[float]:
    order = np.argsort(values)
    below = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    return [float(value) for value in np.interp(shares, below, values[order])]


@lru_cache(maxsize=8)  # of a few MB
def _read(activity: Activity) -> Profiles:
    noisy = Noisy.of(activity)
    fits = [Fit.of(noisy, first) for first in range(_tail_start(noisy) + 1)]
    best = max(float(fit.log_weight.max()) for fit in fits)
    weights = [np.exp(fit.log_weight - best) for fit in fits]
    likely = [weight > LEAST_WEIGHT for weight in weights]
    wanted = [fit.wanted(noisy, kept) for fit, kept in zip(fits, likely, strict=True)]
    people = [
        fit.people(noisy, kept, at_marks)
        for fit, kept, at_marks in zip(fits, likely, wanted, strict=True)
    ]
    # Not of people, who match the marks only nearly.
    records = np.concatenate(wanted) @ noisy.grid.ends
    all_weights = np.concatenate([w[kept] for w, kept in zip(weights, likely, strict=True)])
    all_weights /= all_weights.sum()
    return Profiles(noisy.grid, np.concatenate(people), records, all_weights, activity)


def _matched(start: FloatArray, wanted: FloatArray, grid: Grid) -> FloatArray:
    """People at each point, as they start, multiplied until each mark has as many as wanted."""
    people = start
    for _ in range(ROUNDS):
        ratio = wanted / np.maximum(people @ grid.shares, 1e-9)
        people = people * (ratio @ grid.shares.T)
    return people


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """All parabolas through the classes from `first` on, and how likely each is at each height."""

    first: int
    curve: FloatArray  # (parabolas, points of the tail), of height 1
    by_class: FloatArray  # (parabolas, classes of the tail)
    expected: FloatArray  # (heights, parabolas, classes of the tail)
    log_weight: FloatArray  # (heights, parabolas)

    @classmethod
    def of(cls, noisy: Noisy, first: int) -> Fit:
        grid, seen, scale = noisy.grid, noisy.seen, noisy.scale
        inside, tail = first <= grid.classes, seen[first:]
        slope, bend = (one.ravel() for one in np.meshgrid(SLOPES, TRIED_BENDS, indexing="ij"))
        doublings = np.log2(grid.numbers[inside] / grid.numbers[inside][0])
        density = np.exp(slope[:, None] * doublings + bend[:, None] * doublings**2 / 2)
        curve = grid.widths[inside] * density
        by_class = curve @ grid.shares[inside, first:]
        variance = 2 * scale**2 + (MISFIT * np.maximum(tail, 0.0)) ** 2
        information = (by_class**2 / variance).sum(axis=1)
        best, spread = (by_class * tail / variance).sum(axis=1) / information, information**-0.5
        height = np.maximum(best + HEIGHTS[:, None] * spread, 1e-9)
        expected = height[:, :, None] * by_class
        reach = scale + MISFIT * expected
        log_weight = np.log(spread / np.maximum(best, spread))
        log_weight = log_weight - (np.abs(tail - expected) / reach + np.log(reach)).sum(axis=2)
        log_weight -= (np.log(-bend / BEND) / BEND_SPREAD) ** 2 / 2
        apart = scale + MISFIT * np.maximum(seen[:first], 0.0)
        log_weight -= np.sum(FREE + np.log(apart))
        return cls(first, curve, by_class, expected, log_weight)

    def wanted(self, noisy: Noisy, kept: NDArray[np.bool_]) -> FloatArray:
        """People at each mark, for the kept heights and parabolas."""
        scale, expected = noisy.scale, self.expected[kept]
        tail, ends = noisy.seen[self.first :], noisy.grid.ends
        found = np.tile(np.maximum(noisy.seen, 0.0), (len(expected), 1))
        found[:, self.first :] = expected
        more = tail - expected
        # The more records people would add who are off the curve, the less likely they are.
        times = np.maximum(more, 0.0) * ends[self.first :] / np.maximum(found @ ends, 1.0)[:, None]
        off = np.abs(more) > (OFF + DOUBT * np.log1p(times)) * scale
        unknown = (MISFIT * expected) ** 2 + WHOLE * expected + np.where(off, more, 0.0) ** 2
        found[:, self.first :] = np.maximum(expected + more * unknown / (scale**2 + unknown), 0.0)
        plain = self.first + np.flatnonzero(tail > PLAIN * scale)
        found[:, plain] = noisy.seen[plain]
        return found

    def people(self, noisy: Noisy, kept: NDArray[np.bool_], wanted: FloatArray) -> FloatArray:
        """People at each point: as the curve has them between marks, and nearly as wanted at them."""
        grid, tail = noisy.grid, noisy.seen[self.first :]
        (_, parabola), expected = np.nonzero(kept), self.expected[kept]
        inside = self.first <= grid.classes
        place = grid.classes[inside] - self.first
        island = (tail > PLAIN * noisy.scale) & (expected * ISLAND < tail)
        shape = self.curve[parabola] / np.maximum(self.by_class[parabola], 1e-300)[:, place]
        shape = np.where(island[:, place], grid.even[inside], shape)
        at_marks = np.maximum(wanted, LEAST)[:, grid.classes]
        start = grid.even * at_marks
        start[:, inside] = shape * at_marks[:, inside]
        return _matched(start, wanted, grid)


def _tail_start(noisy: Noisy) -> int:
    """The first class above which a share of at most `tail` of the people remain.

    If no class stands out, all of them are smoothed: noise in a class of people with many records would otherwise
    be taken for more records than there are.
    """
    seen = noisy.seen
    full = np.flatnonzero(seen > SEEN * noisy.scale)
    last = int(full[-1]) if len(full) else 0
    above = seen[: last + 1].sum() - np.cumsum(seen[: last + 1])
    few = int(np.argmax(above <= TAIL * max(seen[: last + 1].sum(), 1.0)))
    return min(few, max(last - 1, 0))
