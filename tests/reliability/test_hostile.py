"""Hostile releases through the commands, in a process with limits of time and memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from htf import verification
from htf.privacy.epsilon import Epsilon
from reliability.commands import all_commands, quick_commands, serve_command
from reliability.hostile import (
    DOCTORED,
    HOSTILE,
    ODD,
    UNFOUNDED,
    Hostile,
    Opened,
    chain,
    changed,
    column,
    make_seeds,
    wide,
)
from reliability.sandbox import Sandbox, sandbox

LIMIT = 300 * 2**20  # bytes that a file of at most a few MB may take

Seeds = dict[str, Path]


def named(some: tuple[Hostile, ...]) -> list[object]:
    return [pytest.param(one, id=one.name) for one in some]


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Seeds:
    return make_seeds(tmp_path_factory.mktemp("seeds"))


@pytest.fixture(scope="module")
def box(seeds: Seeds, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """What is loaded or compiled at first use is so already, and all commands work on a sound file."""
    folder = tmp_path_factory.mktemp("out")
    with sandbox(60) as made:
        for command in all_commands(seeds["plane"], folder):
            ending = made.run(*command)
            assert ending.code == 0, ending.said
        made.most_seconds = 20
        yield made


def checked(box: Sandbox, command: tuple[str, ...]) -> int:
    ending = box.run(*command)
    assert not ending.wrong, f"{command[0]}: {ending.wrong}\n{ending.said}"
    assert ending.growth < LIMIT, f"{command[0]}: {ending.growth >> 20} MB"
    return ending.code


@pytest.mark.parametrize("file", named(HOSTILE))
def test_what_no_release_has(file: Hostile, seeds: Seeds, box: Sandbox, tmp_path: Path) -> None:
    path = file.make(seeds, tmp_path / "hostile.parquet")
    commands = [*all_commands(path, tmp_path), serve_command(path)]
    assert {checked(box, command) for command in commands} == {2}


@pytest.mark.parametrize("file", named(DOCTORED))
def test_doctored_and_sealed_again(
    file: Hostile, seeds: Seeds, box: Sandbox, tmp_path: Path
) -> None:
    """Digests match, and `htf verify` computes again what the columns must be."""
    path = file.make(seeds, tmp_path / "doctored.parquet")
    codes = {command[0]: checked(box, command) for command in quick_commands(path)}
    assert codes["verify"] == 2


@pytest.mark.parametrize("name", ["geometry", "std_error", "x_low", "y_high", "count", "region"])
def test_doctored_and_not_sealed(name: str, seeds: Seeds, box: Sandbox, tmp_path: Path) -> None:
    """The digest covers every column: whatever is done with the file, it is refused."""
    make = column(name, lambda values: values[::-1].tolist(), seal=False)
    path = make(seeds, tmp_path / "doctored.parquet")
    commands = [*all_commands(path, tmp_path), serve_command(path)]
    assert {checked(box, command) for command in commands} == {2}


@pytest.mark.parametrize("file", named(UNFOUNDED))
def test_what_could_be_a_release(file: Hostile, seeds: Seeds, box: Sandbox, tmp_path: Path) -> None:
    path = file.make(seeds, tmp_path / "unfounded.parquet")
    codes = {command[0]: checked(box, command) for command in all_commands(path, tmp_path)}
    assert codes["verify"] == 2


@pytest.mark.parametrize("file", named(ODD))
def test_what_is_only_odd(file: Hostile, seeds: Seeds, box: Sandbox, tmp_path: Path) -> None:
    path = file.make(seeds, tmp_path / "odd.parquet")
    for command in all_commands(path, tmp_path):
        checked(box, command)


def test_the_maker_itself(seeds: Seeds, box: Sandbox, tmp_path: Path) -> None:
    """Files that are opened, sealed and written again pass: else everything would be refused for that."""
    for name in seeds:
        path = changed(lambda file: file, name)(seeds, tmp_path / f"{name}.parquet")
        assert checked(box, ("verify", str(path))) == 0
    whole = chain(50, 3)
    path = Opened.of(whole).write(tmp_path / "chain.parquet")
    assert checked(box, ("info", str(path))) == 0


def test_more_lines_than_can_be_checked() -> None:
    """Every line is a pass over the tree, and the header has room for many."""
    release = wide(2**21 + 1, 1024)
    found = verification._check_ledger(release)
    assert not found.passed
    assert "1,024 lines for 2,097,154 regions" in found.finding
    assert release.ledger[0].spent_after == Epsilon(10**6)


def test_synthetic_points_of_a_total_without_end(
    seeds: Seeds, box: Sandbox, tmp_path: Path
) -> None:
    """By default as many are drawn as the release counts."""
    path = changed(lambda file: file.with_column("count", [1e16] * len(file.table)))(
        seeds, tmp_path / "hostile.parquet"
    )
    assert checked(box, ("sample", str(path), "-o", str(tmp_path / "out.parquet"))) == 2
    assert not (tmp_path / "out.parquet").exists()
