"""Benchmarks that take minutes run in small, and what they compare is the same work."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pytest

ROOT = Path(__file__).parents[2]
INGEST, MUTANTS = ROOT / "benchmarks" / "ingest.py", ROOT / "benchmarks" / "mutants.py"


@pytest.mark.slow
def test_reading_is_measured_against_a_plain_count(tmp_path: Path) -> None:
    """The benchmark itself asserts that the plain count finds the same cells and records."""
    options = ["--points", "0.02", "--sizes", "0.005,0.01", "--rounds", "1"]
    options += ["--memory", "200MB", "--memory-sizes", "0.01"]  # six processes, not twelve
    command = [sys.executable, str(INGEST), "--folder", str(tmp_path), *options]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    ratios = dict(re.findall(r"^\| (plain|records|people) \| \S+ \| (\S+) \|", told, re.M))
    assert ratios["plain"] == "1.00"
    assert ratios.keys() == {"plain", "records", "people"}
    assert (
        len(re.findall(r"^\| \S+ M \| (?:records|people) \| (?:none|200MB) \| \d+", told, re.M))
        == 4
    )
    assert len(re.findall(r"^\| .* \| [+-]\d+% \|$", told, re.M)) == 11  # the stages


def test_zones_are_measured_against_a_plain_count(tmp_path: Path) -> None:
    options = ["--points", "0.01", "--zones", "40", "--rounds", "1", "--folder", str(tmp_path)]
    command = [sys.executable, str(INGEST.with_name("zones_ingest.py")), *options]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "40 zones of" in told
    assert re.findall(r"^\| (\w+) \| [0-9.]+ \| [0-9.]+ \|", told, re.M)[:3] == [
        "plain",
        "records",
        "people",
    ]


def test_few_people_of_the_made_up_points_are_cut(tmp_path: Path) -> None:
    """As the benchmark says of them: ten records each, and one to five in a hundred with more than 30."""
    code = f"import sys; sys.path.insert(0, {str(INGEST.parent)!r}); import ingest; from pathlib import Path; "
    code += f"ingest.make_points(Path({str(tmp_path / 'points.parquet')!r}), 50_000)"
    subprocess.run([sys.executable, "-c", code], check=True)
    people = 'SELECT "user", count(*) AS n FROM points GROUP BY 1'
    query = f"SELECT count(*), avg(n), avg((n > 30)::INT), max(n) FROM ({people})"
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW points AS FROM '{tmp_path}/points.parquet'")
        number, mean, cut, most = connection.execute(query).fetchall()[0]
    assert 4_900 < number <= 5_000
    assert 10 <= mean < 10.2
    assert 0.01 < cut < 0.05
    assert most > 60


@pytest.fixture(scope="module")
def mutants() -> ModuleType:
    spec = spec_from_file_location("mutants", MUTANTS)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["mutants"] = module  # where its dataclass looks for its names
    spec.loader.exec_module(module)
    return module


def test_mutants_are_small_changes_that_still_compile(mutants: ModuleType) -> None:
    source = (ROOT / "src/htf/curator/medians.py").read_text()
    found = mutants.find_mutants(source)
    assert len(found) > 150
    assert len({mutant.source for mutant in found}) > 0.95 * len(found)
    for mutant in found:
        assert mutant.source != source
        compile(mutant.source, "medians.py", "exec")
    halved = [
        m.after for m in found if m.before == "2" and "UTILITY_SENSITIVITY" in _line(source, m)
    ]
    assert halved == ["3", "1"] * 2  # the rate of the float path, and that of the exact one


def test_a_charge_after_the_answer_is_among_the_mutants(mutants: ModuleType) -> None:
    found = mutants.find_mutants((ROOT / "src/htf/curator/curator.py").read_text())
    (late,) = [m for m in found if m.before.startswith("self._ledger.charge(measurement); answer")]
    assert late.place == "Curator.measure"
    assert late.source.index("answer = measurement") < late.source.index("self._ledger.charge(")
    compile(late.source, "curator.py", "exec")


def test_the_plan_of_the_mutants_is_up_to_date(mutants: ModuleType) -> None:
    """Every mistake can be made, and every survivor that was looked at is still a mutant."""
    plan = tomllib.loads(MUTANTS.with_suffix(".toml").read_text())
    for file, tests in plan["tests"].items():
        found = {mutant.key for mutant in mutants.find_mutants((ROOT / file).read_text())}
        known = [
            (h["place"], h["line"], h["change"]) for h in plan["harmless"] if h["file"] == file
        ]
        assert set(known) <= found, file
        assert len(set(known)) == len(known), file
        assert all((ROOT / test.split("::")[0]).exists() for test in tests)
    assert {h["file"] for h in plan["harmless"]} <= plan["tests"].keys()
    for mistake in plan["mistakes"]:
        source = (ROOT / mistake["file"]).read_text()
        assert source.count(mistake["before"]) == 1, mistake["what"]
        compile(source.replace(mistake["before"], mistake["after"]), mistake["file"], "exec")


def test_a_mutant_of_a_compiled_loop_is_not_hidden_by_machine_code(mutants: ModuleType) -> None:
    """The test calls a loop of another file, which was compiled with the one that is changed."""
    file = "src/htf/curator/kernels.py"
    source = (ROOT / file).read_text()
    (dropped,) = [
        mutant.number
        for mutant in mutants.find_mutants(source)
        if (mutant.place, mutant.change)
        == ("add_to_trees", "number_tree[node] += number  ->  pass")
    ]
    test = "tests/properties/test_hilbert.py::test_costs_are_the_deviations_rounded_down"
    command = [sys.executable, str(MUTANTS), file, "--only", str(dropped), "--tests", test]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.stdout.endswith(f"{file}: 1 made, 1 caught, 0 harmless, 0 left\n"), ran.stderr


def _line(source: str, mutant: Any) -> str:
    return str(source.splitlines()[mutant.line - 1])
