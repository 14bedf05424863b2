"""Benchmarks that take minutes run in small, and what they compare is the same work."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import duckdb

INGEST = Path(__file__).parents[2] / "benchmarks" / "ingest.py"


def test_reading_is_measured_against_a_plain_count(tmp_path: Path) -> None:
    """The benchmark itself asserts that the plain count finds the same cells and records."""
    options = ["--points", "0.02", "--sizes", "0.005,0.01", "--rounds", "1", "--memory", "200MB"]
    command = [sys.executable, str(INGEST), "--folder", str(tmp_path), *options]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    ratios = dict(re.findall(r"^\| (plain|records|people) \| \S+ \| (\S+) \|", told, re.M))
    assert ratios["plain"] == "1.00"
    assert ratios.keys() == {"plain", "records", "people"}
    assert (
        len(re.findall(r"^\| \S+ M \| (?:records|people) \| (?:none|200MB) \| \d+", told, re.M))
        == 8
    )
    assert len(re.findall(r"^\| .* \| [+-]\d+% \|$", told, re.M)) == 9  # the stages


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


def test_mutants_are_small_changes_that_still_compile() -> None:
    spec = spec_from_file_location("mutants", INGEST.parent / "mutants.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["mutants"] = module  # where its dataclass looks for its names
    spec.loader.exec_module(module)
    source = (INGEST.parents[1] / "src" / "htf" / "curator" / "medians.py").read_text()
    found = module.find_mutants(source)
    assert len(found) > 150
    assert len({mutant.source for mutant in found}) > 0.95 * len(found)
    for mutant in found:
        assert mutant.source != source
        compile(mutant.source, "medians.py", "exec")
    halved = [
        m.after for m in found if m.before == "2" and "UTILITY_SENSITIVITY" in _line(source, m)
    ]
    assert halved == ["3", "1"] * 2  # the rate of the float path, and that of the exact one


def _line(source: str, mutant: Any) -> str:
    return str(source.splitlines()[mutant.line - 1])
