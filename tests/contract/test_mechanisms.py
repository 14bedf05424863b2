"""What holds of every mechanism, found by name in the registry."""

from __future__ import annotations

import gc
import types
from dataclasses import FrozenInstanceError, fields
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from htf import Curator, Epsilon, FrequencyMatrix, Release, make_mechanism, publish, verify
from htf.curator.catalogue import MEASUREMENTS
from htf.curator.cells import ExactCells
from htf.curator.measurements import CountRegions, ScoreSplits
from htf.curator.noise import ScriptedNoise, SeededNoise
from htf.curator.window import Steps, Window
from htf.mechanisms import registry
from htf.mechanisms.base import Histogram, Mechanism
from htf_bench.grids import LEAST_MOST_CELLS
from support import city_matrix, dense, grid
from telling import telling

NAMES = sorted(registry())
every_mechanism = pytest.mark.parametrize("name", NAMES)


@cache
def small_matrices() -> dict[str, FrequencyMatrix]:
    generator = np.random.default_rng(3)
    return {
        "city": city_matrix(),
        "empty": FrequencyMatrix.from_dense(grid(32, 32), np.zeros((32, 32), dtype=np.int64)),
        "one cell": FrequencyMatrix.from_dense(grid(1, 1), np.array([[5000]])),
        "one row": FrequencyMatrix.from_dense(grid(1, 50), generator.poisson(40, (1, 50))),
        "odd sizes": FrequencyMatrix.from_dense(grid(7, 13), generator.poisson(100, (7, 13))),
        "three axes": FrequencyMatrix.from_dense(grid(9, 8, 5), generator.poisson(9, (9, 8, 5))),
        "four axes": FrequencyMatrix.from_dense(
            grid(5, 4, 3, 6), generator.poisson(8, (5, 4, 3, 6))
        ),
        "fine grid": FrequencyMatrix.from_cells(
            grid(2**20, 2**20), generator.integers(0, 2**20, (2, 3000)), np.full(3000, 40)
        ),
    }


# On the fine grid `htf` has 4 million leaves, which takes a minute; all others run there, and `htf` on all others.
every_matrix = pytest.mark.parametrize(
    ("data", "name"),
    telling(product(small_matrices(), NAMES), lambda *case: case != ("fine grid", "htf")),
)


def made_for(name: str, data: str) -> Mechanism:
    """As it is by default, but that only one mechanism cuts the fine grid into a million boxes: each takes
    seconds. The others coarsen it further, in the same way."""
    coarser = data == "fine grid" and name in ("hb", "hdmm", "privlet", "zones")
    return make_mechanism(name, **({"most_cells": str(LEAST_MOST_CELLS)} if coarser else {}))


def exact_values(release: Release, matrix: FrequencyMatrix) -> Any:
    """What counts and scores would have been without noise. Choices have no exact value, and joint
    queries are compared with a naive product in tests/properties."""
    table, cells = release.measurements, ExactCells(matrix, release.tree)
    exact = table.value.copy()
    counts = table.kind == MEASUREMENTS.index(CountRegions)
    scores = table.kind == MEASUREMENTS.index(ScoreSplits)
    exact[counts] = cells.count(table.region[counts])
    if scores.any():
        exact[scores] = cells.score_splits(
            table.region[scores], table.axis[scores], table.cut[scores]
        )
    return exact


@every_matrix
def test_a_release_holds_together(name: str, data: str, tmp_path: Path) -> None:
    """Spent at most the total, exactly; boxes tile; the file reads back identically and verifies."""
    matrix = small_matrices()[data]
    release = publish(matrix, "1", made_for(name, data), noise=SeededNoise(9))
    assert release.spent <= release.epsilon == Epsilon.of(1)
    assert [check for check in verify(release) if not check.passed] == []
    path = tmp_path / "release.parquet"
    release.save(path)
    assert Release.load(path) == release
    assert [check for check in verify(path) if not check.passed] == []


@every_matrix
def test_without_noise_the_raw_measurements_are_exact(name: str, data: str) -> None:
    matrix = small_matrices()[data]
    release = publish(matrix, "1", made_for(name, data), noise=ScriptedNoise())
    assert release.measurements.value.tolist() == exact_values(release, matrix).tolist()
    assert release.estimates.sum() == dense_total(matrix)


def dense_total(matrix: FrequencyMatrix) -> int:
    return int(matrix.exact_counts.sum())


@every_mechanism
def test_the_same_seed_gives_the_same_release_and_another_another(name: str) -> None:
    matrix = city_matrix()
    first, again, other = (publish(matrix, "1", name, noise=f"seeded:{s}") for s in (1, 1, 2))
    assert first == again
    assert first != other


@every_mechanism
def test_only_secret_noise_is_called_private(name: str) -> None:
    matrix = city_matrix()
    for noise in ("opendp", "fast"):
        private = publish(matrix, "1", name, noise=noise)
        assert private.private
        assert "NOT PRIVATE" not in private.statement
    for source in (SeededNoise(1), ScriptedNoise()):
        marked = publish(matrix, "1", name, noise=source)
        assert not marked.private
        assert marked.statement.startswith("NOT PRIVATE")
        assert "NOT PRIVATE" in repr(marked)


