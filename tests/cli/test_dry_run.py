"""`htf release --dry-run`, and the question before a charge at a terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Thread
from time import sleep

import pytest

import htf
from htf import BudgetFile, Epsilon
from htf.cli.main import run
from support import PATIENCE


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    points = tmp_path / "points.csv"
    points.write_text("lon,lat\n" + "0.1,0.2\n" * 50)
    budget = str(tmp_path / "budget.sqlite")
    assert run(["budget", "init", budget, "--dataset", "d", "--cap", "2"]) == 0
    given = ["release", str(points), "--bounds", "0,0,0.4,0.4", "--cells", "256", "--epsilon", "1"]
    return [*given, "--budget", budget, "--dataset", "d", "-o", str(tmp_path / "r.parquet")]


def spent(words: list[str]) -> Epsilon:
    return BudgetFile(Path(words[words.index("--budget") + 1]), "d").account().spent


def test_a_dry_run_spends_and_writes_nothing(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path(words[1]).write_text("lon,lat\nno,number\n")  # reading it would fail
    assert run([*words, "--dry-run", "--points-about", "5000"]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert "Map 44.5 km x 44.5 km, 256 x 256 cells of 174 m x 174 m, unit: one record" in told
    assert "2 of 2 remains" in told
    assert "becomes at most 73 %" in told
    assert "Expected error in squares of 1 km around records: about" in told
    assert "(5,000 records)" in told
    assert "nothing was charged, and no release was made" in told
    assert spent(words).units == 0
    assert not Path(words[-1]).exists()


@pytest.mark.parametrize("text", [None, "x,y\n1,2\n"])
def test_a_dry_run_finds_a_missing_file_or_column(
    words: list[str], text: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(words[1]).unlink()
    if text is not None:
        Path(words[1]).write_text(text)
    assert run([*words, *(["--x", "easting", "--y", "y"] if text else []), "--dry-run"]) == 2
    assert ("there is no file" if text is None else "easting") in capsys.readouterr().err


CTRL_C = "^C"


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    """As often as it takes: a signal just before the question is read would wait for it."""
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        sleep(0.5)


def at_a_terminal(words: list[str], answer: str) -> tuple[int, str]:
    """Run the command at a terminal, and type the answer to its question, if it asks one. Gives its exit code and words."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "htf", *words], stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        with open(ours, "r+b", buffering=0) as terminal, suppress(OSError):  # how a terminal ends
            while piece := terminal.read(4096):
                shown += piece
                if shown.endswith(b"[y/N]: ") and answer == CTRL_C:
                    Thread(target=_interrupt, args=(process,), daemon=True).start()
                elif shown.endswith(b"[y/N]: "):
                    terminal.write(f"{answer}\n".encode())
        return process.wait(PATIENCE), " ".join(shown.decode().split())


@pytest.mark.parametrize("answer", ["y", "n", CTRL_C])
def test_a_terminal_is_asked(words: list[str], answer: str) -> None:
    code, shown = at_a_terminal(words, answer)
    assert "Charge ε 1 and make the release? [y/N]:" in shown
    assert (code == 0) is (answer == "y")
    assert ("Nothing was charged" in shown) is (answer != "y")
    assert (spent(words).units > 0) is (answer == "y")
    assert Path(words[-1]).exists() is (answer == "y")


def test_yes_skips_the_question(words: list[str]) -> None:
    code, shown = at_a_terminal([*words, "--yes"], "n")
    assert code == 0
    assert "[y/N]" not in shown


