"""How far priors are trusted: the regression against a search, and what right and wrong priors get."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import htf
from htf import FrequencyMatrix, InputError, Release, publish, verify
from htf.cli.main import run
from htf.estimation.homogeneous import PRIOR_TRUST
from htf.estimation.prior import MOST_PRIORS, Prior
from htf.estimation.trust import CLASSES, Evidence, best_weights
from htf.frame.domain import FloatArray
from htf.query.kernels import ESTIMATE
from support import grid

CELLS = 64


def clumped(seed: int) -> FloatArray:
    """Expected counts that no interpolation would guess."""
    return np.random.default_rng(seed).gamma(0.3, 40.0, (CELLS, CELLS))


def drawn(expected: FloatArray, seed: int) -> FrequencyMatrix:
    counts = np.random.default_rng(seed).poisson(expected)
    return FrequencyMatrix.from_dense(grid(CELLS, CELLS), counts)


def prior_of(weights: FloatArray, name: str) -> Prior:
    return Prior.of(weights, grid(CELLS, CELLS), name, "0" * 64)


@pytest.fixture(scope="module")
def right() -> Prior:
    return prior_of(clumped(0), "right")


@pytest.fixture(scope="module")
def wrong() -> Prior:
    return prior_of(clumped(1), "wrong")


@pytest.fixture(scope="module")
def both(right: Prior, wrong: Prior) -> Release:
    return publish(drawn(clumped(0), 5), 1, prior=[wrong, right], noise="seeded:3")


@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_the_weights_are_those_that_a_search_finds(seed: int, priors: int) -> None:
    """None negative, together at most one: no point of a fine grid fits better."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(priors + 3, priors)) * 10 ** random.uniform(-1, 1)
    products = rows.T @ rows + 1e-6 * np.eye(priors)
    fits = rows.T @ random.normal(size=len(rows)) * 3
    found = best_weights(products, fits)

    def gain(weights: FloatArray) -> float:
        return float(2 * weights @ fits - weights @ products @ weights)

    assert np.all(found >= 0)
    assert found.sum() <= 1 + 1e-12
    steps = [np.array(w) / 20 for w in product(range(21), repeat=priors) if sum(w) <= 20]
    assert gain(found) >= max(map(gain, steps)) - 1e-9 * max(1.0, float(np.abs(fits).max()))


def test_evidence_is_a_regression_by_level_and_density() -> None:
    random = np.random.default_rng(2)
    evidence, rows = Evidence(2, 3), 400
    level, kind = random.integers(0, 3, rows), random.integers(0, CLASSES, rows)
    x, y, variances = (
        random.normal(size=(2, rows)),
        random.normal(size=rows),
        random.uniform(1, 2, rows),
    )
    for some in np.array_split(np.arange(rows), 3):
        evidence.add(level[some], kind[some], x[:, some], y[some], variances[some])
    for one, other in product(range(3), range(CLASSES)):
        here = (level == one) & (kind == other)
        weighted = x[:, here] / variances[here]
        assert evidence.fits[one, other] == pytest.approx(weighted @ y[here])
        assert evidence.products[one, other] == pytest.approx(weighted @ x[:, here].T)


def test_what_fits_by_chance_is_not_believed() -> None:
    """A prior that says nothing true: its fit has a mean of zero and the variance of its product. So over all sizes it
    gets a weight in 16 % of cases, and next to none in those."""
    random, found = np.random.default_rng(4), []
    for _ in range(400):
        evidence = Evidence(1, 1)
        x = random.normal(size=(1, 500))
        zero = np.zeros(500, dtype=np.int64)
        evidence.add(zero, zero, x, random.normal(size=500), np.ones(500))
        found.append(float(evidence._overall()[0]))
    assert 0.09 < np.mean(np.array(found) > 0) < 0.24  # six deviations of 400 trials on either side
    assert max(found) < 0.2


def test_a_right_prior_is_trusted_and_a_wrong_one_is_not(both: Release) -> None:
    wrong, right = both.derived.trust_by_size
    assert right[:4].min() > 0.8
    assert wrong[:4].max() < 0.1
    assert np.all(both.prior_trust.sum(axis=0) <= 1)


