"""`htf evaluate` and `htf paper` as a researcher meets them: real processes, killed ones too."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htf.cli.main import run
from htf.forecasts.places import City
from htf_bench.cli.experiments import progress_of_trials
from htf_bench.results import CONSEQUENCE, PART_FILES, PARTS, WARNING
from htf_bench.specs import label_of
from support import wait_for

BOUNDS = "-74.3,40.4,-73.6,41.0"
MECHANISMS = "htf-paper,htf-paper:height=4,htf-paper:epsilon_partition_level=0.05"


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("researcher") / "points.parquet"
    generator = np.random.default_rng(1)
    lon, lat = generator.normal(-74, 0.05, 20_000), generator.normal(40.7, 0.05, 20_000)
    pq.write_table(pa.table({"lon": lon, "lat": lat}), place)
    return place


def arguments(points: Path, out: Path, *changes: Any) -> list[str]:
    usual = [
        "evaluate", points, "--bounds", BOUNDS, "--cells", "128", "--mechanisms", MECHANISMS,
        "--epsilons", "0.1,0.5", "--workloads", "random,2%,data-1%", "--queries", "100", "--runs", "2",
        "--jobs", "1", "-o", out,
    ]  # fmt: skip
    return [str(word) for word in [*usual, *changes]]


def htf(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "htf", *words], capture_output=True, text=True, check=False
    )


def rows(folder: Path) -> list[dict[str, Any]]:
    table = pq.read_table(folder / "results.parquet").drop_columns(["seconds"])
    return list(table.to_pylist())


def kept(folder: Path) -> list[Path]:
    """The parts that are finished: one that is being written has another name."""
    return list((folder / PARTS).glob(PART_FILES))


def trials_in(parts: Iterable[Path]) -> list[str]:
    """Each once for each part that has it."""
    return [trial for part in parts for trial in set(pq.read_table(part)["trial"].to_pylist())]


@pytest.fixture(scope="module")
def evaluated(points: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("evaluated")
    ran = htf(*arguments(points, out))
    assert ran.returncode == 0, ran.stderr
    return out, ran.stdout


def test_evaluate_writes_and_marks_everything(evaluated: tuple[Path, str]) -> None:
    out, told = evaluated
    told = " ".join(told.split())
    assert told.count(WARNING) == 2
    assert CONSEQUENCE in told
    assert "zero (floor)" in told
    assert "drawn from the sensitive data" in told
    # The mechanism that cannot work at these budgets is named, and stopped no other.
    assert "4 trials without a result" in told
    assert "BudgetError" in told
    found = rows(out)
    assert {row["mechanism"] for row in found} >= {"zero", "htf-paper"}
    assert {row["workload"] for row in found} == {"", "random", "2%", "data-1%"}
    assert {row["run"] for row in found} == {0, 1}
    assert {row["epsilon"] for row in found} == {0.1, 0.5}
    assert all(np.isfinite(row["value"]) for row in found)
    for name in ("README.md", "summary.md"):
        text = (out / name).read_text()
        assert WARNING in text
        assert CONSEQUENCE in text
    assert "drawn from the data" in (out / "README.md").read_text()
    assert (out / "points.png").stat().st_size > 10_000
    metadata = pq.read_metadata(out / "results.parquet").metadata
    assert WARNING in metadata[b"warning"].decode()


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made-up city of 32 x 32 cells."""
    matrix = City("town", 20_000, 32).load()
    counts = np.zeros((32, 32), dtype=np.int64)
    counts[tuple(matrix.exact_coordinates)] = matrix.exact_counts
    place = tmp_path_factory.mktemp("town") / "town.npy"
    np.save(place, counts)
    return place


