"""`htf release --dry-run`, and the question before a charge at a terminal."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from htf import BudgetFile, Epsilon
from htf.cli.main import run


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
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
    assert "nothing was charged or written" in told
    assert spent(words).units == 0
    assert not Path(words[-1]).exists()


@pytest.mark.parametrize("answer", [True, False])
def test_a_terminal_is_asked(
    words: list[str], answer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def confirm(text: str, **_: object) -> bool:
        import click

        asked.append(text)
        if not answer:
            raise click.Abort
        return True

    monkeypatch.setattr("click.confirm", confirm)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert (run(words) == 0) is answer
    assert asked == ["Charge ε 1 and make the release?"]
    assert (spent(words).units > 0) is answer
    assert Path(words[-1]).exists() is answer


def test_yes_skips_the_question(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.confirm", lambda *_, **__: pytest.fail("it asked"))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert run([*words, "--yes"]) == 0
