"""Made-up people with records at the places of a stand-in, and what is measured of them. For forecasts.

Two things decide how well records of people can be released: how many records people have, and how close together
the records of one person lie. The first is given, as quantiles or by the activity of an earlier release. The second
is a simple model, the same for every data set:

- A person has a home, drawn like any record.
- A record is at a place where the person was before, or at a new place. Of n records about n**0.9 are at new places.
  The others repeat an earlier record of that person, so that a few places get most of the visits.
- A new place is drawn from the records of a square that holds the home: the whole map, one of its quarters, one of
  their quarters, and so on, down to squares of 1/256 of the map's side.

- People with homes in the same square tend to have similar numbers of records.

But for the last of these, the expected map is that of the stand-in, whatever the squares are: homes and new places
are drawn from all its records. The constants are between what was found for check-ins in a city, check-ins in a country and
shared bicycles. docs/measurements.md says how forecasts compare with real releases of these three.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist

import numpy as np

from htf.base import numerals
from htf.curator.frequency import FrequencyMatrix
from htf.errors import InputError
from htf.estimation.activity import read_profiles
from htf.forecasts.places import SEED, DataSet, load_once, zone_middles
from htf.frame.domain import FloatArray, IntArray
from htf.privacy.activity import Activity
from htf.privacy.protection import MOST_RECORDS_OF_A_PERSON

NEW_PLACES = 0.9  # the power of the number of records that tells the number of new places
LEVELS = 9  # squares around a home: the map, and 8 halvings of its sides
WHOLE_MAP = 0.25  # of new places are drawn from all of it; the rest from all other squares alike
LIKE_NEIGHBOURS = 0.015  # of the variance of ranks by number of records, for each level of squares
DEPTH = 15  # halvings of each side that the order of places knows
LEAST_PLACES, MOST_PLACES = 1_000_000, 10_000_000
MOST_RECORDS = 50_000_000  # of a population


def places_wanted(records: int) -> int:
    """How many records of a stand-in places are drawn from, if it makes them up: enough to tell them apart."""
    return min(max(records, LEAST_PLACES), MOST_PLACES)


@dataclass(frozen=True)
class RecordsEach:
    """How many records people have: quantiles, such as half of them up to 5 and nine in ten up to 40.

    Between two quantiles, and above the last, the logarithm of the number follows a normal distribution; below the
    first it rises evenly from 1.
    """

    shares: tuple[float, ...]
    numbers: tuple[int, ...]

    @classmethod
    def alike(cls, number: int) -> RecordsEach:
        return cls((1.0,), (number,))

    @classmethod
    def read(cls, text: str) -> RecordsEach:
        """`20`, or `0.5:5,0.9:40,1:1794`."""
        try:
            if ":" not in text:
                return cls.alike(numerals.whole(text))
            pairs = [part.split(":") for part in text.split(",")]
            shares = tuple(numerals.decimal(share) for share, _ in pairs)
            numbers = tuple(numerals.whole(number) for _, number in pairs)
        except ValueError:
            raise InputError(
                "--records-per-person takes quantiles SHARE:RECORDS, as in 0.5:5,0.9:40,1:1794, or one number for "
                f"all, got {numerals.shown(text)}"
            ) from None
        return cls(shares, numbers)

    def __post_init__(self) -> None:
        told = ",".join(f"{s:g}:{n}" for s, n in zip(self.shares, self.numbers, strict=True))
        within = (1 <= number <= MOST_RECORDS_OF_A_PERSON for number in self.numbers)
        wrong = {
            "shares of people are above 0 and at most 1": not all(0 < s <= 1 for s in self.shares),
            f"records per person are between 1 and {MOST_RECORDS_OF_A_PERSON:,}": not all(within),
            "shares of people must rise from one quantile to the next": any(
                low >= high for low, high in pairwise(self.shares)
            ),
            "records per person must not fall where the share rises": any(
                low > high for low, high in pairwise(self.numbers)
            ),
            "one quantile does not tell how many records the other people have: add a second one": (
                len(self.shares) == 1 and self.shares[0] < 1
            ),
        }
        for words, is_so in wrong.items():
            if is_so:
                raise InputError(f"{words}, got {told}")

    def of_people(self, people: int, generator: np.random.Generator) -> IntArray:
        """The number of records of each, drawn at random, in rising order."""
        if len(self.shares) == 1:
            return np.full(people, self.numbers[0], dtype=np.int64)
        ends = np.array(self.shares)
        # Numbers are rounded at the end: half of the people have less than 5.5 records, which are up to 5.
        where = _deviations(np.minimum(ends, 1 - 0.5 / people))
        logs = np.log(np.array(self.numbers) + 0.5)
        share = np.sort(generator.random(people))
        found = np.interp(at := _deviations(share), where, logs)
        above = (at > where[-1]) & (ends[-1] < 1)
        slope = (logs[-1] - logs[-2]) / max(where[-1] - where[-2], 1e-9)
        found[above] += slope * (at[above] - where[-1])
        below = share < ends[0]
        found[below] = logs[0] * share[below] / ends[0]
        most = self.numbers[-1] if ends[-1] == 1 else MOST_RECORDS_OF_A_PERSON
        whole = np.clip(np.rint(np.exp(np.minimum(found, np.log(most + 1)))), 1, most)
        return np.asarray(whole, dtype=np.int64)


# Where people are counted, and nothing is known of their records.
ASSUMED = RecordsEach((0.5, 0.9), (5, 40))


@dataclass(frozen=True)
class RecordsByActivity:
    """How many records people have, by the noisy activity of a release."""

    activity: Activity

    @property
    def people(self) -> int:
        return round(float(read_profiles(self.activity).mean.sum()))

    def of_people(self, people: int, generator: np.random.Generator) -> IntArray:
        """The number of records of each, drawn at random, in rising order.

        Several profiles fit the noisy activity. The one with the median number of records is taken. Drawing one of them
        by its probability would add the noise of the activity twice, because a simulated release measures it again.
        """
        profiles = read_profiles(self.activity)
        numbers = profiles.grid.numbers
        records = profiles.people @ numbers
        order = np.argsort(records)
        middle = np.searchsorted(np.cumsum(profiles.weights[order]), 0.5)
        profile = profiles.people[order[min(int(middle), len(order) - 1)]]
        if profile.sum() < 1:
            raise InputError(
                "the activity of the release says that there is nobody: give --people N and --records-per-person"
            )
        up_to = np.cumsum(profile) / profile.sum()
        at = np.searchsorted(up_to, np.sort(generator.random(people)))
        return np.rint(numbers[np.minimum(at, len(numbers) - 1)]).astype(np.int64)


@dataclass(frozen=True)
class Crowd:
    """How many people are made up, and how many records they have."""

    people: int
    records: RecordsEach | RecordsByActivity

    def each(self, draw: int) -> IntArray:
        """The number of records of each person, in rising order."""
        each = self.records.of_people(self.people, np.random.default_rng([SEED, draw, 1]))
        if each.sum() > MOST_RECORDS:
            raise InputError(
                f"{self.people:,} people with {each.sum() / self.people:.3g} records each are {each.sum():,} records, "
                f"and a forecast is for at most {MOST_RECORDS:,}: give fewer people or records"
            )
        return each


@dataclass(frozen=True, eq=False)
class Places:
    """The cells of a stand-in, along a curve on which every square of every level is one stretch."""

    coordinates: IntArray
    keys: IntArray  # in rising order
    ends: IntArray  # records up to each cell, with it

    @classmethod
    def of(cls, matrix: FrequencyMatrix) -> Places:
        keys = _interleave(_along_squares(matrix))
        order = np.argsort(keys, kind="stable")
        ends = np.cumsum(matrix.exact_counts[order])
        return cls(matrix.exact_coordinates[:, order].astype(np.int64), keys[order], ends)

    def draw_near(
        self, homes: IntArray, levels: IntArray, generator: np.random.Generator
    ) -> IntArray:
        """Cells of records, each drawn from the square of that level that holds the home."""
        bits = 2 * (DEPTH - levels)
        low = self.keys[homes] >> bits << bits
        starts = np.concatenate([[0], self.ends])
        first = starts[np.searchsorted(self.keys, low)]
        end = starts[np.searchsorted(self.keys, low + (1 << bits))]
        drawn = first + (generator.random(len(homes)) * (end - first)).astype(np.int64)
        return self.at(np.minimum(drawn, end - 1))

    def at(self, record: IntArray) -> IntArray:
        """The cell of each record, which are numbered along the curve."""
        return np.asarray(np.searchsorted(self.ends, record, side="right"))


@lru_cache(maxsize=1)
def _places(stand_in: DataSet) -> Places:
    return Places.of(load_once(stand_in))


def locate(stand_in: DataSet, each: IntArray, draw: int) -> IntArray:
    """Where the records of each person are: their cells on the map of the stand-in, one line for each axis."""
    generator = np.random.default_rng([SEED, draw])
    places = _places(stand_in)
    person = np.repeat(np.arange(len(each)), each)
    homes = places.at(generator.integers(0, places.ends[-1], len(each)))
    homes = homes[np.argsort(_busyness(places.keys[homes], generator))]
    first = visits(each, generator)
    fresh = np.flatnonzero(first == np.arange(len(person)))
    levels = _levels(len(fresh), generator)
    cell = np.empty(len(person), dtype=np.int64)
    cell[fresh] = places.draw_near(homes[person[fresh]], levels, generator)
    return places.coordinates[:, cell[first]]


def visits(each: IntArray, generator: np.random.Generator) -> IntArray:
    """For each record, person by person: the record that was the first at its place."""
    number, rank = int(each.sum()), ranks(each)
    index = np.arange(number)
    new = NEW_PLACES * np.maximum(rank, 1.0) ** (NEW_PLACES - 1)
    back = (rank > 0) & (generator.random(number) >= new)
    earlier = (generator.random(number) * rank).astype(np.int64)
    first = np.where(back, index - rank + earlier, index)
    while np.any((further := first[first]) != first):
        first = further
    return np.asarray(first)


def _busyness(homes: IntArray, generator: np.random.Generator) -> FloatArray:
    """By which people are ranked: those with homes in the same square tend to have similar numbers of records."""
    found = np.sqrt(1 - LIKE_NEIGHBOURS * (LEVELS - 1)) * generator.normal(size=len(homes))
    for level in range(1, LEVELS):
        squares, of_square = np.unique(homes >> 2 * (DEPTH - level), return_inverse=True)
        found += np.sqrt(LIKE_NEIGHBOURS) * generator.normal(size=len(squares))[of_square]
    return np.asarray(found)


def _levels(number: int, generator: np.random.Generator) -> IntArray:
    chances = np.full(LEVELS, (1 - WHOLE_MAP) / (LEVELS - 1))
    chances[0] = WHOLE_MAP
    return np.asarray(generator.choice(LEVELS, number, p=chances))


def _along_squares(matrix: FrequencyMatrix) -> IntArray:
    """Where each cell is, from 0 to 2**DEPTH along both axes of the ground. Zones are where their middles are."""
    domain, cells = matrix.domain, matrix.exact_coordinates.astype(np.int64)
    if not domain.outlined:
        shape = np.array(domain.shape[:2])[:, None]
        return np.asarray((cells[:2] * 2**DEPTH) // shape)
    number = domain.outlined[0]
    places = zone_middles(domain.axes[number])
    low = places.min(axis=1, keepdims=True)
    wide = np.maximum(np.ptp(places, axis=1, keepdims=True), 1e-300)
    return np.asarray((places - low) / wide * (2**DEPTH - 1), dtype=np.int64)[:, cells[number]]


def _interleave(rows: IntArray) -> IntArray:
    """Keys of a Z-curve, of one or two rows of whole numbers below 2**DEPTH."""
    rows = rows if len(rows) == 2 else np.vstack([rows, np.zeros_like(rows)])
    keys = np.zeros(rows.shape[1], dtype=np.int64)
    for bit in range(DEPTH):
        keys |= (rows[0] >> bit & 1) << 2 * bit | (rows[1] >> bit & 1) << 2 * bit + 1
    return keys


def _deviations(shares: Sequence[float] | FloatArray) -> FloatArray:
    """How many standard deviations from the mean a normal distribution reaches these shares."""
    law, known = NormalDist(), np.asarray(shares)
    steps = np.linspace(-7, 7, 2801)
    return np.asarray(np.interp(known, [law.cdf(step) for step in steps], steps))


def ranks(each: IntArray) -> IntArray:
    """0, 1, … for each of so many groups."""
    starts = np.cumsum(each) - each
    return np.asarray(np.arange(int(each.sum())) - np.repeat(starts, each))
