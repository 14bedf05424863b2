"""`htf release`: from the data to a private release. For the curator, who has the data."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from htf.base.options import AUTO, USUAL_MOST_RECORDS, option
from htf.cli import streams
from htf.cli.charging import (
    check_charge,
    notes_charges,
    old_budget_option,
    open_budget,
    read_old_budget,
    report_charge,
)
from htf.cli.declared import options_of, take
from htf.cli.distinct import DistinctOptions, DistinctPlan, plan_distinct
from htf.cli.meaning import say_meaning
from htf.cli.options import read_settings
from htf.cli.points import Points, points_options, read_points_options
from htf.cli.priors import say_trust
from htf.cli.screen import progress_bar, say, warn_if_not_private
from htf.cli.types import WholeNumber
from htf.cli.weights import WeightOptions, price_of_clipped
from htf.errors import BudgetError, InputError, OutputError
from htf.files import SPARE, check_output, spare_folders

if TYPE_CHECKING:
    from htf.curator.contributions import RecordsPerPerson
    from htf.curator.frequency import FrequencyMatrix
    from htf.curator.noise import NoiseSource
    from htf.estimation.prior import Prior
    from htf.frame.domain import Domain
    from htf.ingest.reading import Reading
    from htf.mechanisms.base import Mechanism
    from htf.privacy.activity import Activity
    from htf.privacy.budget import BudgetFile
    from htf.privacy.clipping import Clipped
    from htf.privacy.distinct import DistinctCounts
    from htf.privacy.epsilon import Epsilon
    from htf.privacy.protection import Protection, Suggestion
    from htf.release.release import Release

    Priors = tuple[Prior, ...]


ZONES_SHARE = (
    "0.2"  # of epsilon, where a map is inside of zones; docs/zones.md has what was measured
)
NOT_TRIED = (
    "Not tried: whether numbers and times can be read, and whether places are inside the bounds. --try-rows reads the first "
    "1,000 rows for that, for your eyes only."
)
ACTIVITY_SHARE = "0.1"  # of epsilon, for the activity of people
SEEN = 6.0  # scales of noise: a class with more people is not empty
FEWEST_PEOPLE = 2000  # for counts of records; docs/people.md has what was measured


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseOptions:
    """The options of `htf release` that do not describe the points."""

    epsilon: str = field(metadata=option("Privacy budget of the release."))
    suggest_max_records: str | None = field(
        default=None,
        metadata=option(
            "Find K with noise, for this part of epsilon. It stays spent even if you stop afterwards.",
            "EPSILON",
        ),
    )
    activity: str | None = field(
        default=None,
        metadata=option(
            "With --max-records: share of epsilon that measures how many records people have, so that counts are of "
            f"all records and not only of those kept. 0: count kept records, as is always so with --weight.  [default: {ACTIVITY_SHARE}]",
            "SHARE",
        ),
    )
    records_range: int = field(
        default=1000,
        metadata=option("Look for K between 1 and N. Choose N without looking at the data.", "N"),
    )
    most_records: int = field(
        default=USUAL_MOST_RECORDS,
        metadata=option(
            "With --activity: someone with more than N records counts as having N, in totals too. Choose N without looking "
            "at the data, and no larger than needed: intervals allow for a few such people whom noise may hide.",
            "N",
        ),
    )
    quantile: str = field(
        default="0.9",
        metadata=option("Find the K at which this share of people lose no record.", "Q"),
    )
    mechanism: str | None = field(
        default=None,
        metadata=option(
            "See `htf mechanisms`.  [default: htf; zones where the first axis has named cells]"
        ),
    )
    settings: tuple[str, ...] = field(
        default=(), metadata=option("Set a parameter of the mechanism.", "NAME=VALUE", flag="--set")
    )
    zones_share: str | None = field(
        default=None,
        metadata=option(
            f"For a map inside zones: share of epsilon that counts the zones.  [default: {ZONES_SHARE}]",
            "SHARE",
        ),
    )
    priors: tuple[str, ...] = field(
        default=(),
        metadata=option(
            "Public weights, points or release. Never these points. May be given several times.",
            "FILE",
            flag="--prior",
        ),
    )
    noise: str = field(
        default="opendp",
        metadata=option(
            "Source of noise. seeded is for tests and not private.", "opendp|fast|seeded:N"
        ),
    )
    budget: Path | None = field(
        default=None, metadata=option("Budget file to charge; see `htf budget`.", "FILE")
    )
    dataset: str | None = field(
        default=None, metadata=option("Name of the data in the budget file.", "NAME")
    )
    output: Path = field(
        metadata=option(
            "Release to write: .parquet, .geoparquet or .pq.", "FILE", flag="-o --output"
        )
    )
    overwrite: bool = field(
        default=False,
        metadata=option(
            "Replace the output if it exists. Never replaces a release that was charged to a budget."
        ),
    )


@dataclass(frozen=True, slots=True)
class Asking:
    """Whether the curator sees before a charge what it buys, and may stop."""

    dry_run: bool = False
    yes: bool = True
    points: int | None = None
    try_rows: bool = False

    @classmethod
    def of(cls, given: dict[str, Any]) -> Asking:
        if given["try_rows"] and not given["dry_run"]:
            raise InputError("--try-rows goes with --dry-run")
        return cls(given["dry_run"], given["yes"], given["points_about"], given["try_rows"])


def asking_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of a command that charges."""
    points = click.option(
        "--points-about",
        type=WholeNumber(1, 50_000_000),
        metavar="N",
        help="Roughly how many records you have, for the error that is simulated.",
    )
    yes = click.option("--yes", is_flag=True, help="Do not ask before a charge at a terminal.")
    dry_run = click.option(
        "--dry-run",
        is_flag=True,
        help="Say what would be spent and what error to expect. Counts no record, charges nothing, makes no release.",
    )
    try_rows = click.option(
        "--try-rows",
        is_flag=True,
        help="In a dry run, also try to read the first 1,000 rows. What it says is for your eyes only.",
    )
    return dry_run(try_rows(yes(points(command))))