def test_a_wrong_prior_does_no_harm_and_a_right_one_helps(right: Prior, wrong: Prior) -> None:
    """In the error of cells, over eight seeds: the wrong prior is within 2 %, and the right one gains at least a third."""
    found = np.zeros((3, 8))
    for seed in range(8):
        matrix = drawn(clumped(0), seed)
        true = np.zeros((CELLS, CELLS))
        true[tuple(matrix.exact_coordinates)] = matrix.exact_counts
        for place, prior in enumerate((None, wrong, right)):
            made = publish(matrix, "0.3", prior=prior, noise=f"seeded:{seed}")
            cells = np.argwhere(true >= 0).astype(float)
            counts = made.derived.index.measure(cells, cells + 1)[:, ESTIMATE]
            found[place, seed] = np.abs(counts - true.ravel()).mean()
    plain, with_wrong, with_right = found.mean(axis=1)
    assert with_wrong < 1.02 * plain
    assert with_right < 0.67 * plain


def test_an_even_prior_changes_nothing() -> None:
    matrix = drawn(clumped(0), 1)
    plain = publish(matrix, 1, noise="seeded:1")
    even = publish(matrix, 1, prior=prior_of(np.ones((1, 1)), "even"), noise="seeded:1")
    assert np.array_equal(plain.estimates, even.estimates)
    assert not even.prior_trust.any()


def test_several_priors_travel_with_the_file(both: Release, tmp_path: Path) -> None:
    path = tmp_path / "both.parquet"
    both.save(path)
    again = Release.load(path)
    assert again == both
    assert [prior.name for prior in again.priors] == ["wrong", "right"]
    assert again.derived.parts.estimates.tolist() == both.derived.parts.estimates.tolist()
    assert [check for check in verify(path) if not check.passed] == []
    assert "none of them was made from the data released" in again.statement


def test_a_changed_trust_is_found(both: Release) -> None:
    changed = (np.array(both.facts[PRIOR_TRUST]) / 2).tolist()
    doctored = replace(both, facts={**both.facts, PRIOR_TRUST: changed})
    assert [check.name for check in verify(doctored) if not check.passed] == ["sums"]


@pytest.mark.parametrize(
    "trust", [[], [[[0.5]]], "much", [[[2.0] * CLASSES] * 7] * 2, [[[-0.5] * CLASSES] * 7] * 2]
)
def test_a_trust_that_does_not_fit_is_refused(both: Release, trust: object) -> None:
    with pytest.raises(InputError, match=r"the trust in (the )?priors"):
        replace(both, facts={**both.facts, PRIOR_TRUST: trust})


def test_a_prior_without_its_trust_is_refused(right: Prior) -> None:
    made = publish(drawn(clumped(0), 2), 1, prior=right, noise="seeded:2")
    facts = {name: fact for name, fact in made.facts.items() if name != PRIOR_TRUST}
    with pytest.raises(InputError, match="the trust in priors"):
        replace(made, facts=facts)


def test_too_many_priors_are_refused(right: Prior) -> None:
    matrix = drawn(clumped(0), 1)
    with pytest.raises(InputError, match=f"at most {MOST_PRIORS} priors, not 5"):
        publish(matrix, 1, prior=[right] * 5, noise="seeded:1")
    with pytest.raises(InputError, match="prior must be"):
        publish(matrix, 1, prior=["land.npy"], noise="seeded:1")  # type: ignore[list-item]


def test_the_command_says_how_far_priors_were_trusted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(1)
    counts = random.poisson(clumped(0) / 4)
    x, y = (place.repeat(counts.ravel()) + 0.5 for place in np.indices(counts.shape).reshape(2, -1))
    np.savetxt("points.csv", np.column_stack([x, y]), delimiter=",", header="x,y", comments="")
    np.save("right.npy", clumped(0))
    np.save("wrong.npy", clumped(1))
    options = ["--bounds", "0,0,64,64", "--cells", "64", "--x", "x", "--y", "y"]
    noise = ["--epsilon", "1", "--noise", "seeded:1", "-o", "r.parquet"]
    assert (
        run(
            [
                "release",
                "points.csv",
                *options,
                "--prior",
                "right.npy",
                "--prior",
                "wrong.npy",
                *noise,
            ]
        )
        == 0
    )
    told = " ".join(capsys.readouterr().out.split())
    assert "The prior right.npy was trusted" in told
    assert "The prior wrong.npy was not used: the noisy counts do not bear it out." in told
    assert run(["info", "r.parquet"]) == 0
    assert "trust, the whole map" in capsys.readouterr().out
    assert htf.Release.load("r.parquet").summary()["priors"][1]["name"] == "wrong.npy"
