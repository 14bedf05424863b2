"""Check a release against itself: do its claims follow from its contents?

This finds damaged and doctored files, and our own mistakes. It cannot show that the noise was drawn
honestly: for that one must trust whoever made the release.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from htf.base import arguments, plugins
from htf.curator.agreeing import AgreeingCounts
from htf.curator.catalogue import MEASUREMENTS
from htf.curator.noise import FastNoise, OpenDPNoise
from htf.errors import HtfError, InputError, MissingExtraError
from htf.estimation.activity import best_max_records
from htf.estimation.distinct import best_max_boxes
from htf.estimation.least_squares import LEAST_SQUARES, NONNEGATIVE, estimate_leaves
from htf.estimation.noise_law import count_scales
from htf.estimation.worth import scale_to_all, worth_of
from htf.frame.crs import same_projjson
from htf.frame.domain import FloatArray, IntArray
from htf.frame.nesting import Nesting
from htf.mechanisms import find_mechanism
from htf.privacy.activity import Activity
from htf.privacy.clipping import Clipped
from htf.privacy.distinct import DistinctCounts
from htf.privacy.epsilon import UNITS_PER_EPSILON, Epsilon
from htf.privacy.ledger import LedgerLine, sum_along_paths
from htf.privacy.protection import RECORD, price_of_bought, price_of_map
from htf.privacy.zones_bought import ZonesBought
from htf.release.file import (
    GEO,
    KEY,
    Contents,
    geo_metadata,
    is_worded_here,
    read,
    table_of_columns,
)
from htf.release.header import read_json
from htf.release.inside_zones import inside_zones, taken_apart
from htf.release.kinds import KINDS
from htf.release.release import MeasurementTable, Release

if TYPE_CHECKING:
    import pyarrow as pa

STD_ERROR = "std_error"
# What measurements, parameters and facts that do not belong together may make of an estimator.
NOT_GIVEN = (
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    MemoryError,
    np.linalg.LinAlgError,
)
SAME_FACTOR = 1e-9  # the last digits depend on the processor
MOST_STEPS = 2**31  # regions times lines of the ledger: a minute; releases have some million
PAID_TOGETHER = ("linear", "buckets", "runs")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was checked.

    Attributes
    ----------
    name : str
        What was checked.
    passed : bool
        Whether it holds.
    finding : str
        What was found.

    Examples
    --------
    >>> import htf
    >>> from htf.verification import Check
    >>> Check("tiling", True, "4 leaves cover the map").passed
    True
    """

    name: str
    passed: bool
    finding: str


def verify(release: Release | str | Path) -> list[Check]:
    """Check a release, or its file, against itself: does what it says follow from what it holds?

    A failed check raises nothing: look at `passed` of each.

    Parameters
    ----------
    release : Release, str or Path
        The release, or the name of its file.

    Returns
    -------
    list of Check
        All checks, passed or not.

    Raises
    ------
    ReleaseFileError
        If the file cannot be read.
    MissingExtraError
        If its estimates can be checked only by a package that is not installed.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> matrix = htf.FrequencyMatrix.from_dense(domain, [[500, 20], [0, 30]])
    >>> release = htf.publish(matrix, epsilon=1, noise="seeded:1")
    >>> all(check.passed for check in htf.verify(release))
    True
    """
    if isinstance(release, Release):
        return _verify(release, None)
    return verify_file(read(arguments.path(release, "a release to verify", "or a Release")))


def verify_file(file: Contents) -> list[Check]:
    """The same for a file that was read."""
    checks = [Check("file", True, "sound, its digest matches"), _check_columns(file)]
    statement = file.header["statement"], is_worded_here(file.header)
    return checks + _verify(file.release, statement)


def _verify(release: Release, statement: tuple[str, bool] | None) -> list[Check]:
    """What a release holds. The statement is that of its file, and whether this version worded it."""
    checks = [check(release) for check in CHECKS]
    for one in release.bought:
        checks += BOUGHT[type(one)](release, one)
    checks.append(_check_statement(release, statement))
    return checks


def _check_columns(file: Contents) -> Check:
    """Every column is what `save` would write, and so is what GIS tools are told of them."""
    wanted = table_of_columns(file.release)
    wrong = [name for name in wanted.column_names if not _same_column(name, file.columns, wanted)]
    wrong += [f"{key!r:.100}" for key in file.metadata if key not in (KEY, GEO)]
    if not _same_map(file.metadata.get(GEO), file.release):
        wrong.append("reference system or bounds")
    found = f"{len(wanted.column_names)} columns follow from the release"
    return Check("columns", not wrong, f"not as written: {', '.join(wrong)}" if wrong else found)


