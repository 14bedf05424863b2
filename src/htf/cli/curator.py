"""Commands of the curator, who has the data: `htf release`, `htf mechanisms`."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any

import click

from htf.cli import streams
from htf.cli.budget import check_charge, open_budget, tell_charge, tells_what_was_charged
from htf.cli.points import Points, points_options, read_points_options
from htf.cli.screen import console, progress_bar, say, say_json, show_table, warn_if_not_private
from htf.cli.types import WholeNumber
from htf.errors import InputError, OutputError
from htf.files import check_output

if TYPE_CHECKING:
    from htf.curator.noise import NoiseSource
    from htf.estimation.prior import Prior
    from htf.mechanisms.base import Mechanism
    from htf.privacy.budget import BudgetFile
    from htf.privacy.epsilon import Epsilon
    from htf.privacy.protection import Protection, Suggestion
    from htf.release.release import Release


@click.command()
@points_options
@click.option("--epsilon", required=True, help="Privacy budget of the release.")
@click.option(
    "--suggest-max-records",
    "suggest",
    metavar="EPSILON",
    help="Find K with noise, for this part of the epsilon; spent even if you stop then.",
)
@click.option(
    "--records-range",
    type=WholeNumber(1),
    default=1000,
    show_default=True,
    metavar="N",
    help="Where it is looked for: from 1 to N, chosen without the data.",
)
@click.option(
    "--quantile",
    default="0.9",
    show_default=True,
    metavar="Q",
    help="It is the K that leaves this share of people whole.",
)
@click.option("--mechanism", help="See `htf mechanisms`.  [default: htf]")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A parameter of it.")
@click.option(
    "--prior", metavar="FILE", help="Public weights, points or release; never these points."
)
@click.option(
    "--noise",
    default="opendp",
    show_default=True,
    metavar="opendp|fast|seeded:N",
    help="Where noise comes from; seeded is for tests and not private.",
)
@click.option(
    "--ledger", type=click.Path(path_type=Path), help="Charge this file; see `htf budget`."
)
@click.option("--dataset", metavar="NAME", help="Name of the points' budget in it.")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    help="The release: .parquet, .geoparquet or .pq.",
)
@click.option(
    "--overwrite",
    is_flag=True,
    help="Replace the output if it exists; never a release that a budget was charged for.",
)
@click.option(
    "--allow-empty",
    is_flag=True,
    help="Make a release, of noise alone, even if no record is inside: for programs, whose missing release would tell that.",
)
@tells_what_was_charged
def release(
    epsilon: str,
    suggest: str | None,
    records_range: int,
    quantile: str,
    mechanism: str | None,
    settings: tuple[str, ...],
    prior: str | None,
    noise: str,
    ledger: Path | None,
    dataset: str | None,
    output: Path,
    overwrite: bool,
    allow_empty: bool,
    **about_points: Any,
) -> None:
    """Publish points as a differentially private map.

    POINTS is a CSV (plain, .gz or .zst) or Parquet file, a folder or a quoted pattern of them; a DuckDB or
    SQLite file, or postgresql://USER@HOST/DATABASE, with --table or --sql. Points outside the bounds (the
    upper edges are outside), missing, NaN or infinite are left out. How many rows could not be read, and why, is
    said on your screen only, never in the release. If no point is inside, that is an error, and nothing is charged.
    """
    from htf.curator.noise import noise_from_text
    from htf.mechanisms import make_mechanism
    from htf.privacy.epsilon import Epsilon
    from htf.publication import DEFAULT_MECHANISM

    points = read_points_options(**about_points)
    plan = Plan(
        points=points,
        epsilon=Epsilon.of(epsilon),
        mechanism=make_mechanism(mechanism or DEFAULT_MECHANISM, read_settings(settings)),
        noise=noise_from_text(noise),
        output=output,
        overwrite=overwrite,
        allow_empty=allow_empty,
        budget=open_budget(ledger, dataset, output),
    )
    _check_output(plan, prior, ledger)
    plan.mechanism.check_prior(prior)
    unit = _check_people(points, plan.epsilon, suggest, records_range, quantile)
    if plan.budget is not None:
        check_charge(plan.budget, plan.epsilon, plan.mechanism, plan.noise, unit)
    known = None if prior is None else _read_prior(prior, points)
    _rehearse(plan, unit, known, suggest)
    found = None
    if suggest is not None:
        found = _suggest(plan, Epsilon.of(suggest), records_range, quantile)
        plan = replace(plan, points=replace(points, max_records=_settle(found)))
    _report(plan, _make_release(plan, known, found))


def _screen() -> Callable[[str], None]:
    """For the curator, who sees the screen; not for the output. Each remark once, also where data are read twice."""
    told: set[str] = set()

    def tell(message: str) -> None:
        if message not in told:
            told.add(message)
            say(message, err=True)

    return tell


@dataclass(frozen=True, slots=True)
class Plan:
    """What was asked for, checked."""

    points: Points
    epsilon: Epsilon
    mechanism: Mechanism
    noise: NoiseSource
    output: Path
    overwrite: bool
    allow_empty: bool
    budget: BudgetFile | None
    tell: Callable[[str], None] = field(default_factory=_screen)


def _check_output(plan: Plan, prior: str | None, ledger: Path | None) -> None:
    """Before the data are read and anything is charged: a release that cannot be written costs as much."""
    from htf.ingest.prior import split_key
    from htf.release.file import check_release_name

    check_release_name(plan.output)
    source = None if "://" in plan.points.source else plan.points.source
    known = None if prior is None else split_key(prior)[0]
    check_output(
        plan.output,
        overwrite=plan.overwrite,
        inputs=[source, known, ledger],
        by_release=True,
        budget=plan.budget,
    )


def _check_people(
    points: Points, epsilon: Epsilon, suggest: str | None, records_range: int, quantile: str
) -> Protection:
    """What epsilon will be for; refused is what cannot become a release."""
    from htf.curator.contributions import read_quantile
    from htf.privacy.epsilon import Epsilon
    from htf.privacy.protection import OF_RECORDS, PERSON, Protection, epsilon_per_record

    if points.reading.user is None:
        if points.max_records is not None or suggest is not None:
            raise InputError("a limit on records is for each person: name their column with --user")
        return OF_RECORDS
    if (points.max_records is None) == (suggest is None):
        raise InputError(
            "to protect persons, say how many records of each are kept at most: --max-records K, or "
            "--suggest-max-records EPSILON to find it with noise"
        )
    if suggest is None:
        kept = Protection(PERSON, int(points.max_records or 0), points.reading.once_per)
        epsilon_per_record(epsilon, kept)
        return kept
    if Epsilon.of(suggest) >= epsilon:
        raise InputError(
            f"--suggest-max-records {suggest} is a part of --epsilon {epsilon}: it must be less"
        )
    read_quantile(quantile)
    most = Protection(PERSON, records_range, points.reading.once_per)
    epsilon_per_record(epsilon - Epsilon.of(suggest), most)  # before anything is spent
    return most


def _rehearse(plan: Plan, unit: Protection, prior: Prior | None, suggest: str | None) -> None:
    """What the mechanism, the noise or the installation refuse of any data, before these are read.

    How many records of a person are kept is not known before a suggestion: it may be one.
    """
    from htf.curator.curator import rehearse
    from htf.curator.noise_check import check_noise
    from htf.curator.rehearsal import load_loops
    from htf.privacy.epsilon import Epsilon

    check_noise(plan.noise)
    load_loops()
    epsilon = plan.epsilon
    if suggest is not None:
        epsilon, unit = epsilon - Epsilon.of(suggest), replace(unit, max_records=1)
    rehearse(plan.mechanism, plan.points.domain, epsilon, unit, prior)


def _suggest(plan: Plan, price: Epsilon, most: int, quantile: str) -> Suggestion:
    from htf.curator.contributions import RecordsPerPerson, suggest_max_records
    from htf.ingest.points import read_records_per_person

    points = plan.points
    with reading_bar(points.name) as progress:
        people = read_records_per_person(
            points.source, points.domain, points.reading, points.access, most,
            allow_empty=plan.allow_empty, progress=progress, tell=plan.tell,
        )  # fmt: skip
    return suggest_max_records(
        RecordsPerPerson(people),
        price,
        quantile=quantile,
        noise=plan.noise,
        budget=plan.budget,
        label=plan.output.name,
    )


def _report(plan: Plan, made: Release) -> None:
    with _whether_shown_or_not():
        say(
            f"Wrote {plan.output}: {len(made):,} boxes by {made.mechanism}, epsilon {made.epsilon} "
            f"for {made.protection.spoken}."
        )
        tell_charge(plan.budget, made)
        warn_if_not_private(made)


@contextmanager
def _whether_shown_or_not() -> Iterator[None]:
    """What has been paid for does not fail because nobody reads what is said of it, or a disk is full."""
    try:
        yield
    except (OSError, OutputError) as error:
        streams.give_up()
        reason = error.strerror if isinstance(error, OSError) else error
        say(f"Note: not all could be shown ({reason}).", err=True)


def _settle(found: Suggestion) -> int:
    """The curator may take another number: what is decided from the noisy one costs nothing."""
    from htf.privacy.protection import MOST_RECORDS_OF_A_PERSON

    with _whether_shown_or_not():
        say(
            f"About {float(found.quantile):.0%} of people have at most {found.max_records} records here "
            f"(found with noise, for epsilon {found.epsilon})."
        )
    if not sys.stdin.isatty():
        return found.max_records
    return int(
        click.prompt(
            "Keep at most how many of each?",
            default=found.max_records,
            type=WholeNumber(1, MOST_RECORDS_OF_A_PERSON),
        )
    )


def _read_prior(source: str, points: Points) -> Prior:
    """Before the data, so that what is wrong with it is said before any budget is spent. It is compared with
    their files here too, for to read all of them takes long."""
    from htf.ingest.prior import LON_LAT, read_prior
    from htf.ingest.sources import files_behind
    from htf.privacy.origins import check_not_data, mark_files

    named = (points.reading.columns or LON_LAT)[:2]
    columns = [name or default for name, default in zip(named, LON_LAT, strict=True)]
    found = read_prior(source, points.domain, columns)
    check_not_data(found.file, mark_files(files_behind(points.source)))
    return found


def _make_release(plan: Plan, prior: Prior | None, suggestion: Suggestion | None) -> Release:
    """Read, publish and write, with a progress bar that tells labels and no numbers of the data."""
    from htf.ingest.points import read_matrix
    from htf.publication import publish

    points = plan.points
    with reading_bar(points.name) as progress:
        matrix = read_matrix(
            points.source, points.domain, points.reading, points.access, points.max_records,
            allow_empty=plan.allow_empty, progress=progress, tell=plan.tell,
        )  # fmt: skip
    with progress_bar() as bar:
        task = bar.add_task("starting", total=None)
        made = publish(
            matrix,
            plan.epsilon,
            plan.mechanism,
            prior=prior,
            noise=plan.noise,
            ledger=plan.budget,
            label=plan.output.name,
            suggestion=suggestion,
            progress=lambda label: bar.update(task, description=label),
        )
        bar.update(task, description=f"writing {plan.output.name}")
        _save(plan, made)
    return made


def _save(plan: Plan, made: Release) -> None:
    """Where the output came to be, or cannot be written any more, since it was checked, the release goes
    elsewhere: it has been paid for, and cannot be made again."""
    try:
        _save_as(plan, made, plan.output)
    except OutputError as error:
        spare = _save_elsewhere(plan, made)
        if spare is None:
            raise
        raise OutputError(f"{error}. The release is complete, as {spare}") from None


def _save_elsewhere(plan: Plan, made: Release) -> Path | None:
    """Beside the output; or where temporary files go, which may be another disk."""
    name = f"release-{secrets.token_hex(4)}.parquet"
    for folder in (plan.output.parent, Path(gettempdir())):
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
    with progress_bar() as bar:
        task = bar.add_task(f"reading {name}", total=1.0)
        yield lambda share: bar.update(task, completed=share)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def mechanisms(as_json: bool) -> None:
    """List the mechanisms, their parameters with defaults, and where they come from."""
    from htf.mechanisms import registry

    found = [mechanism.describe() for mechanism in registry().values()]
    if as_json:
        say_json(json.dumps(found, indent=2, ensure_ascii=False))
        return
    for mechanism in found:
        console().print(mechanism["name"], style="bold", end="  ")
        console().print(mechanism["summary"])
        console().print(f"  {mechanism['citation']}")
        rows = [(p["name"], p["default"], p["help"]) for p in mechanism["parameters"]]
        show_table(("parameter", ">default", "meaning"), rows)


def read_settings(settings: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"--set takes NAME=VALUE, got {setting!r}")
        if name in found:
            raise InputError(f"--set {name} is given twice")
        found[name] = value
    return found