@click.command()
@points_options
@options_of(ReleaseOptions)
@options_of(DistinctOptions)
@options_of(WeightOptions)
@asking_options
@old_budget_option
@notes_charges
def release(points: str, ledger: Path | None, **given: Any) -> None:
    """Publish points as a differentially private map.

    POINTS is a CSV (plain, .gz or .zst) or Parquet file, or a folder or quoted pattern of such files; a GeoPackage,
    GeoJSON, shapefile or zip file; or, with --table or --sql, a DuckDB or SQLite file, or
    postgresql://USER@HOST/DATABASE.

    Points are left out if they lie outside the bounds or on their upper edges, or in none of the --zones, or if they
    are missing, NaN or infinite. How many rows could not be read, and why, appears on your screen only, never in the
    release. It is an error if no point is inside; nothing is charged then.
    """

    options = ReleaseOptions(**take(ReleaseOptions, given))
    read = as_asked(read_points_options(points, given), options)
    options = replace(options, budget=read_old_budget(options.budget, ledger))
    run_plan(_make_plan(read, options), options, given, asking=Asking.of(given))


def run_plan(
    plan: Plan,
    options: ReleaseOptions,
    given: dict[str, Any],
    earlier: Priors = (),
    asking: Asking | None = None,
) -> Release | None:
    """Check, read, charge, publish and write. `earlier` are priors beside those of the options. None after a dry run."""
    read = plan.points
    _check_output(plan, options)
    _check_lists(plan.points)
    plan.mechanism.check_priors([*earlier, *options.priors])
    plan = _with_prices(plan, options, given)
    unit = _check_people(plan, options)
    _tell_what_counts(plan, unit)
    if plan.budget is not None:
        check_charge(
            plan.budget, plan.epsilon, plan.mechanism, plan.noise, unit, read.reading.told_apart
        )
    priors = (*earlier, *_read_priors(options.priors, read))
    _rehearse(plan, unit, priors, options)
    if asking is not None and not _goes_on(plan, unit, options, asking):
        return None
    suggestion = None if options.suggest_max_records is None else _suggest(plan, options)
    if suggestion is not None:
        plan = plan.keeping(_settle(suggestion))
        _rehearse(plan, plan.points.reading.protection, priors, options)
    # If the number of records to keep is known, reading may fail before the activity is charged.
    known = plan.points.reading.max_records != AUTO
    matrix = _read_matrix(plan) if known else None
    activity = None
    if (share := _share_for_activity(plan.points.reading, options)) > 0:
        activity = _measure_activity(plan, share)
    if activity is not None and not known:
        plan = plan.keeping(_best(plan, activity, priors, options))
        activity = replace(activity, decides=True)
    matrix = _read_matrix(plan) if matrix is None else matrix
    around = None if plan.points.zones is None else _read_matrix(plan, plan.points.zones)
    distinct = None if plan.distinct is None else _measure_distinct(plan, plan.distinct)
    clipped = None if plan.clipped is None else _measure_clipped(plan, matrix, plan.clipped)
    bought = {
        "suggestion": suggestion,
        "activity": activity,
        "distinct": distinct,
        "clipped": clipped,
    }
    made = _make_release(plan, matrix, around, priors, bought)
    _report(plan, made)
    return made