def test_a_series_says_it_too(words: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "months"
    (tmp_path / "map.toml").write_text('bounds = "0,0,0.4,0.4"\ncells = 64\nepsilon = 1\n')
    plan = ["series", "init", str(folder), str(tmp_path / "map.toml")]
    assert run([*plan, "--releases", "2"]) == 0
    add = ["series", "add", str(folder), words[1], "--period", "2026-01"]
    assert run([*add, "--dry-run"]) == 0
    assert list(folder.glob("*.parquet")) == []
    code, shown = at_a_terminal(add, "n")
    assert (code != 0, "Nothing was charged" in shown) == (True, True)
    assert htf.Series(folder).used == set()
    assert at_a_terminal(add, "y")[0] == 0
    assert htf.Series(folder).periods == ["2026-01"]
    assert run([*add, "--resume", "--dry-run"]) == 2


HARBOUR = "2683141.25", "1247500.75"  # in metres
WRONG = {
    "a decimal comma": ("x;y\n" + "0,125;0,25\n" * 40, (), "the column 'x' holds a number with a decimal comma there (to read it: --read decimal=,)"),
    "text": ("x,y\n" + "0.125,north\n" * 40, (), "the column 'y' holds no number there"),
    "metres": ("x,y\n" + f"{HARBOUR[0]},{HARBOUR[1]}\n" * 40, (), "none of the first rows is inside the bounds"),
    "times": ("x,y,t\n" + "0.125,0.25,31.12.2025 23:59\n" * 40, ("--axis", "hour:hour(t):0:24:24"), "column 't' must hold times"),
    "people": ("x,y,who\n" + "0.125,0.25,\n" * 40, ("--user", "who"), "the column 'who' names nobody there"),
    "weights": ("x,y,w\n" + "0.125,0.25,-7\n" * 40, ("--weight", "w:9"), "the column 'w' is negative there"),
    "nothing": ("x,y\n", (), "there are no rows"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_rows_are_tried_if_asked(
    case: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever a release would fail on after the curator was told that all is well."""
    text, options, wanted = WRONG[case]
    Path(words[1]).write_text(text)
    asked = [*words, "--x", "x", "--y", "y", *options, "--dry-run"]
    if case == "people":  # another unit than that of the budget
        del asked[asked.index("--budget") : asked.index("--budget") + 4]
    asked += ["--save-recipe", "asked.toml"]
    if case != "times":  # which even opening the file finds
        assert run(asked) == 0
        told = " ".join(capsys.readouterr().err.split())
        assert "Not tried: whether numbers and times can be read" in told
    else:
        assert run(asked) == 2
        lines = ('x = "x"', 'y = "y"', 'bounds = "0,0,0.4,0.4"', 'axes = ["hour:hour(t):0:24:24"]')
        Path("asked.toml").write_text("\n".join([f'source = "{words[1]}"', *lines]))
    assert run(["check", "asked.toml"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert wanted in told
    assert "for your eyes" in told
    for value in ("0.125", "0,125", "north", *HARBOUR, "31.12.2025", "-7", " 40 "):
        assert value not in told
    assert spent(words).units == 0


def test_rows_that_can_be_read(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*words, "--dry-run", "--save-recipe", "asked.toml"]) == 0
    capsys.readouterr()
    assert run(["check", "asked.toml"]) == 0
    told = capsys.readouterr()
    assert "The first rows can be released as the recipe says" in " ".join(told.err.split())
    assert "  htf release asked.toml -o asked.parquet" in told.out.splitlines()
    assert spent(words).units == 0
    Path(words[1]).write_text("lon,lat\n" + "0.1,0.2\n" * 30 + "no,number\n" * 20)
    assert run(["check", "asked.toml"]) == 0  # few odd rows are left out by a release too


def test_rows_in_another_system_are_tried_there(words: list[str]) -> None:
    x, y = HARBOUR
    Path(words[1]).write_text("x,y\n" + f"{x},{y}\n" * 40)
    words[words.index("--bounds") + 1] = "8,47,9,48"
    asked = [*words, "--x", "x", "--y", "y", "--dry-run", "--save-recipe", "asked.toml"]
    assert run(asked) == 0
    assert run(["check", "asked.toml"]) == 2
    assert run(["check", "asked.toml", "--read", "points-crs=EPSG:2056"]) == 0
