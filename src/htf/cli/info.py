"""`htf info`: what a release says about itself."""

from __future__ import annotations

from pathlib import Path

import htf
from htf.base.options import option
from htf.cli import declared
from htf.cli.meaning import say_meaning
from htf.cli.options import JSON, OVERWRITE, RELEASE
from htf.cli.priors import show_priors
from htf.cli.screen import console, say, say_json, show_table, warn_if_not_private
from htf.errors import InputError
from htf.files import check_output, write_whole
from htf.privacy.protection import OF_RECORDS, PERSON, RECORDS
from htf.query.answer_texts import counts_of

LONGEST_VALUE = 60
YAML = (".yaml", ".yml")
ONCE_PER = {"hour": "one per hour", "day": "one per day", "all": "one"}


@declared.command()
def info(
    release_file: Path = RELEASE,
    as_json: bool = JSON,
    registry: bool = option(
        "Write a record for the public registry of deployments of differential privacy, as YAML."
    ),
    output: Path | None = option("With --registry: file to write, .yaml.", flag="-o --output"),
    overwrite: bool = OVERWRITE,
) -> None:
    """Show the privacy statement, the ledger, the mechanism and its parameters.

    With --registry, write the record of the release for the public registry of deployments. Texts in it that start with
    TODO are for you to fill in.
    """

    wanted = _registry_file(registry, output, as_json=as_json)
    if wanted is not None:
        check_output(wanted, overwrite=overwrite, inputs=[release_file])
    release = htf.Release.load(release_file)
    if wanted is not None:
        _write_record(release, release_file, wanted, overwrite)
    elif as_json:
        say_json(release.summary())
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


def _write_record(release: htf.Release, source: Path, output: Path, overwrite: bool) -> None:
    from htf.export.registry import TODO, registry_record, registry_yaml
    from htf.series.plan import is_series, read_plan

    plan = read_plan(source.parent) if is_series(source.parent) else None
    text = registry_yaml(registry_record(release, source.stem, plan))

    write_whole(output, lambda new: new.write_text(text, "utf-8"), overwrite=overwrite)
    left = text.count(TODO)
    say(f"Wrote {output}: {left} texts that start with TODO are for you to fill in.")
    warn_if_not_private(release)


def _show(release: htf.Release, release_file: Path) -> None:
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


def _show_guarantee(release: htf.Release) -> None:
    """Show what epsilon protects, and what was measured about people or weights before the map."""
    if release.protection != OF_RECORDS:
        title = f"Epsilon {release.epsilon} for {release.protection.name}"
        show_table(("name", ">value"), _protection_rows(release), title)
    for one in release.bought:
        rows = one.rows(release)
        show_table(rows.headers, list(rows.rows), rows.title)


def _protection_rows(release: htf.Release) -> list[tuple[str, str]]:
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


def _show_map(release: htf.Release) -> None:
    rows = [
        (a.name, f"{a.low:.10g}", f"{a.high:.10g}", f"{a.cells:,}", f"{a.cell_width:.4g}")
        for a in release.domain.axes
    ]
    title = f"Map ({release.domain.crs}), {release.domain.size:,} cells"
    show_table(("axis", ">low", ">high", ">cells", ">width of a cell"), rows, title)


def _show_ledger(release: htf.Release) -> None:
    each = "" if release.protection == OF_RECORDS else f" for each {release.protection.piece}"
    rows = [
        (line.label, line.kind, line.answers, line.largest_epsilon, line.spent_after)
        for line in release.ledger
    ]
    title = f"Ledger: {release.spent} spent of {release.record_epsilon}{each}"
    show_table(("what for", "kind", ">answers", ">epsilon each", ">spent so far"), rows, title)


def _shortened(text: str) -> str:
    """Some values are long, such as HDMM's strategies. `--json` prints them in full."""
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]} …"