def _with_prices(plan: Plan, options: ReleaseOptions, given: dict[str, Any]) -> Plan:
    """The plan, with what is paid for beside the map."""
    read, wanted = plan.points, DistinctOptions(**take(DistinctOptions, given))
    plan = replace(plan, distinct=plan_distinct(read, plan.epsilon, wanted))
    weights, share = (
        WeightOptions(**take(WeightOptions, given)),
        _share_for_activity(read.reading, options),
    )
    plan = replace(plan, clipped=price_of_clipped(read.reading, plan.epsilon, weights, share))
    return replace(plan, zones=_price_of_zones(plan, options))


def _goes_on(plan: Plan, unit: Protection, options: ReleaseOptions, asking: Asking) -> bool:
    """Say what a charge buys, and ask. Without a terminal nothing is said or asked, except in a dry run."""
    from htf.cli.before import say_before, say_error
    from htf.ingest.points import check_source

    at_terminal = sys.stdin.isatty() and sys.stderr.isatty()
    if not asking.dry_run and (asking.yes or plan.budget is None or not at_terminal):
        return True
    if asking.dry_run:
        check_source(plan.points.source, plan.points.domain, plan.points.reading)
        tried = _try_rows(plan.points) if asking.try_rows else NOT_TRIED
    say_before(plan.points.domain, unit, plan.epsilon, plan.budget)
    left = _left_for_map(plan, options)
    say_error(plan.points.domain, unit, left, plan.mechanism, asking.points)
    if asking.dry_run:
        say(
            f"This was a dry run: nothing was charged, and no release was made. {tried}",
            err=True,
        )
        return False
    streams.let_interrupt()
    click.confirm(f"Charge ε {plan.epsilon} and make the release?", abort=True, err=True)
    return True


def _try_rows(points: Points) -> str:
    """Refuse what most of the first rows show to be wrong. This decides nothing else."""
    from htf.ingest.check import try_rows

    wrong = try_rows(points.source, points.domain, points.reading)
    if wrong is not None:
        raise InputError(
            f"{wrong}. (This message is for your eyes: it is a fact about the data.) "
            "Nothing was charged"
        )
    return "The first rows can be read, and places are inside the bounds (for your eyes: a fact about the data)."


def _screen() -> Callable[[str], None]:
    """Shows remarks to the curator, on the screen and not in the output. Data may be read twice, but each
    remark is shown once."""
    seen: set[str] = set()

    def tell(message: str) -> None:
        if message not in seen:
            seen.add(message)
            say(message, err=True)

    return tell


