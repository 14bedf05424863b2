"""Options stand in one place, old names still work, and tracebacks are shown only on request."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields
from importlib.metadata import version
from typing import Any

import click
import pytest

import htf
from htf import read_points
from htf.base.options import OPTION
from htf.cli.declared import Named, Two
from htf.cli.main import cli, run
from htf.cli.points import fill_recipe
from htf.ingest.reading import Reading
from htf.recipes.recipe import HOME, OF_MAP, Recipe


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
    declared = [one for one in fields(Recipe) if OPTION in one.metadata]
    names = [one.name for one in declared]
    assert len(names) == len(set(names))
    grouped = [one for one in declared if one.metadata[OPTION].group is not None]
    groups = {one.metadata[OPTION].group.key for one in grouped}
    assert groups == {"read", "dest", "weight", "during", "distinct"}
    for one in grouped:
        kind = offered[one.metadata[OPTION].group.key].type
        assert isinstance(kind, (Named, Two))
        assert one in (kind.members.values() if isinstance(kind, Named) else kind.fields)
    declared = [one for one in declared if one not in grouped]
    names = [one.name for one in declared]
    # Of one run: nothing that the release is made of.
    of_run = "noise budget dataset output overwrite save_recipe dry_run yes points_about"
    assert {*names, *groups, *of_run.split()} == set(offered)
    for one in declared:
        option = offered[one.name]
        assert option.help == one.metadata[OPTION].help
        assert option.required == (one.default is MISSING)
        if one.default not in (MISSING, None, (), False) and one.metadata[OPTION].read is None:
            assert option.default == one.default


def test_options_of_a_group_are_read_like_others(capfd: pytest.CaptureFixture[str]) -> None:
    wrong = {
        "encodng=cp1252": "NAME is one of encoding, decimal, skip-lines",
        "encoding": "it takes NAME=VALUE",
        "skip-lines=x": "skip-lines: 'x' is not a whole number",
        "skip-lines=0": "skip-lines: 0 is not in the range",
        "engine=abacus": "must be one of duckdb, spark",
        "utc-offset=8": "takes hours and minutes",
    }
    for words, said in wrong.items():
        asked = ["check", "a.csv", "--bounds", "0,0,1,1", "--read", words]
        if words.startswith("engine"):
            asked = ["release", "a.csv", "--epsilon", "1", "-o", "a.parquet", *asked[2:]]
        assert run(asked) == 2
        assert said in " ".join(capfd.readouterr().err.split()), words
    assert run(["check", "a.csv", "--read", "decimal=,", "--read", "decimal=."]) == 2
    assert "decimal is given twice" in capfd.readouterr().err


def test_two_values_of_one_option_are_read_like_others(capfd: pytest.CaptureFixture[str]) -> None:
    wrong = {
        ("--weight", "fares"): "it takes COLUMN:W, got 'fares'",
        ("--weight", ":6"): "it takes COLUMN:W",
        ("--weight", "fares:"): "it takes COLUMN:W",
        ("--weight", "fares:0"): "0 is not in the range",
        ("--weight", "fares:few"): "'few' is not a whole number",
        ("--during", "2026-03-01"): "it takes FROM,TO, got '2026-03-01'",
        ("--during", ","): "it takes FROM,TO",
        ("--during", "2026-03,", "--time", "at"): "a time is written like 2026-03-01",
        ("--during", "2026-03-02,2026-03-01", "--time", "at"): "must end after it starts",
        ("--during", "2026-03-01,"): "--during needs times",
        ("--distinct", ":4"): "it takes N|NX,NY|LEVEL[:M]",
        ("--distinct", "16:", "--user", "who"): "--distinct takes the number of boxes",
    }
    for words, said in wrong.items():
        asked = ["release", "a.csv", "--bounds", "0,0,1,1", "--epsilon", "1", "-o", "a.parquet"]
        assert run([*asked, *words]) == 2
        assert said in " ".join(capfd.readouterr().err.split()), words


@pytest.mark.parametrize(
    ("words", "fields"),
    {
        ("--weight", "a:b:6"): {"weight": "a:b", "max_weight": 6},
        ("--distinct", "16"): {"distinct": "16"},
        ("--distinct", "zone:district"): {"distinct": "zone:district"},
        ("--distinct", "zone:district:auto"): {
            "distinct": "zone:district",
            "distinct_boxes": "auto",
        },
        ("--distinct", "32,16:4"): {"distinct": "32,16", "distinct_boxes": "4"},
        ("--during", "2026-03-01,", "--time", "at"): {"since": 1772323200, "time": "at"},
        ("--during", ",2026-03-01T06:00", "--time", "at"): {"until": 1772344800, "time": "at"},
        ("--other", "zone", "--other", "kind"): {"other": ("zone", "kind")},
    }.items(),
)
def test_two_values_of_one_option_fill_a_recipe(
    words: tuple[str, ...], fields: dict[str, Any]
) -> None:
    command = command_named("release")
    asked = ["a.csv", "--epsilon", "1", "-o", "a.parquet", *words]
    with command.make_context("release", asked) as context:
        filled = fill_recipe("a.csv", context.params)
    assert filled == Recipe(source="a.csv", epsilon=1, **fields)


def test_the_help_of_a_group_has_a_line_for_each_name(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["release", "--help"]) == 0
    told = capfd.readouterr().out
    for name in ("encoding=NAME: Encoding of text", "dest NAME=VALUE", "within=COLUMN,…: Columns"):
        assert name in told


def test_names_of_a_group_are_completed() -> None:
    option = options_of_command("release")["read"]
    found = option.type.shell_complete(click.Context(cli), option, "time-")
    assert [one.value for one in found] == ["time-unit=", "time-format="]


def test_a_recipe_has_every_option_about_records_and_the_map() -> None:
    homes = [one.metadata[HOME] for one in fields(Recipe) if HOME in one.metadata]
    assert len(homes) == len(set(homes))
    assert set(homes) == {one.name for one in fields(Reading) if OPTION in one.metadata}
    assert (OF_MAP[0], OF_MAP[-1]) == ("x", "other")
    assert all(OPTION in Recipe.__dataclass_fields__[name].metadata for name in OF_MAP)


def test_a_forecast_has_few_options_and_shares_those_of_a_release() -> None:
    offered, own = options_of_command("forecast"), options_of_command("release")
    assert len(offered) <= 16
    for name in ("bounds", "cells", "zones", "by", "max_records", "mechanism"):
        assert offered[name].opts == own[name].opts
        assert offered[name].metavar == own[name].metavar


@pytest.mark.parametrize("command", ["evaluate", "paper"])
def test_other_commands_share_the_options_of_the_map(command: str) -> None:
    offered, own = options_of_command(command), options_of_command("release")
    for name in ("x", "y", "bounds"):
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
