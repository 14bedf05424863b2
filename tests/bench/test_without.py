"""The library where the bench is not installed: it reads what rivals made, and says what it lacks."""

from __future__ import annotations

import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

import htf
from htf.base import plugins
from support import run_without_bench

ROOT = Path(__file__).parents[2]
BENCH = tomllib.loads((ROOT / "src/htf_bench/pyproject.toml").read_text())["project"]
COMMAND = "from htf.cli.main import main; main()"
EXTRA = 'Install it with: pip install "htf-dp[bench]"'


MATRIX = htf.FrequencyMatrix.from_dense(
    htf.Domain.from_bounds(0, 0, 4, 4, cells=4), np.arange(16).reshape(4, 4) ** 3
)


def test_releases_of_rivals_load_and_answer(tmp_path: Path) -> None:
    answers = {}
    for name in sorted(plugins.OF_THE_BENCH[plugins.MECHANISMS]):
        release = htf.publish(MATRIX, 5, name, noise="seeded:1")
        release.save(tmp_path / f"{name}.parquet")
        answers[str(tmp_path / f"{name}.parquet")] = release.count([0, 0, 1.5, 3]).count.tolist()
    code = "import htf; print([htf.Release.load(p).count([0, 0, 1.5, 3]).count.tolist() for p in sys.argv[1:]])"
    ran = run_without_bench(code, *answers)
    assert ran.stdout.strip() == str(list(answers.values())), ran.stderr


def test_estimates_of_a_rival_are_checked_where_its_package_is(tmp_path: Path) -> None:
    path = tmp_path / "rival.parquet"
    htf.publish(MATRIX, 5, "ag", noise="seeded:1").save(path)
    assert run_without_bench(COMMAND, "verify", str(path)).returncode == 0  # least squares are ours
    htf.publish(MATRIX, 5, "dawa", noise="seeded:1").save(path, overwrite=True)
    assert all(check.passed for check in htf.verify(path))
    ran = run_without_bench(COMMAND, "verify", str(path))
    assert ran.returncode == 2
    assert (
        f"The mechanism 'dawa' needs the package 'htf-dp-bench', which is not installed. {EXTRA}"
        in ran.stderr
    )


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "city", "-o", "out"),
        ("paper", "--help"),
        ("forecast", "--epsilon", "1", "--mechanism", "ag"),
    ],
)
def test_what_is_missing_is_named(words: tuple[str, ...]) -> None:
    ran = run_without_bench(COMMAND, *words)
    assert ran.returncode == 2
    assert EXTRA in ran.stderr


def test_lists_show_what_is_installed() -> None:
    commands = run_without_bench(COMMAND, "--help").stdout
    assert "forecast" in commands
    assert "evaluate" not in commands
    code = "from htf.mechanisms import registry; print(*registry())"
    assert run_without_bench(code).stdout.split() == ["htf", "htf-paper", "zones"]


def test_the_library_knows_what_the_bench_has() -> None:
    """The names in the library, in the file of the package, and of what is installed."""
    for group, names in plugins.OF_THE_BENCH.items():
        declared = BENCH["entry-points"][group]
        installed = {p.name: p.value for p in entry_points(group=group) if "htf_bench" in p.value}
        assert names == set(declared)
        assert installed == declared
    assert BENCH["name"] == plugins.BENCH


def test_both_packages_have_one_version() -> None:
    library = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert BENCH["version"] == library["version"] == htf.__version__
    assert f"htf-dp[plot]=={library['version']}" in BENCH["dependencies"]
    assert plugins.BENCH in library["optional-dependencies"][plugins.BENCH_EXTRA]