@dataclass(frozen=True, slots=True)
class Plan:
    """The release to make, from checked options."""

    points: Points
    epsilon: Epsilon
    mechanism: Mechanism
    noise: NoiseSource
    output: Path
    overwrite: bool
    budget: BudgetFile | None
    distinct: DistinctPlan | None = None
    clipped: Epsilon | None = None  # the price of measuring how many records are cut
    zones: Epsilon | None = None  # the price of the zones that the map is inside of
    most_records: int = 1  # that anybody counts as having, in the activity
    label: str = ""  # of the charges
    finish: Callable[[Release], Release] | None = (
        None  # what is made of the release before it is written
    )
    remains: str = ""  # what is left of the budget is for this
    adopt: str = ""  # the command that brings in a release of a series that was saved elsewhere
    tell: Callable[[str], None] = field(default_factory=_screen)

    def keeping(self, most: int) -> Plan:
        """The same, with this many records kept per person."""
        reading = replace(self.points.reading, max_records=most)
        return replace(self, points=replace(self.points, reading=reading))


def _make_plan(points: Points, options: ReleaseOptions) -> Plan:
    from htf.curator.noise import noise_from_text
    from htf.mechanisms import make_mechanism
    from htf.privacy.epsilon import Epsilon
    from htf.publication import default_mechanism

    name = options.mechanism or default_mechanism(points.domain)
    return Plan(
        points=points,
        epsilon=Epsilon.of(options.epsilon),
        mechanism=make_mechanism(name, read_settings(options.settings)),
        noise=noise_from_text(options.noise),
        output=options.output,
        overwrite=options.overwrite,
        most_records=options.most_records,
        budget=open_budget(options.budget, options.dataset, options.output),
        label=options.output.name,
    )


def _check_output(plan: Plan, options: ReleaseOptions) -> None:
    """Check it before the data are read and anything is charged: a release that cannot be written costs
    as much as one that can."""
    from htf.ingest.prior import split_key
    from htf.release.file import check_release_name

    check_release_name(plan.output)
    source = None if "://" in plan.points.source else plan.points.source
    priors = [split_key(source)[0] for source in options.priors]
    check_output(
        plan.output,
        overwrite=plan.overwrite,
        inputs=[source, *priors, options.budget, *plan.points.lists],
        by_release=True,
        budget=plan.budget,
    )


def _check_lists(points: Points) -> None:
    """Refuse a layer of zones or a list of categories that is a file of the data: its names would be published."""
    from htf.ingest.sources import files_behind
    from htf.privacy.origins import check_not_data, mark_files

    if points.lists:
        data = mark_files(files_behind(points.source))
        for one in mark_files(points.lists):
            check_not_data(one, data, "layer or list")


def _check_people(plan: Plan, options: ReleaseOptions) -> Protection:
    """Returns what epsilon will protect. Refuses what cannot become a release."""
    from htf.curator.contributions import read_quantile
    from htf.privacy.activity import check_kept
    from htf.privacy.epsilon import Epsilon
    from htf.privacy.protection import PERSON, Protection, epsilon_per_share

    Protection(PERSON, options.most_records)
    reading, suggest = plan.points.reading, options.suggest_max_records
    epsilon, share = plan.epsilon, _share_for_activity(reading, options)
    left = _without_others(plan, epsilon - _part(epsilon, share))
    if suggest is None and reading.max_records != AUTO:
        unit = reading.protection
        epsilon_per_share(left, unit)
        check_kept(unit.max_records, options.most_records if share > 0 else None)
        return unit
    if reading.user is None:
        limit = "--suggest-max-records" if suggest is not None else f"--max-records {AUTO}"
        raise InputError(
            f"{limit} limits the records per person: name the column of people with --user"
        )
    if suggest is not None and reading.max_records is not None:
        raise InputError(
            f"give --max-records {reading.max_records}, or --suggest-max-records {suggest} to find K with noise, "
            "not both"
        )
    if suggest is not None and Epsilon.of(suggest) >= left:
        raise InputError(
            f"--suggest-max-records {suggest} is a part of --epsilon {epsilon}"
            + (f", of which {epsilon - left} is spent on other things" if left < epsilon else "")
            + ": it must be less"
        )
    if suggest is not None:
        read_quantile(options.quantile)
        left -= Epsilon.of(suggest)
    most = replace(reading, max_records=options.records_range).protection
    epsilon_per_share(left, most)  # before anything is spent
    return most


