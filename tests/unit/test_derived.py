"""What is computed from a release is made once, shared, and follows from what is published."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import htf
from htf import Axis, Domain, FrequencyMatrix, Release
from htf.estimation import homogeneous, interpolation, least_squares
from htf.estimation.homogeneous import estimate_regions
from htf.estimation.least_squares import sum_leaves
from htf.estimation.prior import Prior
from htf.query import derived, tree_index
from htf.query.asked import AskedRows
from htf.query.boxes import axis_table
from htf.query.derived import Derived
from support import city_matrix


def hours_matrix() -> FrequencyMatrix:
    domain = Domain((Axis("x", 0, 1, 20), Axis("y", 0, 1, 16), Axis("hour", 0, 24, 24)))
    generator = np.random.default_rng(3)
    counts = generator.poisson(generator.gamma(0.2, 20, domain.shape))
    return FrequencyMatrix.from_dense(domain, counts)


def city_prior(matrix: FrequencyMatrix) -> Prior:
    return htf.read_prior(np.arange(1.0, 257.0).reshape(16, 16), matrix.domain)


def test_a_release_holds_only_what_is_published() -> None:
    release = htf.publish(city_matrix(), 1, noise="seeded:1")
    release.count()
    assert set(vars(release)) == {field.name for field in fields(Release)} | {"derived"}
    for name in ("parts", "index", "tree_index", "answering_index", "tree_counts"):
        assert not hasattr(release, name)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "20"])
@pytest.mark.parametrize("kind", ["map", "prior", "hours"])
def test_estimates_of_regions_are_the_sums_of_their_leaves(
    kind: str, epsilon: str, seed: int
) -> None:
    """To the last bit: what interpolation starts from needs no second estimation."""
    matrix = hours_matrix() if kind == "hours" else city_matrix()
    priors = [city_prior(matrix)] if kind == "prior" else []
    release = htf.publish(matrix, epsilon, prior=priors, noise=f"seeded:{seed}")
    counts = release.measurements.tree_counts()
    expected = estimate_regions(release.tree, counts, priors).estimates
    summed = sum_leaves(release.tree, release.leaves, release.estimates)
    assert np.array_equal(summed, expected)


@pytest.mark.parametrize("kind", ["map", "hours"])
def test_the_first_boxes_of_a_process_have_the_same_bits(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although only the leaves are divided that they need."""
    matrix = hours_matrix() if kind == "hours" else city_matrix(points=30_000)
    found = htf.publish(matrix, 2, noise="seeded:1").derived
    axes, generator = matrix.domain.axes, np.random.default_rng(5)
    ends = np.array([[axis.low, axis.high] for axis in axes]).T
    parts = 0
    for number in range(30):
        sides = (ends[1] - ends[0]) * 10 ** generator.uniform(-2, 0, (1 + number % 3, len(axes)))
        starts = ends[0] + generator.random(sides.shape) * (ends[1] - ends[0] - sides)
        rows = np.hstack([starts, starts + sides])
        with monkeypatch.context() as patched:
            patched.setattr(derived, "nothing_asked", lambda: True)
            index: Any = found.index_for(AskedRows(matrix.domain, rows))
        whole: Any = found.answering_index
        assert (
            index.answer(rows, axis_table(axes)).tobytes()
            == whole.answer(rows, axis_table(axes)).tobytes()
        )
        parts += len(index._parts)
    assert 0 < parts < 30 * len(whole._parts)


def counted(monkeypatch: pytest.MonkeyPatch, calls: Counter[str], where: Any, name: str) -> None:
    before = getattr(where, name)

    def call(*arguments: Any, **options: Any) -> Any:
        calls[name] += 1
        return before(*arguments, **options)

    monkeypatch.setattr(where, name, call)


def test_the_first_count_makes_everything_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours twice: of the tree, and of the finer one that leaves are divided into."""
    release, calls = htf.publish(city_matrix(), 1, noise="seeded:1"), Counter[str]()
    counted(monkeypatch, calls, homogeneous, "Neighbourhood")
    counted(monkeypatch, calls, interpolation, "Neighbourhood")
    counted(monkeypatch, calls, homogeneous, "_Estimation")
    counted(monkeypatch, calls, derived, "interpolate")
    counted(monkeypatch, calls, least_squares, "add_up")
    counted(monkeypatch, calls, tree_index, "least_squares_and_below")
    release.count((0.1, 0.1, 0.6, 0.7))
    expected = {"Neighbourhood": 2, "interpolate": 1, "add_up": 1}
    assert calls == expected | {"least_squares_and_below": 1}
    release.count((0.2, 0.1, 0.6, 0.9))
    assert release.derived.parts is release.derived.parts
    assert release.derived.index is release.derived.index
    assert calls == expected | {"least_squares_and_below": 1}


def test_it_travels_with_the_release_and_is_no_part_of_it() -> None:
    asked, fresh = (htf.publish(city_matrix(), 1, noise="seeded:1") for _ in range(2))
    answers = asked.count()
    assert asked == fresh
    again = pickle.loads(pickle.dumps(asked))
    assert isinstance(vars(again)["derived"], Derived)
    assert "derived" not in vars(pickle.loads(pickle.dumps(fresh)))
    assert again == fresh
    assert again.count().to_dicts() == answers.to_dicts() == fresh.count().to_dicts()