@pytest.fixture(scope="module")
def tuned(town: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("tuned")
    asked = ["--epsilons", "0.2,1", "--workloads", "places-2,places-8,10%", "--queries", "100"]
    ran = htf(
        "evaluate", str(town), "--mechanisms", "tuned", *asked, "--runs", "3", "--jobs", "1", "-o", str(out)
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return out, ran.stdout


def test_the_best_setting_of_a_rival_is_the_best(tuned: tuple[Path, str]) -> None:
    """Found again by going through all results one by one."""
    errors: dict[tuple[Any, ...], dict[str, dict[int, float]]] = {}
    for row in rows(tuned[0]):
        cell = row["epsilon"], row["workload"], row["metric"]
        label = label_of(row["mechanism"], row["parameters"])
        errors.setdefault(cell, {}).setdefault(label, {})[row["run"]] = row["value"]
    picked = pq.read_table(tuned[0] / "rivals.parquet").to_pylist()
    assert len(picked) == 2 * 3 * 4 * 5  # epsilons, workloads, metrics, rivals
    for row in picked:
        of_cell = errors[row["epsilon"], row["workload"], row["metric"]]
        names = ("zero", "uniform") if row["rival"] == "floors" else (row["rival"],)
        means = {
            label: sum(runs.values()) / 3
            for label, runs in of_cell.items()
            if label.split(":")[0] in names
        }
        assert (
            len(means)
            == {"ug": 4, "ag": 60, "privtree": 11, "quadtree": 5, "floors": 2}[row["rival"]]
        )
        assert row["rival_error"] == pytest.approx(min(means.values()))
        assert means[row["setting"]] == pytest.approx(row["rival_error"])
        least = min(sum(runs.values()) / 3 for label, runs in of_cell.items() if label != "htf")
        assert row["is_best"] == (row["rival_error"] == pytest.approx(least))
        ratios = [of_cell["htf"][run] / of_cell[row["setting"]][run] for run in range(3)]
        assert row["ratio"] == pytest.approx(np.exp(np.mean(np.log(ratios))))
        assert row["low"] < row["ratio"] < row["high"]


def test_the_screen_says_which_setting_was_best(tuned: tuple[Path, str]) -> None:
    out, told = tuned
    assert "Settings of each rival: ug 4, ag 60, privtree 11, quadtree 5." in told
    assert " ".join(told.split()).count(WARNING) == 2
    for measure in ("or to 20 where that is less", "or to 0.1 % of all records where that is less"):
        assert " ".join(told.split()).count(measure) == 2  # one table for each epsilon
    assert "places-2 *" in told
    page = (out / "rivals.md").read_text()
    assert WARNING in page
    best = [row for row in pq.read_table(out / "rivals.parquet").to_pylist() if row["is_best"]]
    assert page.count("(best)") == len(best) == 2 * 3 * 4
    for row in best:
        if row["metric"] == "MRE":
            assert f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f})" in told
    assert "ug, best setting" in (out / "summary.md").read_text()