def _price_of_zones(plan: Plan, options: ReleaseOptions) -> Epsilon | None:
    """What the zones cost that the map is inside of; None if there are none."""
    from htf.base import numerals
    from htf.estimation.homogeneous import FROM_LEAVES
    from htf.privacy.epsilon import Epsilon

    if plan.points.zones is None:
        if options.zones_share is not None:
            raise InputError("--zones-share is for a map inside zones: give --zones and --bounds")
        return None
    try:
        share = numerals.fraction(options.zones_share or ZONES_SHARE)
    except ValueError:
        share = Fraction(0)
    if not 0 < share < 1:
        raise InputError(
            f"--zones-share is a share of epsilon, between 0 and 1 such as 0.2, got {options.zones_share!r}"
        )
    others = {
        "--prior": len(options.priors) > 0,
        "--suggest-max-records": options.suggest_max_records is not None,
        "--activity": _share_for_activity(plan.points.reading, options) > 0,
        "--mechanism": FROM_LEAVES not in plan.mechanism.estimators,
    }
    for name, is_given in others.items():
        if is_given:
            remedy = (
                "give --activity 0, or --count people"
                if name == "--activity"
                else f"leave out {name}"
            )
            raise InputError(
                f"a map inside zones is by the mechanism htf, and of what was counted: {remedy}"
            )
    return Epsilon(int(plan.epsilon.units * share))


def _share_for_activity(reading: Reading, options: ReleaseOptions) -> Fraction:
    """The share of epsilon that measures the activity of people; 0 where records of people are not counted."""
    from htf.privacy.protection import RECORDS

    if reading.user is None or reading.counted != RECORDS:
        check_no_activity(options.activity, has_people=reading.user is not None)
        return Fraction(0)
    if reading.weight is not None and options.activity is None:
        return Fraction(0)  # sums are of kept records
    share = read_activity(options.activity or ACTIVITY_SHARE)
    if share == 0 and reading.max_records == AUTO:
        raise InputError(
            "--max-records auto follows from the activity of people: give --activity a share above 0"
        )
    return share


def read_activity(text: str) -> Fraction:
    """The share of epsilon that --activity gives."""
    from htf.base import numerals

    try:
        share = numerals.fraction(text)
    except ValueError:
        share = Fraction(-1)
    if not 0 <= share < 1:
        raise InputError(
            f"--activity is a share of epsilon, from 0 to below 1 such as 0.1, got {text!r}"
        )
    return share


def check_no_activity(given: str | None, *, has_people: bool) -> None:
    """Refuse a share for the activity of people where it would have no effect."""
    if given is None:
        return
    if has_people:
        raise InputError(
            f"--activity is for counting records of people, and here split people are counted: leave out --activity {given}, "
            "or count records (--max-records K)"
        )
    raise InputError(
        f"--activity is for counting records of people: leave out --activity {given}, or name the column of people "
        "with --user and count records (--max-records K)"
    )


def _part(epsilon: Epsilon, share: Fraction) -> Epsilon:
    """A share of epsilon, rounded down."""
    from htf.base import numerals
    from htf.privacy.activity import LEAST_PRICE
    from htf.privacy.epsilon import Epsilon

    part = Epsilon(int(epsilon.units * share))
    if share > 0 and part < LEAST_PRICE:
        raise InputError(
            f"--activity {numerals.shown(share)} of --epsilon {epsilon} is less than {LEAST_PRICE}, the smallest: spend more, or count "
            "kept records (--activity 0)"
        )
    return part


def _tell_what_counts(plan: Plan, unit: Protection) -> None:
    """Say that split people are counted, and what they are, if nobody asked for it."""
    from htf.privacy.protection import PEOPLE, explain_people

    if unit.count == PEOPLE and plan.points.reading.count is None:
        plan.tell(
            f"Counting {unit.quantity}. {explain_people(unit.quantity)} To count records instead: --max-records K."
        )


