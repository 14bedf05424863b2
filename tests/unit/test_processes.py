"""Forked workers do all that their parent did, and draw noise of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support import PATIENCE, require_module

PUBLISH = """
import numpy as np
import htf

domain = htf.Domain.square(51.5, -0.12, 20, cells=32)
rng = np.random.default_rng(1)
matrix = htf.FrequencyMatrix.from_dense(domain, rng.integers(0, 5, (32, 32)))

def work():
    made = htf.publish(matrix, 1, "singular", noise={noise!r})  # 1,024 draws, so in threads
    return made.measurements.value.tolist()
"""

PROJECT = """
import htf

def work():
    domain = htf.Domain.square(51.5, -0.12, 20, cells=8)
    matrix = htf.read_points({path!r}, domain, ["x", "y"], crs="EPSG:27700")
    return matrix.exact_counts.tolist()
"""

# A fresh process, so that no thread of the test run is forked along.
IN_WORKERS = """
import json, multiprocessing, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks of threaded processes
if __name__ == "__main__":
    before = work()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        jobs = [pool.apply_async(work) for _ in range(3)]
        print(json.dumps([before, *(job.get({patience}) for job in jobs)]))
"""


def in_parent_and_workers(script: str) -> list[list[int]]:
    """What `work` returns in a process, and then three times in workers that it forks."""
    whole = script + IN_WORKERS.format(patience=PATIENCE)
    ran = subprocess.run(
        [sys.executable, "-c", whole],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found: list[list[int]] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize("noise", ["opendp", "fast"])
def test_forked_workers_publish_with_noise_of_their_own(noise: str) -> None:
    found = in_parent_and_workers(PUBLISH.format(noise=noise))
    assert len(found) == 4
    assert len({tuple(values) for values in found}) == 4


def test_forked_workers_project_points(tmp_path: Path) -> None:
    require_module("pyproj", "geo")
    path = tmp_path / "points.csv"
    path.write_text("x,y\n530000,180000\n531000,181000\n533000,182000\n")
    found = in_parent_and_workers(PROJECT.format(path=str(path)))
    assert sum(found[0]) == 3
    assert found == [found[0]] * 4
