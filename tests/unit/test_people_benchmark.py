"""benchmarks/people.py: its errors are what it says they are, and it runs from end to end."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from htf import Domain, publish
from htf.evaluation.counting import answer_boxes
from htf.evaluation.visits import synthetic_visits

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "people.py"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    found = importlib.util.spec_from_file_location("people_benchmark", SCRIPT)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    tiny = {
        "QUERIES": 50,
        "KEPT": [2, 5000],
        "USED": 1,
        "PRICES": ("0.1", "0.2"),
        "QUANTILES": ("0.9",),
    }
    for name, value in {**tiny, "ONCE_PER": ("day",)}.items():
        monkeypatch.setattr(module, name, value)
    return module


def test_the_parts_are_those_of_brute_force(script: Any) -> None:
    """Counted box by box from the points; kept are at most two of each, whichever they are."""
    made = synthetic_visits(3000)
    domain = Domain.from_bounds(*made.domain_bounds, cells=16)
    source = {"lon": made.x, "lat": made.y, "person": made.person, "time": made.time}
    data = script.Data(source, domain, "person", "time")
    exam = script.Exam(data.read_all(None), "random", 1)
    low, high = exam.boxes[0].low, exam.boxes[0].high
    cells = np.array([axis.to_cells(v) for axis, v in zip(domain.axes, (made.x, made.y), strict=True)])  # fmt: skip
    inside = (cells >= low[:, :, None]) & (cells < high[:, :, None])
    truth = inside.all(axis=1).sum(axis=1)
    assert np.array_equal(exam.counts[0], truth)
    assert exam.total == np.all((cells >= 0) & (cells < 16), axis=0).sum()

    kept = data.read(2)
    at, number = kept.exact_coordinates[None], kept.exact_counts
    bounded = ((at >= low[:, :, None]) & (at < high[:, :, None])).all(axis=1) @ number
    release = publish(kept, 1, noise="seeded:0")
    answers = answer_boxes(release, exam.boxes[0])
    found = exam.judge(kept, [release])

    def relative(error: Any) -> float:
        return float(100 * np.mean(np.abs(error) / np.maximum(truth, 20)))

    assert found.bias == pytest.approx(relative(bounded - truth))
    assert found.noise == pytest.approx(relative(answers - bounded))
    assert found.whole == found.least == found.most == pytest.approx(relative(answers - truth))
    assert found.scaled == pytest.approx(relative(answers * exam.total / number.sum() - truth))
    assert 0 < found.whole <= found.bias + found.noise


def test_a_k_that_keeps_all_has_no_bias_and_ends_the_sweep(script: Any) -> None:
    made = synthetic_visits(2000)
    domain = Domain.from_bounds(*made.domain_bounds, cells=16)
    source = {"lon": made.x, "lat": made.y, "person": made.person}
    data = script.Data(source, domain, "person", None)
    script.KEPT.append(10_000)
    exams = {"random": script.Exam(data.read_all(None), "random", 1)}
    found = dict(script.sweep(data, exams, ("1",)))
    assert list(found) == [2, 5000]
    few, whole = (found[most]["random", "1"] for most in found)
    assert few.bias > 0
    assert whole.bias == 0
    assert whole.noise == whole.whole == whole.scaled


def test_it_runs(script: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "people.png"
    small = ["--visits", "2000", "--cells", "16", "--runs", "1", "--draws", "3"]
    script.main([*small, "--picture", str(picture)])
    told = capsys.readouterr().out
    assert told.count("###") == 5
    assert "| 5,000 | 0.0% | 100% | 0 |" in told
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_visits_are_of_people_with_a_few_and_with_hundreds() -> None:
    made, again = synthetic_visits(50_000, seed=3), synthetic_visits(50_000, seed=3)
    for name in ("x", "y", "person", "time"):
        assert len(getattr(made, name)) == 50_000
        assert np.array_equal(getattr(made, name), getattr(again, name))
    each = np.bincount(made.person)
    assert each.min() >= 1
    assert 4 <= np.median(each) <= 6
    assert 150 <= np.quantile(each, 0.99) <= 350
    # Someone's visits are nearer to each other than to other people's.
    near = np.hypot(np.diff(made.x), np.diff(made.y))
    same = np.diff(made.person) == 0
    shuffled = np.random.default_rng(1).permutation(50_000)
    far = np.hypot(np.diff(made.x[shuffled]), np.diff(made.y[shuffled]))
    assert near[same].mean() < 0.9 * far.mean()