def as_asked(points: Points, options: ReleaseOptions) -> Points:
    """The points, with what is counted spelled out: a suggestion is about records."""
    from htf.privacy.protection import PEOPLE, RECORDS

    reading = points.reading
    if options.suggest_max_records is None:
        return points
    if reading.count == PEOPLE:
        raise InputError(
            "--suggest-max-records is for counting records; split people need no limit: leave it out, or --count people"
        )
    return replace(points, reading=replace(reading, count=RECORDS))


def _rehearse(plan: Plan, unit: Protection, priors: Priors, options: ReleaseOptions) -> None:
    """Find out before the data are read what the mechanism, the noise or the installation would refuse
    whatever the data hold.

    Before it is found with noise, the limit per person is unknown. It may be 1.
    """
    from htf.curator.curator import rehearse
    from htf.curator.noise_check import check_noise
    from htf.curator.rehearsal import load_loops
    from htf.mechanisms import make_mechanism
    from htf.publication import default_mechanism
    from htf.release.inside_zones import check_size

    check_noise(plan.noise)
    load_loops()
    if plan.points.reading.max_records in (None, AUTO):
        unit = replace(unit, max_records=1)
    rehearse(plan.mechanism, plan.points.domain, _left_for_map(plan, options), unit, priors)
    if plan.points.zones is not None and plan.zones is not None:
        check_size(plan.points.domain)
        zones = plan.points.zones
        rehearse(make_mechanism(default_mechanism(zones)), zones, plan.zones, unit)


def _left_for_map(plan: Plan, options: ReleaseOptions) -> Epsilon:
    """What remains once everything that is measured before the map is paid for."""
    from htf.privacy.epsilon import Epsilon

    share = _share_for_activity(plan.points.reading, options)
    left = _without_others(plan, plan.epsilon - _part(plan.epsilon, share))
    suggest = options.suggest_max_records
    return left if suggest is None else left - Epsilon.of(suggest)


def _without_others(plan: Plan, epsilon: Epsilon) -> Epsilon:
    """Epsilon without the prices of a table of different people, of cut records, and of zones around the map."""
    for price in (None if plan.distinct is None else plan.distinct.price, plan.clipped, plan.zones):
        if price is not None and price >= epsilon:
            raise InputError(
                "--activity, --distinct-share, --clipped and --zones-share are shares of epsilon: together they leave "
                "nothing for the map"
            )
        epsilon = epsilon if price is None else epsilon - price
    return epsilon


def _measure_clipped(plan: Plan, matrix: FrequencyMatrix, price: Epsilon) -> Clipped:
    from htf.curator.clipping import measure_clipped

    return measure_clipped(matrix, price, noise=plan.noise, budget=plan.budget, label=plan.label)


def _measure_distinct(plan: Plan, wanted: DistinctPlan) -> DistinctCounts:
    points = plan.points
    with reading_bar(points.name) as progress:
        found = wanted.measure(points, plan.noise, plan.budget, plan.label, progress, plan.tell)
    with _even_if_unseen():
        how = "found with noise" if found.decides else "as given"
        say(
            f"Counting {found.quantity} in {found.grid[0]} x {found.grid[1]} boxes, each person in at most "
            f"{found.max_boxes} ({how}), for epsilon {found.epsilon}."
        )
    return found


def _read_people(plan: Plan, most: int) -> RecordsPerPerson:
    from htf.curator.contributions import RecordsPerPerson
    from htf.ingest.points import read_records_per_person

    points = plan.points
    with reading_bar(points.name) as progress:
        people = read_records_per_person(
            points.source, points.domain, points.reading, most, progress=progress, tell=plan.tell
        )
    return RecordsPerPerson(people, points.reading.told_apart)


def _suggest(plan: Plan, options: ReleaseOptions) -> Suggestion:
    from htf.curator.contributions import suggest_max_records

    return suggest_max_records(
        _read_people(plan, options.records_range),
        str(options.suggest_max_records),
        quantile=options.quantile,
        noise=plan.noise,
        budget=plan.budget,
        label=plan.label,
        per=plan.points.reading.per,
    )