def _same_column(name: str, stored: pa.Table, wanted: pa.Table) -> bool:
    """Equal; but processors may differ in the last bit of an exponential, and so in standard errors."""
    if name != STD_ERROR:
        return bool(stored[name].combine_chunks().equals(wanted[name].combine_chunks()))
    found, computed = stored[name].to_numpy(), wanted[name].to_numpy()
    return bool(np.allclose(found, computed, rtol=1e-12, atol=0.0))


def _same_map(stored: bytes | None, release: Release) -> bool:
    """What the file says of its polygons. How a reference system is described in full depends on the
    version of PROJ, so two descriptions of the same one are as good."""
    drawn = release.domain.has_shapes
    if stored is None or not drawn:
        return stored is None and not drawn
    try:
        found, wanted = read_json(stored), geo_metadata(release.domain)
    except MissingExtraError:
        raise
    except InputError:
        return False
    if found == wanted:
        return True
    systems = [_take_crs(found), _take_crs(wanted)]
    return bool(found == wanted) and None not in systems and same_projjson(*systems)


def _take_crs(geo: Any) -> Any:
    """The description of the reference system, which is taken out; None where there is none."""
    try:
        return geo["columns"]["geometry"].pop("crs")
    except (LookupError, TypeError, AttributeError):
        return None


def _check_tiling(release: Release) -> Check:
    """The regions of a tree that was read hold each other as they must: each of its ends is in one leaf."""
    cells = sum(release.tree.cells(release.leaves).tolist())
    passed = cells == release.domain.size and release.tree.is_covered_once_by(release.leaves)
    return Check("tiling", passed, f"{len(release)} leaves cover the map, each cell once")


def _check_spend(release: Release) -> Check:
    table = release.measurements
    # In floats first, where nothing wraps around; what is near the total there fits 64 bits.
    rough = _spent_units(release, np.float64)
    if not np.all(table.epsilon >= 0) or rough > 2 * release.record_epsilon.units + 1:
        return Check("spend", False, f"the measurements spend about {rough / UNITS_PER_EPSILON:g}")
    spent = Epsilon(int(_spent_units(release, np.int64)))
    lost = spent * release.protection.most_shares + price_of_bought(*release.bought)
    passed = lost <= release.own_epsilon and spent == release.spent
    finding = f"the measurements spend {spent} of {release.record_epsilon}; the ledger says {release.spent}"
    if release.protection.unit != RECORD or release.protection.weight is not None:
        finding += f"; a {release.protection.unit} loses at most {lost} of {release.own_epsilon}"
    return Check("spend", passed, finding)


def _spent_units(release: Release, kind: type[np.generic]) -> float:
    """The largest sum of epsilons along a path of the tree."""
    own = np.zeros(len(release.tree), dtype=kind)
    np.add.at(own, release.measurements.region, release.measurements.epsilon)
    return sum_along_paths(release.tree, own).max()  # type: ignore[no-any-return]


def _check_ledger(release: Release) -> Check:
    """Every line has its measurements, of its kind and at its price, and the sum so far."""
    table = release.measurements
    bounds = np.searchsorted(table.line, np.arange(len(release.ledger) + 1))
    in_order = bool(np.all(np.diff(table.line, prepend=0) >= 0)) and bounds[-1] == len(table)
    if not in_order or _spent_units(release, np.float64) > 2 * release.record_epsilon.units + 1:
        return Check("ledger", False, "lines and measurements do not belong together")
    if len(release.ledger) * len(release.tree) > MOST_STEPS:
        found = f"{len(release.ledger):,} lines for {len(release.tree):,} regions"
        return Check("ledger", False, f"{found} are more than can be checked")
    own, wrong = np.zeros(len(release.tree), dtype=np.int64), []
    layers = [(layer, release.tree.parent[layer]) for layer in release.tree.layers(1)]
    for number, line in enumerate(release.ledger):
        rows = slice(bounds[number], bounds[number + 1])
        np.add.at(own, table.region[rows], table.epsilon[rows])
        sums = own.copy()  # what `sum_along_paths` gives, whose layers are the same for every line
        for layer, parents in layers:
            sums[layer] += sums[parents]
        spent = int(sums.max())
        paid = _is_paid(line, table, rows) and spent == line.spent_after.units
        if not (paid and _adds_up(line, release, rows)):
            wrong.append(number)
    passed = not wrong and len(release.ledger) > 0
    finding = f"{len(release.ledger)} lines with {len(table)} measurements"
    return Check("ledger", passed, finding if passed else f"{finding}; wrong lines: {wrong[:5]}")


