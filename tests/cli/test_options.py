"""Options stand in one place, old names still work, and tracebacks are shown only on request."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import pytest

import htf
from htf import BudgetFile, read_points
from htf.base.options import OPTION
from htf.cli.distinct import DistinctOptions
from htf.cli.main import cli, run
from htf.cli.points import MapOptions
from htf.cli.release import ReleaseOptions
from htf.cli.weights import WeightOptions
from htf.ingest.reading import Reading

NOT_OPTIONS = {"columns"}  # which --x, --y, --dest-x, --dest-y and --axis name


def command_named(name: str) -> click.Command:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command


def options_of_command(name: str) -> dict[str, click.Option]:
    command = command_named(name)
    return {param.name or "": param for param in command.params if isinstance(param, click.Option)}


def test_read_points_takes_what_the_declaration_says() -> None:
    """Names and defaults; the order is the signature's own."""
    signature = inspect.signature(read_points).parameters
    taken = {n: p.default for n, p in signature.items() if n not in ("source", "domain")}
    declared = {one.name: one.default for one in fields(Reading)}
    assert taken == {**declared, "progress": None, "tell": None}


def test_htf_release_offers_every_declared_option() -> None:
    offered = options_of_command("release")
    declared = [
        one
        for what in (Reading, MapOptions, ReleaseOptions, DistinctOptions, WeightOptions)
        for one in fields(what)
    ]
    names = [one.name for one in declared if one.name not in NOT_OPTIONS]
    assert len(names) == len(set(names))
    asking = {
        "dry_run",
        "try_rows",
        "yes",
        "points_about",
    }  # before a charge, and nothing about the release
    assert set(names) | asking | {"ledger"} == set(offered)
    for one in declared:
        if one.name in NOT_OPTIONS:
            continue
        option = offered[one.name]
        assert option.help == one.metadata[OPTION].help
        assert option.required == (one.default is MISSING)
        if one.default not in (MISSING, None, (), False) and one.metadata[OPTION].read is None:
            assert option.default == one.default


@pytest.mark.parametrize("command", ["forecast", "evaluate", "paper"])
def test_other_commands_share_the_options_of_the_map(command: str) -> None:
    offered, own = options_of_command(command), options_of_command("release")
    for name in ("x_column", "y_column", "bounds"):
        assert offered[name].opts == own[name].opts
        assert offered[name].metavar == own[name].metavar


def test_every_option_of_every_command_is_explained() -> None:
    waiting = [command_named(name) for name in cli.list_commands(click.Context(cli))]
    while waiting:
        command = waiting.pop()
        if isinstance(command, click.Group):
            waiting += command.commands.values()
        for param in command.params:
            if isinstance(param, click.Option) and not param.hidden:
                assert param.help, f"{command.name} {param.opts[-1]}"
                assert param.help[0].isupper() or param.help[0] in "`0", param.help


# --- the old name of --budget ---------------------------------------------------------------------


def charged(folder: Path, *budget: Any) -> list[str]:
    (folder / "points.csv").write_text("lon,lat\n0.5,0.5\n0.25,0.75\n")
    asked = ["--bounds", "0,0,1,1", "--cells", "4", "--mechanism", "uniform", "--epsilon", "0.5"]
    given = [*asked, "--noise", "fast", *budget, "--dataset", "pings", "-o", folder / "r.parquet"]
    return ["release", str(folder / "points.csv"), *map(str, given)]


def test_the_old_name_of_the_option_works_and_names_the_new_one(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    budget = BudgetFile.create(tmp_path / "budget.sqlite", "pings", 1)
    assert run(charged(tmp_path, "--ledger", budget.path)) == 0
    told = capfd.readouterr()
    note = "Note: --ledger is now called --budget. The next version drops the old name."
    assert [line for line in told.err.splitlines() if "--ledger" in line] == [note]
    assert "ε = 0.5 of 1 remains" in told.out
    assert str(budget.account().spent) == "0.5"


def test_the_new_name_says_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    budget = BudgetFile.create(tmp_path / "budget.sqlite", "pings", 1)
    assert run(charged(tmp_path, "--budget", budget.path)) == 0
    assert "--ledger" not in capfd.readouterr().err
    assert run(["release", "--help"]) == 0
    shown = capfd.readouterr().out
    assert "--budget FILE" in shown
    assert "--ledger" not in shown


def test_both_names_at_once_are_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    budget = BudgetFile.create(tmp_path / "budget.sqlite", "pings", 1)
    command = charged(tmp_path, "--ledger", budget.path, "--budget", budget.path)
    assert run(command) == 2
    told = capfd.readouterr().err
    assert "--ledger is the old name of --budget: give --budget only" in told
    assert "Nothing was charged." in told
    assert budget.account().entries == ()


# --- tracebacks -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "is_shown"), [("1", True), ("0", False), (None, False)])
def test_tracebacks_are_shown_on_request(
    value: str | None,
    is_shown: bool,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("HTF_DEBUG", raising=False)
    if value is not None:
        monkeypatch.setenv("HTF_DEBUG", value)
    assert run(["info", "nowhere.parquet"]) == 2
    told = capfd.readouterr().err
    assert told.splitlines()[-1].startswith("Error: ")
    assert ("Traceback (most recent call last)" in told) == is_shown
    assert ("This traceback may show data." in told) == is_shown
    assert (len(told.splitlines()) == 1) != is_shown


def test_no_help_offers_what_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    """A series is charged, and no seeded noise ever is."""
    assert run(["series", "add", "--help"]) == 0
    assert "seeded:N" not in capfd.readouterr().out
    assert run(["release", "--help"]) == 0
    assert "seeded:N" in capfd.readouterr().out


def test_the_version_has_one_source(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capfd.readouterr().out.split()[-1] == htf.__version__ == version("htf-dp")
    assert "__version__" in dir(htf)


def test_help_mentions_tracebacks_and_their_danger(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    told = " ".join(capfd.readouterr().out.split())
    assert "Set HTF_DEBUG=1 to see the traceback of an error. A traceback may show data" in told
