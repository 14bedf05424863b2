"""What other tools and people read: types, the citation, the workflow, the templates of issues."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import htf
from support import require_package

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

CONSUMER = '''
"""A program that uses HTF, checked as strictly as mypy can."""

import pytest

import htf
from htf.mechanisms import Histogram, Mechanism, Steps, Window
from htf.query.answer import Answer
from htf.query.tilings import Tiling
from htf.verification import Check


def count_twice(release: htf.Release, box: list[float]) -> float:
    answers: Answer = release.count([box, box])
    return float(answers.count.sum())


class Whole(Mechanism):
    name = "whole"
    citation = "an example"

    def build(self, window: Window) -> Steps[Histogram]:
        noisy = yield from window.count([0], window.epsilon, "whole")
        return Histogram(noisy, noisy, 1.0 / noisy, "last-count")


domain = htf.Domain.from_bounds(0, 0, 1, 1, cells=4)
matrix: htf.FrequencyMatrix = htf.FrequencyMatrix.from_dense(domain, [[1] * 4] * 4)
checks: list[Check] = htf.verify(htf.publish(matrix, 0.5, Whole()))
zones: Tiling = htf.grid_zones(domain, columns=2)
left: htf.Epsilon = htf.BudgetFile("budget.sqlite", "pings").account().left
'''


@pytest.mark.slow
def test_a_program_that_uses_the_package_is_checked_strictly(tmp_path: Path) -> None:
    """As installed: without `py.typed` mypy would not look into the package at all."""
    require_package("mypy", "mypy")
    (tmp_path / "good.py").write_text(CONSUMER)
    (tmp_path / "bad.py").write_text(
        "import htf\n\nhtf.publish('points.csv', 0.5).count().nothing\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent",
         "--cache-dir", str(tmp_path / "cache"), "good.py", "bad.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = re.findall(r"^(\w+\.py):\d+: error: .*\[([\w-]+)\]$", ran.stdout, re.M)
    assert sorted(found) == [("bad.py", "arg-type"), ("bad.py", "attr-defined")], ran.stdout
    assert (Path(htf.__file__).parent / "py.typed").exists()


def test_citation_and_changelog_are_of_this_version() -> None:
    yaml = require_package("yaml", "PyYAML")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(cited)
    assert (cited["version"], cited["license"]) == (PROJECT["version"], PROJECT["license"])
    version, date = re.findall(
        r"^## (\S+)(?: \((.+)\))?$", (ROOT / "CHANGELOG.md").read_text(), re.M
    )[0]
    assert (version, date) == (cited["version"], str(cited["date-released"]))
    (paper,) = cited["references"]
    assert (paper["type"], paper["year"], len(paper["authors"])) == ("conference-paper", 2021, 5)


def test_the_workflow_runs_what_we_run_on_every_python() -> None:
    yaml = require_package("yaml", "PyYAML")
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    assert {"run": ".ci/run"} in jobs["test"]["steps"]
    assert {"run": "make dist"} in jobs["dist"]["steps"]
    tried = jobs["test"]["strategy"]["matrix"]["python"]
    named = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if ":: Python :: 3." in c]
    assert tried == named
    assert PROJECT["requires-python"] == f">={tried[0]}"


def test_issues_lead_privacy_concerns_to_the_private_channel() -> None:
    yaml = require_package("yaml", "PyYAML")
    folder = ROOT / ".github/ISSUE_TEMPLATE"
    forms = {path.stem: yaml.safe_load(path.read_text()) for path in folder.glob("*.yml")}
    assert set(forms) == {"bug", "config", "feature"}
    for name in ("bug", "feature"):
        assert {"name", "description", "body"} <= set(forms[name])
    asked = " ".join(one["attributes"].get("description", "") for one in forms["bug"]["body"])
    assert "`HTF_DEBUG=1` may show data: paste one only if your data are made up" in asked
    assert "SECURITY.md" in forms["config"]["contact_links"][0]["about"]
    assert "private security advisory" in (ROOT / "SECURITY.md").read_text()