def _is_paid(line: LedgerLine, table: MeasurementTable, rows: slice) -> bool:
    """The rows of a line are of its kind and cost what it says.

    Answers that are paid for together have their price in the first row, and are about the root.
    """
    epsilon, region, cut = table.epsilon[rows], table.region[rows], table.cut[rows]
    if line.kind not in KINDS or not len(epsilon) == line.answers > 0:
        return False
    if line.kind in PAID_TOGETHER:
        together = not epsilon[1:].any() and not region.any()
        if not (together and np.array_equal(cut, np.arange(len(cut)))):
            return False
        epsilon = epsilon[:1]
    elif line.sensitivity != MEASUREMENTS[KINDS.index(line.kind)].sensitivity:
        return False
    return bool(
        np.all(table.kind[rows] == KINDS.index(line.kind))
        and epsilon.min() > 0
        and epsilon.min() == line.smallest_epsilon.units
        and epsilon.max() == line.largest_epsilon.units
    )


def _adds_up(line: LedgerLine, release: Release, rows: slice) -> bool:
    """Counts that were drawn together agree: a region has what its parts have."""
    if line.kind != AgreeingCounts.kind:
        return True
    values = release.measurements.value[rows]
    try:
        nesting = Nesting.of(release.tree, release.measurements.region[rows])
    except InputError:
        return False
    inner = np.flatnonzero(nesting.number > 0)
    if np.abs(values).sum(dtype=np.float64) >= 2**62:  # sums could wrap around
        return False
    return not len(inner) or np.array_equal(nesting.sum_parts(inner, values), values[inner])


def _check_zones(_: Release, bought: ZonesBought) -> list[Check]:
    """The zones are checked like a release, but their estimates with those of the map (`_check_joined`)."""
    found = [check(bought.release) for check in CHECKS if check is not _check_sums]
    return [replace(one, name=f"zones: {one.name}") for one in found]


def _check_activity(release: Release, activity: Activity) -> list[Check]:
    """The number of records to keep is the one that follows from it, if it is said to. Estimates and the factor follow from
    it too, which `_check_sums` looks at."""
    kept = release.protection.max_records or 1
    passed = True
    if activity.decides:
        left = price_of_map(release.epsilon, *release.bought)
        best = best_max_records(activity, left)
        # A mechanism may have refused what that leaves for a record: then half as many are kept, and so on.
        passed = kept in {best >> halvings for halvings in range(best.bit_length())}
    chosen = "follows from the activity" if activity.decides else "was chosen by the curator"
    finding = f"that at most {kept:,} records are kept per person {chosen}"
    return [Check("activity", passed, finding if passed else f"not as found: {finding}")]


def _joined_agrees(release: Release) -> tuple[bool, str]:
    """A map and its zones, from the measurements of both."""
    on_map, zones = map(estimated, taken_apart(release))
    again = inside_zones(on_map, zones)
    pairs = [(release.estimates, again.estimates), (release.scales, again.scales)]
    if release.zones is not None and again.zones is not None:
        pairs.append((release.zones.estimates, again.zones.estimates))
    passed = all(_nearly_agree(stored, found) for stored, found in pairs)
    total = f"{release.estimates.sum():,.0f} {release.counted}"
    return passed, f"map and zones follow from the measurements of both and add up to {total}"


def estimated(release: Release) -> Release:
    """The release with the estimates that its measurements give."""
    estimates, scales = worth_of(release).of_estimates(*_estimates(release))
    return replace(release, estimates=estimates, scales=scales)


def _estimates(release: Release) -> tuple[IntArray | FloatArray, FloatArray]:
    """What was counted, by the estimator of the release."""
    estimator = _find_estimator(release)
    if estimator is None:
        raise InputError(_unknown_estimator(release))
    return estimator(release)


def _nearly_agree(stored: FloatArray, computed: FloatArray) -> bool:
    """Steps of an iteration round differently on other processors, and it ends before the last digits."""
    if stored.shape != computed.shape:
        return False
    return bool(np.all(np.abs(stored - computed) <= 1e-6 * np.max(np.abs(computed), initial=1.0)))


def _find_estimator(release: Release) -> Estimator | None:
    found = ESTIMATORS.get(release.estimator)
    if found is None:  # only then is the package of a mechanism loaded, and no other than its own
        mechanism = find_mechanism(release.mechanism)
        found = mechanism.estimators.get(release.estimator) if mechanism else None
        if error := plugins.missing(plugins.MECHANISMS, release.mechanism):
            raise error
    return found


def _unknown_estimator(release: Release) -> str:
    told = f"unknown estimator {release.estimator!r:.100}"
    if find_mechanism(release.mechanism) is None:
        told += f": its mechanism {release.mechanism!r:.100} is not installed, or broken"
    return told


