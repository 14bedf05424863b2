"""The options of `htf forecast` that are about people: who stands in, and what is counted of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import click

from htf.cli.declared import option_of
from htf.cli.points import read_made_up, reading_option
from htf.cli.types import WholeNumber
from htf.errors import InputError
from htf.privacy.protection import PEOPLE, RECORDS
from htf.recipes.recipe import USUAL_SHARES, Recipe

if TYPE_CHECKING:
    from htf.forecasts.population import RecordsByActivity, RecordsEach
    from htf.forecasts.protecting import Counted, Known
    from htf.ingest.reading import Reading
    from htf.release.release import Release

F = TypeVar("F", bound=Callable[..., Any])
MOST_PEOPLE = 20_000_000
ACTIVITY = "activity"
MODEL = (
    "People are made up: homes and places are drawn from the stand-in, most of them near the home. The error depends "
    "on how close together the records of a person lie, which no release tells."
)
ASSUMED = (
    "Nothing tells how many records people have. It was assumed that half of them have up to 5 records and nine in ten "
    "up to 40. If you know better: --records-per-person."
)


def people_options(command: F) -> F:
    """A decorator: all options about people, in the order of `htf release`."""
    declared = (
        click.option(
            "--people",
            type=WholeNumber(1, MOST_PEOPLE),
            metavar="N",
            help="Roughly how many people you have. Epsilon then protects people, not single records. With --per: how "
            "many person-days, person-weeks or person-months.",
        ),
        click.option(
            "--records-per-person",
            metavar="SHARE:RECORDS,…",
            help="How many records people have: 0.5:5,0.9:40 if half of them have up to 5 and nine in ten up to 40. Or "
            "one number for all.",
        ),
        reading_option(
            "count",
            help="What to count of people; see `htf release`.  [default: records with --max-records, else as in the "
            "release, else split people]",
        ),
        reading_option("per"),
        reading_option("max_records"),
        option_of(
            Recipe,
            "spend",
            metavar="activity=SHARE",
            help=f"With --max-records: share of epsilon that measures how many records people have.  [default: {USUAL_SHARES[ACTIVITY]}, "
            "or that of the release]",
        ),
        option_of(
            Recipe,
            "most_records",
            help="As in htf release. With --like, that of the release.",
        ),
    )
    for decorate in reversed(declared):
        command = decorate(command)
    return command


@dataclass(frozen=True, kw_only=True)
class PeopleOptions:
    """What the command line says about people."""

    people: int | None
    records_per_person: str | None
    count: str | None
    per: str | None
    max_records: str | None
    spend: tuple[str, ...]
    most_records: int

    @property
    def given(self) -> list[str]:
        """The options that were given, as they are written."""
        words = ("people", "records_per_person", "count", "per", "max_records", "spend")
        return [
            f"--{word.replace('_', '-')}" for word in words if getattr(self, word) not in (None, ())
        ]

    @property
    def share(self) -> str | None:
        """The share of epsilon for the activity, if it was given."""
        from htf.recipes.quote import read_spend

        return read_spend(self.spend, (ACTIVITY,)).get(ACTIVITY)


@dataclass(frozen=True)
class Crowd:
    """The people to simulate, and what is counted of them."""

    people: int
    records: RecordsEach | RecordsByActivity
    counted: Counted
    notes: tuple[str, ...]


def read_crowd(options: PeopleOptions, release: Release | None) -> Crowd | None:
    """The people, by the options and by the release that stands in; None if single records are protected."""
    from htf.estimation.activity import MOST_KEPT
    from htf.forecasts.protecting import Known

    known = None if release is None else Known.of(release, MOST_KEPT)
    if known is None and not options.given:
        return None
    counted = _read_counted(options, known)
    if known is not None and known.counted.per != counted.per:
        known = None  # its people and their records are those of other periods
    people = options.people or (known.people if known is not None else None)
    if people is None:
        what = f"{options.given[0]} is" if options.given else "the release is"
        raise InputError(
            f"{what} about {_whom(counted)}: say roughly how many there are, with --people N, and how many records they "
            "have, with --records-per-person"
        )
    return _make_crowd(options, known, counted, people)


def _make_crowd(
    options: PeopleOptions, known: Known | None, counted: Counted, people: int
) -> Crowd:
    from htf.forecasts import population

    if options.records_per_person is not None:
        each = population.RecordsEach.read(options.records_per_person)
        return Crowd(people, each, counted, (MODEL,))
    if known is not None and known.records is not None:
        return Crowd(people, known.records, counted, (MODEL,))
    if counted.count == RECORDS:
        raise InputError(
            f"to forecast counts of records of {_whom(counted)}, say how many records each has: --records-per-person "
            "0.5:5,0.9:40 if half of them have up to 5 and nine in ten up to 40, or one number for all"
        )
    return Crowd(people, population.ASSUMED, counted, (MODEL, ASSUMED))


def _read_counted(options: PeopleOptions, known: Known | None) -> Counted:
    from htf.estimation.activity import MOST_KEPT
    from htf.forecasts.protecting import Counted
    from htf.recipes.quote import OFFERS

    like = None if known is None else known.counted
    per = options.per or (None if like is None else like.per)
    once_per = None if like is None else like.once_per
    asked = read_made_up(options.count, per, options.max_records)
    if like is not None and asked.max_records is None and options.count in (None, like.count):
        if like.count == PEOPLE:
            _check_no_activity(options, asked)
            return replace(like, per=per, activity=Fraction(0))
        share = like.activity if options.share is None else OFFERS[ACTIVITY].read(options.share)
        return replace(like, per=per, activity=share)
    if asked.counted == PEOPLE:
        _check_no_activity(options, asked)
        return Counted(PEOPLE, per=per, once_per=once_per)
    share, finds_most = (
        OFFERS[ACTIVITY].read(options.share or USUAL_SHARES[ACTIVITY]),
        isinstance(asked.max_records, str),
    )
    if finds_most and share == 0:
        raise InputError(
            "--max-records auto follows from the activity of people: give --spend activity a share above 0"
        )
    kept = None if finds_most else asked.protection.max_records  # says what is missing
    return Counted(
        RECORDS,
        kept,
        share,
        MOST_KEPT,
        per,
        once_per,
        most_records=options.most_records,
    )


def _check_no_activity(options: PeopleOptions, reading: Reading) -> None:
    from htf.recipes.quote import no_activity

    if options.share is not None:
        raise InputError(f"--spend activity={options.share}: {no_activity(reading)}")


def _whom(counted: Counted) -> str:
    return "people" if counted.per is None else f"person-{counted.per}s"
