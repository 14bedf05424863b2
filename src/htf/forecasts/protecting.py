"""Simulated releases of people: what is counted of them, and the steps of `htf release` that lead to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from htf.base import arguments
from htf.curator.contributions import RecordsPerPerson, measure_activity
from htf.curator.frequency import FrequencyMatrix
from htf.errors import InputError
from htf.estimation.activity import best_max_records
from htf.estimation.worth import scale_to_all
from htf.forecasts.population import Population, RecordsByActivity
from htf.forecasts.trials import Bench, Trial, derive_seeds, seeded_noise
from htf.privacy.activity import Activity
from htf.privacy.epsilon import Epsilon
from htf.privacy.protection import (
    MOST_RECORDS_OF_A_PERSON,
    PEOPLE,
    PERSON,
    RECORDS,
    SHARES_OF_A_PERSON,
    Protection,
    price_of_bought,
    price_of_map,
)
from htf.publication import publish
from htf.recipes.quote import part_of
from htf.release.release import Release

SCALINGS = 8  # draws of the activity of people per simulated map


@dataclass(frozen=True)
class Counted:
    """What a release of people is to count.

    `max_records` is the number of records kept per person, or None if the release finds it by the activity of
    people. `activity` is the share of epsilon that measures this activity; 0 leaves counts unscaled.
    """

    count: str = PEOPLE
    max_records: int | None = None
    activity: Fraction = Fraction(0)
    most: int = MOST_RECORDS_OF_A_PERSON  # that max_records is looked for among
    per: str | None = None
    once_per: str | None = None
    elsewhere: Fraction = Fraction(
        0
    )  # the share of epsilon that neither the activity nor the map gets
    most_records: int = MOST_RECORDS_OF_A_PERSON  # that anybody counts as having, in the activity

    def __post_init__(self) -> None:
        if self.count == RECORDS and self.max_records is None and self.activity <= 0:
            raise InputError("to find the number of records to keep, the activity must be measured")
        arguments.whole(self.most, "the largest number of records to keep", 1)
        Protection(PERSON, self.most_records)
        _ = self.protection(1)

    def protection(self, max_records: int) -> Protection:
        """What epsilon protects, where so many records are kept."""
        if self.count == PEOPLE:
            person = Protection(PERSON, once_per=self.once_per, per=self.per)
            return replace(person, count=PEOPLE, shares=SHARES_OF_A_PERSON)
        return Protection(PERSON, self.max_records or max_records, self.once_per, per=self.per)

    @property
    def quantity(self) -> str:
        """What counts are numbers of, in the plural."""
        return self.protection(1).quantity

    def told(self, kept: Sequence[int]) -> str:
        """As `htf info` says it: `split people`, or `records, at most 20 per person, scaled`. The numbers are those that
        releases kept; if they found them with noise, they differ."""
        least, most = (self.protection(kept_by) for kept_by in (min(kept), max(kept)))
        if least == most:
            told = least.told
        else:
            told = most.told.replace("at most", f"at most {least.max_records:,} to", 1)
        return told + (", scaled" if self.activity else "")


@dataclass(frozen=True)
class Known:
    """What an earlier release of people says. None where it does not tell."""

    counted: Counted
    people: int | None = None
    records: RecordsByActivity | None = None

    @classmethod
    def of(cls, release: Release, most: int = MOST_RECORDS_OF_A_PERSON) -> Known | None:
        """None for a release that protects single records."""
        unit, activity = release.protection, release.activity
        if unit.unit != PERSON:
            return None
        other = price_of_bought(*(one for one in release.bought if one is not activity))
        elsewhere = Fraction(other.units, release.epsilon.units)
        plain = Counted(RECORDS, unit.max_records, per=unit.per, once_per=unit.once_per)
        plain = replace(plain, most=most, elsewhere=elsewhere)
        if unit.count == PEOPLE:
            people = max(round(float(release.estimates.sum())), 1)
            return cls(replace(plain, count=PEOPLE, max_records=None), people)
        if activity is None:
            return cls(plain)
        share = Fraction(activity.epsilon.units, release.epsilon.units)
        kept = None if activity.decides else unit.max_records
        counted = replace(plain, max_records=kept, activity=share)
        counted = replace(counted, most_records=activity.ends[-1])
        records = RecordsByActivity(activity)
        return cls(counted, max(records.people, 1), records)


@dataclass(frozen=True, eq=False)
class Made:
    """A simulated release, and the exact counts that it measured.

    Where counts are scaled by the activity of people, all of them share one error, that of the total. It is drawn once
    per release, so a few releases say little about it. Other draws of the activity are cheap. `scalings` says by how
    much each of them would multiply the published counts; the first is that of the release, 1.
    """

    release: Release
    measured: FrequencyMatrix
    scalings: tuple[float, ...] = (1.0,)


def release_people(bench: Bench, trial: Trial, counted: Counted) -> Made:
    """The steps of `htf release`, with seeded noise, on a population."""
    population = arguments.instance(trial.data_set, Population, "the data set of people")
    total, noise = Epsilon.of(trial.epsilon), seeded_noise(bench, trial)
    epsilon = total - part_of(total, counted.elsewhere)
    if counted.count == PEOPLE:
        matrix = population.shared(counted.protection(1))
        return Made(publish(matrix, epsilon, trial.spec.make(), noise=noise), matrix)
    activity: Activity | None = None
    most = counted.max_records
    people = RecordsPerPerson.from_records(population.records_each, counted.most_records)
    part = part_of(total, counted.activity)
    if counted.activity > 0:
        other = seeded_noise(bench, trial, "activity")
        activity = measure_activity(people, part, noise=other, per=counted.per)
        if most is None:
            most = best_max_records(activity, price_of_map(epsilon, activity), counted.most)
    chance = np.random.default_rng(derive_seeds(bench.seed, "kept", trial.run))
    matrix = population.kept(counted.protection(most or 1), chance)
    bought = () if activity is None else (activity,)
    made = publish(matrix, epsilon, trial.spec.make(), noise=noise, bought=bought)
    if activity is None:
        return Made(made, matrix)
    kept, others = made.estimates / made.factor, []
    for number in range(1, SCALINGS):
        other = seeded_noise(bench, trial, f"activity {number}")
        again = measure_activity(people, part, noise=other, per=counted.per)
        others.append(scale_to_all(kept, made.scales, made.protection, again) / made.factor)
    return Made(made, matrix, (1.0, *others))
