"""Check a release against itself: does what it says follow from what it holds?

This finds files that were damaged or doctored, and mistakes of ours. It cannot show that the noise
was drawn honestly: for that one has to trust whoever ran the release.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from htf.curator.catalogue import KINDS
from htf.curator.ledger import sum_along_paths
from htf.curator.noise import FastNoise, OpenDPNoise
from htf.domain import FloatArray, IntArray, tiles
from htf.epsilon import UNITS_PER_EPSILON, Epsilon
from htf.errors import InputError
from htf.inference import LEAST_SQUARES, NONNEGATIVE, TreeCounts, estimate_leaves
from htf.mechanisms import registry
from htf.release import Release
from htf.release_file import stored_statement


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was checked: what, whether it holds, and what was found."""

    name: str
    passed: bool
    finding: str


def verify(release: Release | str | Path) -> list[Check]:
    """All checks of a release, or of its file. A file that cannot be read raises ReleaseFileError."""
    checks: list[Check] = []
    statement = None
    if not isinstance(release, Release):
        path = Path(release)
        release, statement = Release.load(path), stored_statement(path)
        checks.append(Check("file", True, "sound, its digest matches"))
    checks += [check(release) for check in CHECKS]
    checks.append(_check_statement(release, statement))
    return checks


def _check_tiling(release: Release) -> Check:
    shape = np.array(release.domain.shape, dtype=np.int64)
    passed = tiles(release.low, release.high, np.zeros_like(shape), shape)
    return Check("tiling", passed, f"{len(release)} boxes cover the map, each cell once")


def _check_spend(release: Release) -> Check:
    table = release.measurements
    # In floats first, where nothing wraps around; what is near the total there fits 64 bits.
    rough = _spent_units(release, np.float64)
    if not np.all(table.epsilon >= 0) or rough > 2 * release.epsilon.units + 1:
        return Check("spend", False, f"the measurements spend about {rough / UNITS_PER_EPSILON:g}")
    spent = Epsilon(int(_spent_units(release, np.int64)))
    passed = spent <= release.epsilon and spent == release.spent
    finding = (
        f"the measurements spend {spent} of {release.epsilon}; the ledger says {release.spent}"
    )
    return Check("spend", passed, finding)


def _spent_units(release: Release, kind: type[np.generic]) -> float:
    """The largest sum of epsilons along a path of the tree."""
    own = np.zeros(len(release.tree), dtype=kind)
    np.add.at(own, release.measurements.region, release.measurements.epsilon)
    return sum_along_paths(release.tree, own).max()  # type: ignore[no-any-return]


def _check_ledger(release: Release) -> Check:
    """Every line has its measurements, of its kind and at its price."""
    table = release.measurements
    in_order = bool(np.all(np.diff(table.line, prepend=0) >= 0))
    rows = np.split(
        np.arange(len(table)), np.searchsorted(table.line, range(1, len(release.ledger)))
    )
    wrong = [
        number
        for number, (line, at) in enumerate(zip(release.ledger, rows, strict=False))
        if not (
            np.all(table.line[at] == number)
            and len(at) == line.answers > 0
            and line.kind in KINDS
            and np.all(table.kind[at] == KINDS.index(line.kind))
            and _smallest_paid(table.epsilon[at]) == line.smallest_epsilon.units
            and table.epsilon[at].max() == line.largest_epsilon.units
        )
    ]
    passed = in_order and not wrong and len(release.ledger) > 0
    finding = f"{len(release.ledger)} lines with {len(table)} measurements"
    return Check("ledger", passed, finding if passed else f"{finding}; wrong lines: {wrong}")


def _smallest_paid(epsilon: IntArray) -> int:
    """Of answers that are paid for together only the first has a price."""
    return int(np.min(epsilon[epsilon > 0], initial=np.iinfo(np.int64).max))


def _check_sums(release: Release) -> Check:
    """The estimates are what the measurements make of them."""
    mechanism = registry().get(release.mechanism)
    known = {**ESTIMATORS, **(mechanism.estimators if mechanism else {})}
    if release.estimator not in known:
        return Check("sums", False, f"unknown estimator {release.estimator!r}")
    try:
        estimates, scales = known[release.estimator](release)
    except InputError as error:
        return Check("sums", False, f"the measurements do not give the estimates: {error}")
    passed = _agree(release.estimates, estimates) and _agree(release.scales, scales)
    total = f"{release.estimates.sum():,.0f}"
    return Check("sums", passed, f"estimates follow from the measurements and add up to {total}")


def _agree(stored: FloatArray, computed: FloatArray | IntArray) -> bool:
    """Whole numbers must be equal. Fractions come of float sums, whose last digits depend on the
    processor that adds them up (how many terms at a time), so those are compared to ten digits of
    the largest."""
    if np.array_equal(stored, computed):
        return True
    if computed.dtype.kind != "f" or computed.shape != stored.shape:
        return False
    return bool(np.all(np.abs(stored - computed) <= 1e-10 * np.max(np.abs(computed))))


def _last_counts(release: Release) -> tuple[IntArray, FloatArray]:
    """Each leaf has the last count that was taken of it."""
    table = release.measurements.of_kind("count")
    last = np.full(len(release.tree), -1, dtype=np.int64)
    last[table.region] = np.arange(len(table))  # of repeated places the last assignment stays
    last = last[release.leaves]
    values = np.where(last >= 0, table.value[last], np.iinfo(np.int64).min).astype(np.int64)
    return values, 1 / (table.epsilon[last] / UNITS_PER_EPSILON)


def _from_all_counts(release: Release) -> tuple[FloatArray, FloatArray]:
    """Each leaf has what least squares make of all counts."""
    table, counts = release.measurements.of_kind("count"), TreeCounts()
    counts.add(table.region, table.value, table.epsilon)
    return estimate_leaves(release.tree, release.leaves, counts, release.estimator)


Estimator = Callable[[Release], tuple[IntArray | FloatArray, FloatArray]]
ESTIMATORS: dict[str, Estimator] = {
    "last-count": _last_counts,
    LEAST_SQUARES: _from_all_counts,
    NONNEGATIVE: _from_all_counts,
}


def _check_noise(release: Release) -> Check:
    """Only noise that nobody can know may be called private."""
    secret = release.noise in (OpenDPNoise.description, FastNoise.description)
    word = "private" if release.private else "NOT private"
    return Check("noise", release.private == secret, f"{release.noise}, marked {word}")


def _check_statement(release: Release, stored: tuple[str, bool] | None) -> Check:
    """Word for word; where another version worded it, it must at least name the same epsilon and
    warn of noise that is not secret."""
    text, ours = (release.statement, True) if stored is None else stored
    warned = text.startswith("NOT PRIVATE") != release.private
    passed = text == release.statement if ours else f"{release.epsilon}-differ" in text and warned
    finding = f"epsilon {release.epsilon}, one record"
    return Check("statement", passed, finding if passed else "does not follow from the release")


CHECKS = (_check_tiling, _check_spend, _check_ledger, _check_sums, _check_noise)