@every_mechanism
def test_an_empty_map_releases_noise(name: str) -> None:
    empty = small_matrices()["empty"]
    totals = {
        float(publish(empty, "0.5", name, noise=SeededNoise(seed)).estimates.sum())
        for seed in range(8)
    }
    assert len(totals) > 1, "an empty map must not be recognisable"


@every_mechanism
def test_a_release_cannot_be_changed(name: str) -> None:
    release = publish(city_matrix(), "1", name, noise=SeededNoise(1))
    with pytest.raises(FrozenInstanceError):
        release.epsilon = Epsilon.of(2)  # type: ignore[misc]
    arrays = [release.leaves, release.estimates, release.scales, release.low, release.high]
    for array in [*arrays, release.tree.low, *release.measurements.columns().values()]:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@every_mechanism
def test_a_release_holds_no_exact_count(name: str) -> None:
    """No array reachable from a release is the data, and none equals the exact cell counts."""
    matrix = city_matrix()
    release = publish(matrix, "1", name, noise=SeededNoise(1))
    reached = reachable(release)
    assert not any(isinstance(thing, (FrequencyMatrix, ExactCells, Curator)) for thing in reached)
    exact = sorted(matrix.exact_counts.tolist())
    arrays = [thing for thing in reached if isinstance(thing, np.ndarray)]
    assert not any(a.size == len(exact) and sorted(a.ravel().tolist()) == exact for a in arrays)


@every_mechanism
def test_parameters_describe_themselves(name: str) -> None:
    described = registry()[name].describe()
    assert described["citation"]
    assert described["summary"]
    assert [p["name"] for p in described["parameters"]] == [
        f.name for f in fields(registry()[name])
    ]
    assert all(p["help"] for p in described["parameters"])
    settings = {
        p["name"]: str(p["default"]) for p in described["parameters"] if p["default"] is not None
    }
    assert make_mechanism(name, **{k: v for k, v in settings.items() if v}) == make_mechanism(name)


def reachable(start: Any) -> list[Any]:
    """Everything that references lead to, through attributes, slots, closures, bound methods,
    containers, generators and array bases; classes, functions' globals and modules are not
    followed, for the whole interpreter hangs on them."""
    seen: dict[int, Any] = {}
    waiting = [start]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, (type, types.ModuleType)):
            continue
        seen[id(thing)] = thing
        if isinstance(thing, types.FunctionType):
            waiting += [thing.__closure__, thing.__defaults__, thing.__kwdefaults__]
        elif isinstance(thing, types.MethodType):
            waiting += [thing.__self__, thing.__func__]
        elif isinstance(thing, types.GeneratorType) and thing.gi_frame is not None:
            waiting += list(thing.gi_frame.f_locals.values())
        elif isinstance(thing, np.ndarray):
            waiting.append(thing.base)
        else:
            waiting += gc.get_referents(thing)
    return list(seen.values())


class Nosy(Mechanism):
    """Keeps everything it is given, and looks at it."""

    name = "nosy"
    citation = "none"
    held: list[Any]

    def build(self, window: Window) -> Steps[Histogram]:
        object.__setattr__(self, "held", [window, window.count, window.score_splits])
        epsilon = window.epsilon // 2
        for label in ("one", "two"):
            steps = window.count([0], epsilon, label)
            question = next(steps)
            noisy = yield question
            self.held.extend([steps, question, noisy])
        return Histogram(np.array([0]), noisy, np.array([1 / float(epsilon)]), "last-count")


def test_nothing_a_mechanism_holds_leads_to_the_data() -> None:
    matrix = city_matrix()
    mechanism = Nosy()
    curator = Curator(matrix, Epsilon.of(1), SeededNoise(4))
    release = curator.run(mechanism)
    sensitive = {id(matrix), id(curator), id(curator._cells), id(curator._payment.noise)}
    sensitive |= {id(matrix.exact_counts), id(matrix.exact_coordinates)}
    sensitive |= {id(curator._cells._counts), id(curator._cells._coordinates)}
    for held in (mechanism.held, release):
        reached = reachable(held)
        assert len(reached) > 20
        assert not sensitive & {id(thing) for thing in reached}
    found = {id(thing) for thing in reachable([curator, matrix])}
    assert sensitive <= found, "the walk must be able to find what it looks for"


def test_a_curator_makes_one_release() -> None:
    curator = Curator(city_matrix(), Epsilon.of(1), SeededNoise(4))
    curator.run(make_mechanism("htf-paper"))
    with pytest.raises(Exception, match="has already made its release"):
        curator.run(make_mechanism("htf-paper"))


def test_sensitive_objects_show_no_data() -> None:
    matrix = FrequencyMatrix.from_dense(grid(2, 2), np.array([[987654, 0], [3, 123457]]))
    curator = Curator(matrix, Epsilon.of(1))
    for thing in (matrix, curator, curator._cells):
        for secret in ("987654", "123457", "1111114", "nnz"):
            assert secret not in repr(thing) + str(thing)
    assert int(dense(matrix).sum()) == 1111114