def _check_sums(release: Release) -> Check:
    """The estimates are what the measurements make of them."""
    is_joined = release.zones is not None
    if not is_joined and _find_estimator(release) is None:
        return Check("sums", False, _unknown_estimator(release))
    try:
        with np.errstate(all="ignore"):
            return Check("sums", *(_joined_agrees if is_joined else _agrees)(release))
    except MissingExtraError:
        raise
    except (HtfError, *NOT_GIVEN) as error:
        return Check("sums", False, f"the measurements do not give them ({type(error).__name__})")


def _agrees(release: Release) -> tuple[bool, str]:
    estimates, scales = _estimates(release)
    factor = scale_to_all(estimates, scales, release.protection, release.activity)
    estimates, scales = worth_of(release).of_estimates(estimates, scales)
    passed = _agree(release.estimates, estimates) and _agree(release.scales, scales)
    passed = passed and abs(release.factor / factor - 1) <= SAME_FACTOR
    counted = release.counted if release.protection.weight is None else f"({release.counted})"
    total = f"{release.estimates.sum():,.0f} {counted}"
    return passed, f"estimates follow from the measurements and add up to {total}"


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
    return values, count_scales(table.epsilon[last])


def _from_all_counts(release: Release) -> tuple[FloatArray, FloatArray]:
    """Each leaf has what least squares make of all counts."""
    return estimate_leaves(
        release.tree, release.leaves, release.measurements.tree_counts(), release.estimator
    )


Estimator = Callable[[Release], tuple[IntArray | FloatArray, FloatArray]]
ESTIMATORS: dict[str, Estimator] = {
    "last-count": _last_counts,
    LEAST_SQUARES: _from_all_counts,
    NONNEGATIVE: _from_all_counts,
}


def _check_noise(release: Release) -> Check:
    """Only noise that nobody can know may be called private."""
    drawn = [(release.noise, release.private)]
    drawn += [(bought.noise, bought.private) for bought in release.bought]
    secret = (OpenDPNoise.description, FastNoise.description)
    passed = all(private == (noise in secret) for noise, private in drawn)
    if release.private:
        passed = passed and all(bought.private for bought in release.bought)
    words = [f"{noise}, marked {'' if private else 'NOT '}private" for noise, private in drawn]
    return Check("noise", passed, "; before the map: ".join(words))


def _check_distinct(_: Release, distinct: DistinctCounts) -> list[Check]:
    """The number of boxes in which a person counts is the one that the noisy numbers of people give, if it was chosen
    by them. Everything else about different people follows from the noisy numbers when it is asked for."""
    passed = True
    if distinct.decides:
        best = best_max_boxes(distinct.people, distinct.boxes, distinct.counts_epsilon)
        passed = best == distinct.max_boxes
    chosen = "chosen with noise" if distinct.decides else "chosen by the curator"
    finding = f"{distinct.told}; a person counts in at most {distinct.max_boxes}, {chosen}"
    return [Check("different people", passed, finding if passed else f"not as found: {finding}")]


def _check_clipped(release: Release, clipped: Clipped) -> list[Check]:
    """They were measured for the weight, the limit and the unit of the release. Their share follows from them whenever it
    is asked for."""
    try:
        clipped.check_fits(release.protection)
    except InputError as error:
        return [Check("clipped", False, str(error))]
    found = f"{clipped.above:,} of {clipped.within + clipped.above:,} {clipped.things} above {clipped.protection.max_weight:,}"
    return [Check("clipped", True, f"{found}, with noise, for epsilon {clipped.epsilon}")]


def _check_statement(release: Release, stored: tuple[str, bool] | None) -> Check:
    """Word for word; where another version worded it, it must at least name the same epsilon, the
    unit if that is not one record, and warn of noise that is not secret."""
    text, ours = (release.statement, True) if stored is None else stored
    warned = text.startswith("NOT PRIVATE") != release.private
    named = release.protection.unit == RECORD or release.protection.name in text
    named = named and (release.protection.weight is None or release.quantity in text)
    # Not the end of a longer number: 0.1-differentially private is not 1-differentially private.
    claimed = re.search(rf"(?<![\d.]){re.escape(str(release.epsilon))}-differ", text) is not None
    passed = text == release.statement if ours else claimed and named and warned
    finding = f"epsilon {release.epsilon}, {release.protection.spoken}"
    return Check("statement", passed, finding if passed else "does not follow from the release")


CHECKS = (_check_tiling, _check_spend, _check_ledger, _check_sums, _check_noise)
BOUGHT: dict[type, Callable[..., list[Check]]] = {
    Activity: _check_activity,
    DistinctCounts: _check_distinct,
    Clipped: _check_clipped,
    ZonesBought: _check_zones,
}
