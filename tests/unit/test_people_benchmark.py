"""benchmarks/people.py: its errors are what it says they are, and it runs from end to end."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from htf import Domain, publish
from htf.synthetic.visits import synthetic_visits

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "people.py"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    found = importlib.util.spec_from_file_location("people_benchmark", SCRIPT)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    for name, value in {"QUERIES": 50, "KEPT": [2, 5000], "SHARES": (4,)}.items():
        monkeypatch.setattr(module, name, value)
    return module


def read_visits(script: Any) -> tuple[Any, Any]:
    made = synthetic_visits(3000)
    domain = Domain.from_bounds(*made.domain_bounds, cells=16)
    source = {"lon": made.x, "lat": made.y, "person": made.person}
    return made, script.Data(source, domain, "person")


def inside_boxes(made: Any, data: Any, boxes: Any) -> Any:
    """Whether each visit lies in each box, from the points themselves."""
    axes, points = data.domain.axes, (made.x, made.y)
    cells = np.array([axis.to_cells(v) for axis, v in zip(axes, points, strict=True)])
    return ((cells >= boxes.low[:, :, None]) & (cells < boxes.high[:, :, None])).all(axis=1)


def test_true_counts_are_those_of_brute_force(script: Any) -> None:
    """Records one by one; people as one over the number of their records on the map."""
    made, data = read_visits(script)
    records = script.Exam(data, data.records, 1, 1, 20)
    people = script.Exam(data, data.read_people(2**20), 1, 2**20, 1.0)
    for size in script.SIZES:
        inside = inside_boxes(made, data, records.boxes[0][size])
        assert np.array_equal(records.truth[0][size], inside.sum(axis=1))
        on_map = (made.x >= data.domain.axes[0].low) & (made.x < data.domain.axes[0].high)
        on_map &= (made.y >= data.domain.axes[1].low) & (made.y < data.domain.axes[1].high)
        _, person = np.unique(made.person, return_inverse=True)
        weight = on_map / np.maximum(np.bincount(person, on_map), 1)[person]
        assert np.array_equal(records.boxes[0][size].low, people.boxes[0][size].low)
        assert np.allclose(people.truth[0][size], inside @ weight, atol=2e-3)


def test_errors_and_coverage_are_what_they_say(script: Any) -> None:
    _, data = read_visits(script)
    exam = script.Exam(data, data.read_people(2**20), 1, 2**20, 1.0)
    release = publish(data.read_people(), 1, noise="seeded:0")
    judged = exam.judge([release])
    for number, size in enumerate(script.SIZES):
        answers, truth = release.count(exam.rows(0, size)), exam.truth[0][size]
        error = 100 * np.mean(np.abs(answers.count - truth) / np.maximum(truth, 1.0))
        assert judged.errors[0, number] == pytest.approx(error)
        covered = np.mean((answers.low <= truth) & (truth <= answers.high))
        assert judged.covered[0, number] == pytest.approx(covered)


def test_it_runs_from_end_to_end(
    script: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "people.png"
    small = ["--visits", "3000", "--cells", "16", "--runs", "1"]
    script.main([*small, "--shares", "--picture", str(picture)])
    printed = capsys.readouterr().out
    for title in ("### People", "### Shares", "### Records, in hindsight", "### Records, auto"):
        assert title in printed
    assert picture.stat().st_size > 1000
