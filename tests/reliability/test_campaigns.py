"""A small piece of each part of the campaign, so that it works when it is needed; `make reliability` runs all."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from htf.privacy.budget import BudgetFile, read_accounts
from reliability import flips
from reliability.campaign import CAMPAIGNS, table
from reliability.faults import NEVER, Worker, findings, started_worker, try_faults
from reliability.fuzz_releases import is_as_published
from reliability.hostile import Opened, make_seeds
from reliability.sandbox import LONGEST_WAIT, MOST_SECONDS, Ending, Tally, sandbox
from support import require

SMALL = {"inputs": 0.01, "releases": 0.005, "kills": 0.01, "faults": 0.008, "flips": 0.005, "load": 0.01, "series": 0.012, "newer": 0.005}  # fmt: skip


ALWAYS = (
    "inputs",
    "releases",
    "flips",
)  # the others start and kill many programs, which takes longest


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=[] if one in ALWAYS else [pytest.mark.slow]) for one in CAMPAIGNS],
)
def test_a_piece_of_each(name: str, tmp_path: Path) -> None:
    if name in ("kills", "faults"):
        require("cc", "gcc")
    tallies = CAMPAIGNS[name](SMALL[name], 1, tmp_path)
    assert [finding for tally in tallies for finding in tally.findings] == []
    assert all(tally.tried for tally in tallies)
    assert len(table(tallies).splitlines()) == len(tallies) + 2


@pytest.mark.parametrize(
    ("ending", "wrong"),
    [
        (Ending(0, "fine\n", 1, 0), ""),
        (Ending(2, "Error: no", 1, 0), ""),
        (Ending(2, "", 1, 0), "no message"),
        (Ending(1, "Error: this is a bug in HTF", 1, 0), "exit 1"),
        (Ending(-9, "", 1, 0), "killed by SIGKILL"),
        (Ending(0, "a\x1b[2J", 1, 0), "raw control characters ['\\x1b']"),
        (Ending(0, "", 1, 2**31), "2,048 MB of memory"),
        (Ending(2, "Error: x does not fit into memory", 1, 0), "0 MB of memory"),
    ],
)
def test_what_counts_as_wrong(ending: Ending, wrong: str) -> None:
    assert ending.wrong == wrong


@pytest.mark.parametrize(
    ("limits", "wrong"),
    [
        ({"most_seconds": 0.5}, "killed by SIGXCPU"),
        ({"most_seconds": 1e6, "longest_wait": 5}, "killed by SIGKILL"),
    ],
)
def test_a_command_without_an_end_is_ended(
    limits: dict[str, float], wrong: str, tmp_path: Path
) -> None:
    """By its processor time, or by the clock; a new process runs the next one."""
    release = make_seeds(tmp_path)["plane"]
    with sandbox(**limits) as box:
        endless = ("sample", release, "--n", "1000000000", "-o", tmp_path / "points.csv")
        assert box.run(*endless).wrong == wrong
        box.most_seconds, box.longest_wait = MOST_SECONDS, LONGEST_WAIT
        assert box.run("info", release).code == 0


def test_a_doctored_file_that_was_accepted_would_be_found(tmp_path: Path) -> None:
    sound = make_seeds(tmp_path)["plane"]
    file = Opened.read(sound)
    assert is_as_published(file.write(tmp_path / "same.parquet"), sound)
    moved = file.with_column("std_error", file.table["std_error"].to_numpy() * 0)
    assert not is_as_published(moved.write(tmp_path / "moved.parquet"), sound)


def test_a_budget_that_forgets_would_be_found(tmp_path: Path) -> None:
    """Here more is left than the flipped files have, so that what they must refuse fits."""
    path = tmp_path / "budget.sqlite"
    BudgetFile.create(path, "pings", 2).charge("0.1", "htf")
    truth = read_accounts(path)
    assert flips._try_one(path, truth) == ("charged beyond the cap", "0.3 was charged")
    assert flips._try_one(path, truth)[0] == "other accounts shown"


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    require("cc", "gcc")
    with started_worker("records") as made:
        yield made


def test_a_lost_charge_would_be_found(worker: Worker) -> None:
    case = worker.run("records", "EIO", NEVER)
    assert (case.code, findings(case)) == (0, [])
    shutil.copy(worker.folder / "inputs" / "records" / "budget.sqlite", case.folder)
    assert "more was released than charged" in findings(case)
    (case.folder / "out.parquet").write_bytes(b"PAR1 half a file")
    assert any(finding.startswith("half a file") for finding in findings(case))


@pytest.mark.parametrize("mode", ["EIO from then on", "ENOSPC from then on"])
def test_a_disk_that_stays_full_while_a_release_is_written(mode: str, worker: Worker) -> None:
    """The last calls are on the release and the budget file."""
    last = worker.run("records", mode, NEVER).calls
    assert worker.run("records", mode, last).fired
    assert not worker.run("records", mode, last + 1).fired
    ends, wrong = try_faults(worker, "records", mode, range(last - 60, last, 5))
    assert wrong == []
    assert ends


def test_tallies_of_several_workers_are_joined() -> None:
    one, two = Tally("a"), Tally("a")
    one.add("refused")
    two.add("refused")
    two.add("accepted", "it differs")
    (both,) = Tally.joined([[one], [two]])
    assert (both.tried, both.results, both.findings) == (
        3,
        {"refused": 2, "accepted": 1},
        ["it differs"],
    )


def test_the_make_target() -> None:
    require("make", "make")
    command = ["make", "-n", "reliability", "VENV=/none"]
    root = Path(__file__).parent.parent.parent
    told = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    assert "-m reliability.campaign" in told