def _measure_activity(plan: Plan, share: Fraction) -> Activity:
    from htf.curator.contributions import measure_activity

    most = plan.most_records
    activity = measure_activity(
        _read_people(plan, most),
        _part(plan.epsilon, share),
        noise=plan.noise,
        budget=plan.budget,
        label=plan.label,
        per=plan.points.reading.per,
    )
    if sum(activity.counted) < FEWEST_PEOPLE:
        plan.tell(
            f"By the noisy activity there are fewer than about {FEWEST_PEOPLE:,} people. The total of their records is "
            "then very uncertain, and intervals may be too narrow: prefer counting split people (--count people)."
        )
    noise = 1 / float(activity.epsilon)
    if activity.counted[-1] > SEEN * noise:
        plan.tell(
            f"By the noisy activity, people have more than {activity.ends[-2]:,} records. Whoever has more than {most:,} "
            "counts as having that many, so totals may be too low: choose a larger --most-records next time."
        )
    with _even_if_unseen():
        say(
            f"Up to about {3 * noise:,.0f} people with up to {most:,} records each cannot be told from none at this epsilon. "
            "Intervals allow for them, so they reach further up than down (--most-records)."
        )
    return activity


def _best(plan: Plan, activity: Activity, priors: Priors, options: ReleaseOptions) -> int:
    """The number of records to keep per person: it follows from the noisy activity, so it costs nothing more.

    The mechanism may refuse what that leaves for each record. It takes what fewer leave: one was rehearsed.
    """
    from htf.estimation.activity import best_max_records

    most = best_max_records(activity, _left_for_map(plan, options), options.records_range)
    while most > 1 and not _is_accepted(plan.keeping(most), priors, options):
        most //= 2
    with _even_if_unseen():
        records = "record" if most == 1 else "records"
        say(
            f"Keeping at most {most:,} {records} per person: by the noisy activity of people (epsilon "
            f"{activity.epsilon}), this number has the least expected error."
        )
    return most


def _is_accepted(plan: Plan, priors: Priors, options: ReleaseOptions) -> bool:
    try:
        _rehearse(plan, plan.points.reading.protection, priors, options)
    except (BudgetError, InputError):
        return False
    return True


def _report(plan: Plan, made: Release) -> None:
    with _even_if_unseen():
        say(
            f"Wrote {plan.output}: {len(made):,} leaves{_of_zones(made)} by {made.mechanism}, epsilon {made.epsilon} "
            f"for {made.protection.spoken}."
        )
        say_trust(made)
        report_charge(plan.budget, made, plan.remains)
        if made.private:
            say_meaning(made.epsilon, made.protection, briefly=True)
        warn_if_not_private(made)


def _of_zones(made: Release) -> str:
    """How many zones there are, if there are any."""
    if made.zones is not None:
        return f" inside {made.zones.domain.size:,} zones"
    numbers = [f"{made.domain.shape[axis]:,}" for axis in made.domain.zoned]
    return f" over {' x '.join(numbers)} zones" if numbers else ""


@contextmanager
def _even_if_unseen() -> Iterator[None]:
    """A release that was paid for does not fail because its messages cannot be written."""
    try:
        yield
    except (OSError, OutputError) as error:
        streams.give_up()
        reason = error.strerror if isinstance(error, OSError) else error
        say(f"Note: some messages could not be shown ({reason}).", err=True)


def _settle(suggestion: Suggestion) -> int:
    """The curator may choose another number: a choice based on the noisy one costs nothing."""
    from htf.privacy.protection import MOST_RECORDS_OF_A_PERSON

    with _even_if_unseen():
        say(
            f"About {float(suggestion.quantile):.0%} of people have at most {suggestion.max_records} records "
            f"here (found with noise, for epsilon {suggestion.epsilon})."
        )
    if not sys.stdin.isatty():
        return suggestion.max_records
    streams.let_interrupt()
    return int(
        click.prompt(
            "Keep how many records per person, at most?",
            default=suggestion.max_records,
            type=WholeNumber(1, MOST_RECORDS_OF_A_PERSON),
        )
    )