def test_other_mechanisms_can_be_compared_with_tuned_rivals(
    town: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A rival that is named stands for itself, with its published setting."""
    asked = ["--epsilons", "1", "--workloads", "places-4", "--queries", "20", "--runs", "1"]
    command = ["evaluate", str(town), "--mechanisms", "singular,ag,tuned", *asked]
    assert run([*command, "--jobs", "1", "-o", str(tmp_path)]) == 0
    picked = pq.read_table(tmp_path / "rivals.parquet").to_pylist()
    assert {row["mechanism"] for row in picked} == {"singular", "ag"}
    named = [row for row in picked if row["mechanism"] == "ag" and row["rival"] == "ag"]
    assert all(row["ratio"] >= 1 for row in named)
    assert "htf," not in capsys.readouterr().out


def test_places_show_both_errors(
    town: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--mechanisms", "ug", "--epsilons", "1", "--queries", "20", "--runs", "1"]
    command = ["evaluate", str(town), *asked, "--jobs", "1", "--workloads"]
    assert run([*command, "places-2,places-4", "-o", str(tmp_path / "places")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "0.1 % of all records" in told
    assert "places-4 *" in told
    assert not (tmp_path / "places" / "rivals.md").exists()
    assert run([*command, "2%", "-o", str(tmp_path / "areas")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "town, epsilon 1: mean relative error in %" in told
    assert "0.1 % of all records" not in told


def test_the_table_is_the_same_with_two_processes(
    points: Path, evaluated: tuple[Path, str], tmp_path: Path
) -> None:
    assert run(arguments(points, tmp_path, "--jobs", "2")) == 0
    assert rows(tmp_path) == rows(evaluated[0])


def test_a_killed_bench_goes_on_where_it_stopped(
    points: Path, evaluated: tuple[Path, str], tmp_path: Path
) -> None:
    """Killed outright after its first part; nothing that was kept is run again, and its processes are gone.

    What was finished and not kept yet is run again: that is how it should be.
    """
    more = ["--runs", "1000"]  # more than any machine gets through before it is killed
    command = [sys.executable, "-m", "htf", *arguments(points, tmp_path, *more)]
    bench = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: kept(tmp_path) or bench.poll() is not None)
        children = _children(bench.pid)
    finally:
        bench.kill()
        bench.wait()
    assert bench.returncode == -signal.SIGKILL
    assert children
    parts = {path: path.stat().st_mtime_ns for path in kept(tmp_path)}
    assert 0 < len(trials_in(parts)) < 8 * 1000  # it was stopped in the middle
    again = htf(*arguments(points, tmp_path, "--runs", "2"))
    assert again.returncode == 0, again.stderr
    assert rows(tmp_path) == rows(evaluated[0])
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in parts.items())
    assert max(Counter(trials_in(kept(tmp_path))).values()) == 1
    assert ", of which 0 are done already" not in again.stdout
    wait_for(lambda: not any(_is_alive(child) for child in children))


def _children(pid: int) -> list[int]:
    """Of Linux's process table."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


def _is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.slow
def test_paper_draws_its_figures_and_judges_its_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole way, on small sets and short ladders."""
    from htf_bench import paper
    from htf_bench.datasets import GaussianSet

    sets = (GaussianSet("gaussian", 5, 1, points=5000, cells=32),)
    small = paper.Scale(2, 50, (4, 8), ("0.1", "0.5"), ("0.1", "0.5"), sets)
    monkeypatch.setattr(paper, "QUICK", small)
    np.save(tmp_path / "counts.npy", np.eye(16, dtype=int) * 9)
    out = tmp_path / "out"
    counts = str(tmp_path / "counts.npy")
    assert run(["paper", "--quick", "--points", counts, "--runs", "1", "-o", str(out)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert told.count(WARNING) == 2
    for figure in ("data-dependent", "grids", "data-independent"):
        for name in ("gaussian", "counts"):
            assert (out / f"{figure}-{name}.png").stat().st_size > 10_000
    assert (out / "all-methods.png").stat().st_size > 10_000
    claims = (out / "claims.md").read_text()
    assert WARNING in claims
    assert CONSEQUENCE in claims
    assert "HTF clearly outperforms kd-tree for all height settings." in claims
    assert "| gaussian | counts |" in claims


def test_figures_carry_the_marking(evaluated: tuple[Path, str]) -> None:
    from htf_bench.figures import draw_dots
    from htf_bench.results import Results, Store
    from htf_bench.specs import BenchSpec
    from htf_bench.summary import contenders

    results = Results(Store(evaluated[0]).read())
    entrants = contenders([BenchSpec("zero"), BenchSpec.of("htf-paper")])
    figure = draw_dots(results, [("a", "points", "random")], ["0.5"], entrants, "title")
    text = " ".join(" ".join(part.get_text() for part in figure.texts).split())
    assert WARNING in text
    assert CONSEQUENCE in text


def mistakes(points: Path, out: Path) -> dict[str, tuple[list[str], str]]:
    def but(*changes: Any) -> list[str]:
        return arguments(points, out, *changes)

    return {
        "no mechanism": (but("--mechanisms", "magic"), "no mechanism 'magic'; there are"),
        "no parameter": (but("--mechanisms", "htf-paper:size=1"), "no parameter 'size'"),
        "half a setting": (but("--mechanisms", "htf-paper:height"), "got 'htf-paper:height'"),
        "no mechanisms": (but("--mechanisms", ","), "takes names with commas"),
        "bad workload": (but("--workloads", "random,tiny"), "got 'tiny'"),
        "no side": (
            but("--workloads", "places-x"),
            "whole number of cells, 1 or more, got 'places-x'",
        ),
        "large side": (but("--workloads", "places-129"), "do not fit on a map of 128 x 128 cells"),
        "only a floor": (but("--mechanisms", "zero,tuned"), "got 'zero'"),
        "no boxes file": (but("--workloads", "file:no.csv"), "there is no file no.csv"),
        "bad epsilon": (but("--epsilons", "0.1,-1"), "got '-1'"),
        "empty epsilon": (but("--epsilons", "0.1,"), "got ''"),
        "no file": (arguments(Path("no.parquet"), out), "there is no file no.parquet; data sets"),
        "no column": (but("--x", "longitude"), "no column 'longitude'"),
        "swapped bounds": (but("--bounds", "-73,40,-74,41"), "west must be less than east"),
        "no runs": (but("--runs", "0"), "--runs"),
        "no jobs": (but("--jobs", "0"), "--jobs"),
        "no matrix": (["evaluate", "no.npz:A", "-o", str(out)], "there is no file no.npz"),
        "a map for the city": (
            ["evaluate", "city", "--cells", "64", "-o", str(out)],
            "its own map",
        ),
        "cells for a matrix": (
            ["evaluate", "m.npy", "--cells", "64", "-o", str(out)],
            "a matrix has its own cells",
        ),
        "paper without bounds": (
            ["paper", "--points", str(points), "-o", str(out)],
            "got 1 files and 0 bounds",
        ),
        "output is a file": (but("-o", points), "is a file"),
    }


@pytest.mark.parametrize("case", list(mistakes(Path(), Path())))
def test_mistakes_are_named_before_anything_is_run(
    case: str, points: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words, says = mistakes(points, tmp_path / "never")[case]
    assert run(words) == 2
    told = capfd.readouterr()
    assert says in " ".join(told.err.split())
    assert "Traceback" not in told.err + told.out
    assert not (tmp_path / "never").exists()


def test_progress_says_what_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from htf_bench.cli import experiments
    from htf_bench.runner import Progress

    monkeypatch.setattr(
        experiments, "SECONDS_BETWEEN_LINES", -1.0
    )  # also where the clock stands still
    with progress_of_trials(10, 2) as tell:
        tell(Progress(5, 10, 125.0, "city: ag"))
    assert "5 of 10 trials, 2 min left" in capsys.readouterr().err
