"""Compiled loops work wherever htf is installed, and are there before anything is charged."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import htf
from htf import BudgetError, BudgetFile, Domain, FrequencyMatrix
from htf.base.compiled import compiled, source_files, temporary_folder
from htf.curator import curve_kernels as hilbert_kernels
from htf.curator import kernels
from htf.curator.catalogue import MEASUREMENTS
from htf.curator.rehearsal import load_loops, rehearsal
from htf.mechanisms import registry

SOURCE = Path(htf.__file__).parent
NO_FOLDER = "/dev/null/none"  # nobody can make it, not even root
RELEASE = (
    "release points.csv --bounds 0,0,1,1 --cells 4 --epsilon 1 --noise fast --mechanism uniform "
    "--budget budget.db --dataset d -o release.parquet"
)


# --- before the charge ----------------------------------------------------------------------------


def test_a_question_of_each_kind_is_rehearsed() -> None:
    assert {type(measurement) for measurement, _ in rehearsal()} == set(MEASUREMENTS)


def test_no_mechanism_needs_a_loop_that_was_not_loaded() -> None:
    """Loops are compiled for each combination of types: after the rehearsal none is new."""

    def known() -> dict[str, int]:
        modules = {**vars(kernels), **vars(hilbert_kernels)}
        return {n: len(f.signatures) for n, f in modules.items() if hasattr(f, "signatures")}

    load_loops()
    before = known()
    rng = np.random.default_rng(1)
    matrix = FrequencyMatrix.from_dense(
        Domain.square(0, 0, 1, cells=32), rng.integers(0, 50, (32, 32))
    )
    released = 0
    for name in registry():
        for epsilon in ("0.1", "20"):
            try:
                htf.publish(matrix, epsilon, name, noise="seeded:1")
                released += 1
            except BudgetError:  # too little for this one
                continue
    assert released >= len(registry())
    assert known() == before


def test_loops_that_cannot_be_loaded_cost_nothing(tmp_path: Path) -> None:
    broken = copy_of_htf(tmp_path)
    text = "raise ImportError('Numba needs NumPy 2.4 or less. Got NumPy 9.')\n"
    (broken / "curator" / "kernels.py").write_text(text)
    budget = BudgetFile.create(tmp_path / "budget.db", "d", 3)
    ran = run_htf(broken, RELEASE)
    assert ran.returncode == 2
    assert "compiled loops of the curator cannot be loaded (ImportError: Numba needs" in ran.stderr
    assert budget.account().entries == ()


def test_loops_let_go_of_pythons_lock() -> None:
    """So that a server answers others while it counts."""
    assert compiled(lambda number: 2 * number).targetoptions["nogil"] is True


def test_a_loop_is_stamped_with_every_file_its_code_comes_from() -> None:
    """Numba itself notices changes of a loop's own file only."""
    from htf.query import kernels as boxes
    from htf.query import polygon_kernels, tree_kernels

    shared = {"columns.py", "noise_kernels.py", "kernels.py"}
    for loop, own in (
        (boxes.finish_leaves, set()),
        (tree_kernels.finish_tree, {"prefetch.py", "tree_kernels.py"}),
        (polygon_kernels.measure_tree, {"tree_kernels.py", "polygon_kernels.py"}),
    ):
        files = source_files(loop.py_func)
        assert {file.name for file in files} >= shared | own
        assert {file.name for file in files} >= {"level.py", "noise_law.py"}  # and their constants
        stamps = [(file.name, int(file.stat().st_mtime), file.stat().st_size) for file in files]
        kept = loop._cache._cache_file._source_stamp
        assert [(name, time // 10**9, size) for name, time, size in kept] == stamps


def test_no_loop_takes_a_constant_of_a_file_that_is_not_watched() -> None:
    """Names in capitals are constants, which do not say where they come from."""
    found = 0
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        taken = re.findall(r"^from (htf[\w.]*) import (.*[A-Z]{2}.*)$", text, re.M)
        if "@compiled" not in text:
            continue
        found += 1
        module = importlib.import_module(
            ".".join(["htf", *path.relative_to(SOURCE).with_suffix("").parts])
        )
        loops = [loop.py_func for loop in vars(module).values() if hasattr(loop, "py_func")]
        watched = {
            file
            for loop in loops
            for file in source_files(loop)
            if loop.__module__ == module.__name__
        }
        for source, _ in taken:
            assert Path(str(sys.modules[source].__file__)) in watched, f"{path.name}: {source}"
    assert found >= 6


# --- before they are compiled ----------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["htf", "ug", "hb"])
@pytest.mark.parametrize("axes", [2, 3])
def test_loops_as_written_give_the_same_bits(
    mechanism: str, axes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(axes)
    shape = (64, 64) if axes == 2 else (16, 16, 12)
    domain = Domain(tuple(htf.Axis(name, 0, n, n) for name, n in zip("xyz", shape, strict=False)))
    counts = random.poisson(random.gamma(0.3, 30, shape))
    release = htf.publish(
        FrequencyMatrix.from_dense(domain, counts), 1, mechanism, noise="seeded:1"
    )
    low = random.random((40, axes)) * shape
    boxes = np.hstack([low, low + random.random((40, axes)) * shape])
    expected = release.count(boxes).to_columns()
    monkeypatch.setattr("htf.base.compiled._mode.as_written", True)
    found = release.count(boxes).to_columns()
    for name, column in expected.items():
        assert np.array_equal(found[name], column), name


def test_the_first_box_of_a_process_loads_little(tmp_path: Path) -> None:
    """Numba, pandas and SciPy take longer to load than the answer."""
    domain = Domain.from_bounds(0, 0, 8, 8, cells=8)
    matrix = FrequencyMatrix.from_dense(domain, np.arange(64).reshape(8, 8))
    htf.publish(matrix, 1, noise="seeded:1").save(tmp_path / "r.parquet")
    text = (
        "import sys, htf; release = htf.Release.load('r.parquet'); release.count([1, 1, 5.5, 6])\n"
        "print({'numba', 'pandas', 'scipy', 'matplotlib', 'duckdb'} & set(sys.modules))\n"
        "release.count([[1, 1, 5.5, 6]] * 9)\nprint('numba' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["set()", "True"]


# --- where they are kept --------------------------------------------------------------------------


def copy_of_htf(tmp_path: Path) -> Path:
    """In which nobody may write a cache, and with points to publish beside it."""
    own = tmp_path / "installed" / "htf"
    shutil.copytree(SOURCE, own, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (own, *own.rglob("*")):
        if folder.is_dir():
            (folder / "__pycache__").write_text("not a folder")
    (tmp_path / "points.csv").write_text("lon,lat\n0.5,0.5\n0.25,0.75\n")
    return own


def without_a_home(package: Path, temporary: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "HOME"}
    kept.pop("NUMBA_CACHE_DIR", None)
    return {
        **kept,
        "PYTHONPATH": str(package.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "XDG_CACHE_HOME": NO_FOLDER,
        "TMPDIR": str(temporary),
    }


def run_htf(package: Path, command: str) -> subprocess.CompletedProcess[str]:
    home = package.parents[1]
    return subprocess.run(
        [sys.executable, "-m", "htf", *command.split()],
        cwd=home,
        env=without_a_home(package, home),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_an_installation_that_is_only_read_publishes(tmp_path: Path) -> None:
    package = copy_of_htf(tmp_path)
    BudgetFile.create(tmp_path / "budget.db", "d", 3)
    ran = run_htf(package, RELEASE)
    assert ran.returncode == 0, ran.stderr
    kept = tmp_path / f"htf-compiled-{os.geteuid()}"
    assert kept.stat().st_mode & 0o777 == 0o700
    assert len(list(kept.rglob("*.nbc"))) >= 8  # that the next process loads


SMALL = """
import sys
from htf.base.compiled import compiled

@compiled
def doubled(number):
    return 2 * number

assert doubled(21) == 42
print(type(doubled._cache).__name__, sum(doubled.stats.cache_hits.values()))
"""
LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"


@pytest.fixture
def small(tmp_path: Path) -> Callable[..., str]:
    """Runs a file with one compiled loop, beside which a cache may be kept or not."""

    def run(text: str = SMALL, temporary: Path = tmp_path, *, beside: bool = True) -> str:
        place = tmp_path / ("open" if beside else "closed")
        place.mkdir(exist_ok=True)
        script = place / "small.py"
        if not script.exists() or script.read_text() != text:  # else it would seem to have changed
            script.write_text(text)
        if not beside:
            (place / "__pycache__").write_text("not a folder")
        ran = subprocess.run(
            [sys.executable, str(script)],
            env=without_a_home(SOURCE, temporary),
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    return run


def test_loops_are_kept_beside_the_source_where_they_can_be(
    small: Callable[..., str], tmp_path: Path
) -> None:
    assert [small(), small()] == ["FunctionCache 0", "FunctionCache 1"]
    assert list((tmp_path / "open" / "__pycache__").glob("*.nbc"))
    assert not list(tmp_path.glob("htf-compiled-*"))


def test_a_temporary_folder_is_found_again(small: Callable[..., str]) -> None:
    assert [small(beside=False), small(beside=False)] == ["FunctionCache 0", "FunctionCache 1"]


def test_without_any_folder_loops_are_compiled(small: Callable[..., str]) -> None:
    """Python itself finds a temporary folder in most places; a closed one of ours stands for none."""
    assert small(f"import tempfile; tempfile.tempdir = {NO_FOLDER!r}\n{SMALL}", beside=False) == (
        "NullCache 0"
    )


def test_damaged_files_and_full_disks_do_no_harm(small: Callable[..., str], tmp_path: Path) -> None:
    assert small(LIMITED + SMALL) == "FunctionCache 0"  # no file may hold a byte
    assert small() == "FunctionCache 0"
    for kept in (tmp_path / "open" / "__pycache__").iterdir():
        kept.write_bytes(kept.read_bytes()[:-20])
    assert small() == "FunctionCache 0"


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="users are those of Unix")
def test_a_folder_that_others_reach_into_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numba runs what it finds, so that whoever can write there could read the data."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path / f"htf-compiled-{os.geteuid()}"
    assert temporary_folder() == folder
    assert temporary_folder() == folder
    for mode in (0o770, 0o707, 0o755):
        folder.chmod(mode)
        assert temporary_folder() is None
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    assert temporary_folder() is None
    folder.unlink()
    folder.write_text("a file")
    assert temporary_folder() is None
    folder.unlink()
    tmp_path.chmod(0o777)  # without the sticky bit, others could put theirs in its place
    assert temporary_folder() is None
    tmp_path.chmod(0o1777)
    assert temporary_folder() == folder


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away"
)
def test_a_folder_of_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path / f"htf-compiled-{os.geteuid()}"
    folder.mkdir(mode=0o700)
    os.chown(folder, 65534, 65534)
    assert temporary_folder() is None
    os.chown(folder, 0, 0)
    os.chown(tmp_path, 65534, 65534)
    assert temporary_folder() is None