def _read_priors(sources: tuple[str, ...], points: Points) -> Priors:
    """Read them before the data, so that their mistakes show before any budget is spent. Compare them with the
    files of the data here too, because reading all of them takes long."""
    from htf.estimation.prior import all_priors
    from htf.ingest.prior import LON_LAT, read_prior
    from htf.ingest.sources import files_behind
    from htf.privacy.origins import check_not_data, mark_files

    named = (points.reading.columns or LON_LAT)[:2]
    columns = [name or default for name, default in zip(named, LON_LAT, strict=True)]
    priors = tuple(read_prior(source, points.domain, columns) for source in sources)
    for prior in priors:
        check_not_data(prior.file, mark_files(files_behind(points.source)))
    return all_priors(priors)


def _read_matrix(plan: Plan, domain: Domain | None = None) -> FrequencyMatrix:
    """The exact counts on the map, or in the zones that it is inside of."""
    from htf.ingest.points import read_matrix

    points = plan.points
    with reading_bar(points.name) as progress:
        return read_matrix(
            points.source,
            domain or points.domain,
            points.reading,
            progress=progress,
            tell=plan.tell,
        )


def _make_release(
    plan: Plan,
    matrix: FrequencyMatrix,
    around: FrequencyMatrix | None,
    priors: Priors,
    bought: dict[str, Any],
) -> Release:
    """Publish and write. The progress bar shows labels, and no numbers from the data."""
    from htf.privacy.budget import still_charged
    from htf.publication import publish
    from htf.release.inside_zones import inside_zones

    with progress_bar() as bar:
        task = bar.add_task("starting", total=None)
        usual: dict[str, Any] = {
            "noise": plan.noise,
            "budget": plan.budget,
            "label": plan.label,
            "progress": lambda label: bar.update(task, description=label),
        }
        zones, left = None, plan.epsilon
        if around is not None and plan.zones is not None:
            zones, left = publish(around, plan.zones, **usual), plan.epsilon - plan.zones
        made = publish(matrix, left, plan.mechanism, prior=priors, **usual, **bought)
        if zones is not None:
            bar.update(task, description="fitting the map to the zones")
            with still_charged(plan.budget):
                made = inside_zones(made, zones)
        if plan.finish is not None:
            bar.update(task, description="borrowing from earlier releases")
            with still_charged(plan.budget):
                made = plan.finish(made)
        bar.update(task, description=f"writing {plan.output.name}")
        _save(plan, made)
    return made


def _save(plan: Plan, made: Release) -> None:
    """If the output cannot be written any more, or appeared since it was checked, save elsewhere: the
    release has been paid for and cannot be made again."""
    try:
        _save_as(plan, made, plan.output)
    except OutputError as error:
        spare = _save_elsewhere(plan, made)
        if spare is None:
            raise
        told = f"{error}. The release is complete, as {spare}"
        if plan.adopt:
            told += f". Bring it into the series: `{plan.adopt} {quote(str(spare))}`"
        raise OutputError(told) from None


def _save_elsewhere(plan: Plan, made: Release) -> Path | None:
    """Beside the output, or among temporary files, which may be on another disk."""
    name = f"{SPARE}{secrets.token_hex(4)}.parquet"
    for folder in spare_folders(plan.output):
        with suppress(OutputError):
            _save_as(plan, made, folder / name)
            return folder / name
    return None


def _save_as(plan: Plan, made: Release, output: Path) -> None:
    if plan.budget is None:
        made.save(output, overwrite=plan.overwrite)
    else:
        plan.budget.save(made, output, overwrite=plan.overwrite)


@contextmanager
def reading_bar(name: str) -> Iterator[Callable[[float], None]]:
    """A progress bar for reading the points."""
    with progress_bar() as bar:
        task = bar.add_task(f"reading {name}", total=1.0)
        yield lambda share: bar.update(task, completed=share)
