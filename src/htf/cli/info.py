"""`htf info`: what a release says about itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from htf.cli.meaning import say_meaning
from htf.cli.options import json_option, overwrite_option, release_argument
from htf.cli.priors import show_priors
from htf.cli.screen import console, say, say_json, show_table, warn_if_not_private
from htf.cli.types import FileName
from htf.errors import InputError
from htf.files import check_output, write_whole
from htf.privacy.protection import OF_RECORDS, PERSON, RECORDS
from htf.query.answer_texts import counts_of

if TYPE_CHECKING:
    from htf.privacy.activity import Activity
    from htf.privacy.clipping import Clipped
    from htf.release.release import Release

LONGEST_VALUE = 60
YAML = (".yaml", ".yml")
ONCE_PER = {"hour": "one per hour", "day": "one per day", "all": "one"}


@click.command()
@release_argument
@json_option
@click.option(
    "--registry",
    is_flag=True,
    help="Write a record for the public registry of deployments of differential privacy, as YAML.",
)
@click.option("-o", "--output", type=FileName(), help="With --registry: file to write, .yaml.")
@overwrite_option
def info(
    release_file: Path, as_json: bool, registry: bool, output: Path | None, overwrite: bool
) -> None:
    """Show the privacy statement, the ledger, the mechanism and its parameters.

    With --registry, write the record of the release for the public registry of deployments. Texts in it that start with
    TODO are for you to fill in.
    """
    from htf.release.release import Release

    wanted = _registry_file(registry, output, as_json=as_json)
    if wanted is not None:
        check_output(wanted, overwrite=overwrite, inputs=[release_file])
    release = Release.load(release_file)
    if wanted is not None:
        _write_record(release, release_file, wanted, overwrite)
    elif as_json:
        say_json(json.dumps(release.summary(), indent=2))
    else:
        _show(release, release_file)


def _registry_file(registry: bool, output: Path | None, *, as_json: bool) -> Path | None:
    """Where the record goes; None if there is to be none."""
    if registry and as_json:
        raise InputError("--registry writes YAML, --json prints JSON: give one of them")
    if registry != (output is not None):
        raise InputError("--registry and -o FILE.yaml go together: give both, or none")
    if output is not None and output.suffix.lower() not in YAML:
        raise InputError(f"a record is a {' or '.join(YAML)} file, got {output.name!r}")
    return output


def _write_record(release: Release, source: Path, output: Path, overwrite: bool) -> None:
    from htf.export.registry import TODO, registry_record, registry_yaml
    from htf.series.plan import is_series, read_plan

    plan = read_plan(source.parent) if is_series(source.parent) else None
    text = registry_yaml(registry_record(release, source.stem, plan))

    def write(unfinished: Path) -> None:
        unfinished.write_text(text, encoding="utf-8")

    write_whole(output, write, overwrite=overwrite)
    left = text.count(TODO)
    say(f"Wrote {output}: {left} texts that start with TODO are for you to fill in.")
    warn_if_not_private(release)


def _show(release: Release, release_file: Path) -> None:
    from htf.estimation.homogeneous import PRIOR_TRUST

    screen = console()
    warn_if_not_private(release)
    told = f"{release_file}: {len(release):,} leaves by {release.mechanism}, {counts_of(release.counted)}"
    screen.print(f"{told}\n", style="bold")
    screen.print(release.statement + "\n")
    if release.private:
        say_meaning(release.epsilon, release.protection)
        screen.print()
    _show_guarantee(release)
    _show_map(release)
    facts = {name: fact for name, fact in release.facts.items() if name != PRIOR_TRUST}
    for title, values in (("Parameters", release.parameters), ("Found with noise", facts)):
        rows = [(name, _shortened(str(value))) for name, value in values.items()]
        show_table(("name", ">value"), rows, title)
    show_priors(release)
    _show_ledger(release)


def _show_guarantee(release: Release) -> None:
    """Show what epsilon protects, and what was measured about people or weights before the map."""
    if release.protection != OF_RECORDS:
        title = f"Epsilon {release.epsilon} for {release.protection.name}"
        show_table(("name", ">value"), _protection_rows(release), title)
    if release.suggestion is not None:
        rows = [*release.suggestion.to_dict().items()]
        show_table(("name", ">value"), rows, "Suggested with noise")
    if (activity := release.activity) is not None:
        show_table(*_activity_table(activity, release.factor))
    if (clipped := release.clipped) is not None:
        title = f"Records by {clipped.protection.weight}, for epsilon {clipped.epsilon}"
        headers = f"{clipped.protection.weight} of a record", ">records, with noise"
        show_table(headers, _clipped_rows(clipped), title)
    if (distinct := release.distinct) is not None:
        told = {**distinct.to_dict(), "grid": "{} x {}".format(*distinct.grid)}
        rows = [(name, value) for name, value in told.items() if name not in ("counts", "people")]
        show_table(
            ("name", ">value"), rows, f"Table of {distinct.quantity}: `htf query --distinct`"
        )


def _activity_table(activity: Activity, factor: float) -> tuple[tuple[str, ...], list[Any], str]:
    title = f"Activity, for epsilon {activity.epsilon}; counts are multiplied by {factor:.4g}"
    near = "up to" if activity.most is None else "about"
    rows = [
        (f"{near} {end:,}", f"{people:,.0f}")
        for end, people in zip(activity.ends, activity.counted, strict=True)
    ]
    return ("records of a person", ">people, with noise"), rows, title


def _clipped_rows(clipped: Clipped) -> list[tuple[str, object]]:
    most = f"{clipped.protection.max_weight:,}"
    rows: list[tuple[str, object]] = [
        (f"up to {most}", f"{clipped.within:,}"),
        (f"above {most}, counted as {most}", f"{clipped.above:,}"),
    ]
    if clipped.share is not None:
        share, low, high = (f"{100 * one:.2g} %" for one in clipped.share)
        rows.append((f"share above {most}", f"{share} ({low} to {high})"))
    return rows


def _protection_rows(release: Release) -> list[tuple[str, str]]:
    """The protection in plain words; `--json` has the fields as they are."""
    protection = release.protection
    rows = [("protected", protection.name), ("counted", release.counted)]
    if protection.unit == PERSON and protection.count == RECORDS:
        within = "" if protection.per is None else f" and {protection.per}"
        rows.append((f"most records kept per person{within}", f"{protection.max_records:,}"))
    if protection.once_per is not None:
        rows.append(("records used of a person in one cell", ONCE_PER[protection.once_per]))
    if protection.weight is not None:
        rows.append((f"most {protection.weight} counted per record", f"{protection.max_weight:,}"))
    if protection.shares > 1:
        rows.append((f"shares of {protection.name}", f"{protection.shares:,}"))
    if protection.of_query:
        rows.append(("records", "rows of a query or view"))
    return [*rows, (f"epsilon of a {protection.piece}", str(release.record_epsilon))]


def _show_map(release: Release) -> None:
    rows = [
        (a.name, f"{a.low:.10g}", f"{a.high:.10g}", f"{a.cells:,}", f"{a.cell_width:.4g}")
        for a in release.domain.axes
    ]
    title = f"Map ({release.domain.crs}), {release.domain.size:,} cells"
    show_table(("axis", ">low", ">high", ">cells", ">width of a cell"), rows, title)


def _show_ledger(release: Release) -> None:
    each = ""
    if release.protection != OF_RECORDS:
        each = f" for each {release.protection.piece}"
    rows = [
        (line.label, line.kind, line.answers, line.largest_epsilon, line.spent_after)
        for line in release.ledger
    ]
    title = f"Ledger: {release.spent} spent of {release.record_epsilon}{each}"
    show_table(("what for", "kind", ">answers", ">epsilon each", ">spent so far"), rows, title)


def _shortened(text: str) -> str:
    """Some values are long, such as HDMM's strategies. `--json` prints them in full."""
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]} …"
