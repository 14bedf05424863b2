"""The release: what is published. Public and immutable.

It holds the boxes with their estimates, the raw noisy measurements behind them, the ledger, and all
that is needed to check the one against the other. It holds nothing exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from htf.base import arguments
from htf.base.read_only import ReadOnlyArrays
from htf.errors import InputError
from htf.estimation.homogeneous import HOMOGENEOUS
from htf.estimation.least_squares import TreeCounts
from htf.estimation.prior import Prior
from htf.frame.domain import Domain, FloatArray, IntArray
from htf.frame.tree import RegionTree
from htf.privacy.epsilon import Epsilon
from htf.privacy.ledger import LedgerLine
from htf.privacy.protection import OF_RECORDS, RECORD, Protection, Suggestion, epsilon_per_record
from htf.privacy.statement import privacy_statement
from htf.release.kinds import KINDS

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from htf.mechanisms.base import Histogram
    from htf.query.columns import Answers
    from htf.query.derived import Derived
    from htf.query.where import Where

LARGEST = (
    2.0**62
)  # records, and noise: measurements are 64-bit integers, and squares of it do not overflow


@dataclass(frozen=True, eq=False)
class MeasurementTable(ReadOnlyArrays):
    """The raw noisy measurements, one row each."""

    line: IntArray  # of the ledger
    kind: IntArray  # place in release.kinds.KINDS
    region: IntArray
    axis: IntArray  # -1 where the question names none
    cut: IntArray
    epsilon: IntArray  # in units of 1e-15; of answers that are paid for together, the first has it
    value: IntArray

    @classmethod
    def from_parts(cls, parts: Iterable[dict[str, Any]]) -> MeasurementTable:
        """From the columns of each charge, in which whole numbers stand for a constant column."""
        columns: dict[str, list[IntArray]] = {f.name: [np.empty(0, np.int64)] for f in fields(cls)}
        for part in parts:
            size = len(part["epsilon"])
            for name, column in columns.items():
                column.append(np.broadcast_to(np.asarray(part[name], dtype=np.int64), size))
        return cls(**{name: np.concatenate(column) for name, column in columns.items()})

    def __post_init__(self) -> None:
        for name, column in self.columns().items():
            arguments.row(column, "i", f"{name} of measurements").flags.writeable = False
        if len({len(column) for column in self.columns().values()}) > 1:
            raise InputError("the columns of measurements must have the same length")

    def __len__(self) -> int:
        return len(self.region)

    def of_kind(self, kind: str) -> MeasurementTable:
        """The rows of one kind of measurement, by its name."""
        rows = self.kind == KINDS.index(kind)
        return MeasurementTable(**{name: column[rows] for name, column in self.columns().items()})

    def tree_counts(self) -> TreeCounts:
        """The noisy counts of regions."""
        table, counts = self.of_kind("count"), TreeCounts()
        counts.add(table.region, table.value, table.epsilon)
        return counts

    def columns(self) -> dict[str, IntArray]:
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True, eq=False)
class Release(ReadOnlyArrays):
    """A differentially private histogram of the map. Make one with `publish`, read one with `load`."""

    domain: Domain
    epsilon: Epsilon  # fixed before the first draw, for one unit: this is what is claimed
    mechanism: str
    parameters: dict[str, Any]
    facts: dict[str, Any]  # what the mechanism found out by noisy measurements, such as the height
    estimator: str  # how the estimates follow from the measurements
    noise: str
    private: bool  # False where the noise was seeded or scripted
    tree: RegionTree
    leaves: IntArray  # the regions that tile the map
    estimates: FloatArray
    scales: FloatArray  # of the Laplace noise in each estimate
    measurements: MeasurementTable
    ledger: tuple[LedgerLine, ...]
    prior: Prior | None = None  # public, given by the curator; estimates follow from it too
    protection: Protection = OF_RECORDS  # the unit, and how its records were bounded
    suggestion: Suggestion | None = None  # of that bound, found with noise; `epsilon` counts it in
    budget_entry: str | None = None  # of the budget file that it was charged to; random, public
    low: IntArray = field(init=False)  # boxes of the leaves, in cells
    high: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self._check_kinds()
        self.tree.check_regions(self.leaves)
        object.__setattr__(self, "low", self.tree.low[self.leaves])
        object.__setattr__(self, "high", self.tree.high[self.leaves])
        for array in (self.leaves, self.estimates, self.scales, self.low, self.high):
            array.flags.writeable = False
        self._check()

    def _check_kinds(self) -> None:
        kinds: dict[str, Any] = {
            "domain": Domain,
            "epsilon": Epsilon,
            "mechanism": str,
            "parameters": dict,
            "facts": dict,
            "estimator": str,
            "noise": str,
            "private": bool,
            "tree": RegionTree,
            "measurements": MeasurementTable,
            "ledger": tuple,
            "prior": Prior | None,
            "protection": Protection,
            "suggestion": Suggestion | None,
            "budget_entry": str | None,
        }
        for name, kind in kinds.items():
            if not isinstance(getattr(self, name), kind):
                expected = getattr(kind, "__name__", str(kind))
                remedy = "make a release with htf.publish"
                raise arguments.unfit(f"{name} of a release", expected, getattr(self, name), remedy)
        for line in self.ledger:
            arguments.instance(line, LedgerLine, "each line of the ledger of a release")
        for name, kind in (("leaves", "i"), ("estimates", "f"), ("scales", "f")):
            arguments.row(getattr(self, name), kind, f"{name} of a release")

    def _check(self) -> None:
        if not self.tree.is_covered_once_by(self.leaves):
            raise InputError("the leaves of a release must cover the map, each cell once")
        self.tree.check_regions(self.measurements.region)
        if not len(self.leaves) == len(self.estimates) == len(self.scales):
            raise InputError("a release needs one estimate and one scale per leaf")
        if not (np.all(np.abs(self.estimates) <= LARGEST) and np.all(self.scales >= 0)):
            raise InputError("the estimates of a release must be finite, their scales positive")
        if not np.all(self.scales <= LARGEST):
            raise InputError("the noise of a release has a scale that no epsilon gives")
        if self.prior is not None:
            self.prior.check_map(self.domain)
            if self.estimator != HOMOGENEOUS:
                raise InputError(f"the estimator {self.estimator!r} cannot use a prior")
        epsilon_per_record(self.epsilon, self.protection, self.suggestion)  # refuses what cannot be

    @classmethod
    def from_histogram(cls, histogram: Histogram, *, tree: RegionTree, **rest: Any) -> Release:
        """From what a mechanism returns; boxes come in an order that keeps neighbours together."""
        order = np.argsort(tree.preorder()[histogram.leaves])
        return cls(
            tree=tree,
            leaves=np.asarray(histogram.leaves, dtype=np.int64)[order],
            estimates=np.asarray(histogram.estimates, dtype=np.float64)[order],
            scales=np.asarray(histogram.scales, dtype=np.float64)[order],
            estimator=histogram.estimator,
            facts=histogram.facts,
            **rest,
        )

    def __len__(self) -> int:
        return len(self.leaves)

    def __repr__(self) -> str:
        warning = "" if self.private else ", NOT PRIVATE"
        unit = "" if self.protection.unit == RECORD else f" for {self.protection.name}"
        name = self.mechanism if self.mechanism.isprintable() else repr(self.mechanism)
        return f"Release({name}, epsilon={self.epsilon}{unit}, {len(self)} leaves{warning})"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from htf.maps.browser.notebook import release_html

        return release_html(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        return self._content() == other._content()

    def __hash__(self) -> int:
        return hash((self.mechanism, self.epsilon, len(self)))

    def _content(self) -> tuple[Any, ...]:
        arrays: list[NDArray[Any]] = [self.tree.parent, self.tree.low, self.tree.high, self.leaves]
        arrays += [self.estimates, self.scales, *self.measurements.columns().values()]
        plain = (self.domain, self.epsilon, self.mechanism, self.parameters, self.facts)
        rest = (self.estimator, self.noise, self.private, self.ledger, self.prior)
        claim = (self.protection, self.suggestion)
        return (*plain, *rest, *claim, *(array.tobytes() for array in arrays))

    @property
    def record_epsilon(self) -> Epsilon:
        """What measurements may cost each record. Of one person K were kept, each of which has a share."""
        return epsilon_per_record(self.epsilon, self.protection, self.suggestion)

    @property
    def spent(self) -> Epsilon:
        """What this run happened to spend, of `record_epsilon`. Information only: the claim is `epsilon`."""
        return self.ledger[-1].spent_after if self.ledger else Epsilon(0)

    @property
    def statement(self) -> str:
        """The privacy guarantee in plain words."""
        return privacy_statement(self)

    @cached_property
    def derived(self) -> Derived:
        """What is computed from this record to answer questions: each piece once, when first needed."""
        from htf.query.derived import Derived

        return Derived.of(self)

    def count(self, boxes: Any = None, where: Where | None = None) -> Answers:
        """Counts with error bars for boxes W,S,E,N in map coordinates: one, or an array of many;
        without any, for the whole map.

        `where` gives ranges of further axes, such as `{"hour": (7, 10)}`; axes that are not named
        are counted whole. A box may also name every axis, all low edges first, then all high ones.
        A warning says which boxes lie outside of the map: they count 0, whatever is there. Raises
        InputError for boxes or ranges that are no finite numbers, go down or name no axis.
        """
        from htf.query.boxes import count_boxes
        from htf.query.outside import warn_of_boxes

        answers = count_boxes(self.domain, self.derived.answering_index, boxes, where)
        warn_of_boxes(self.domain, boxes, where, answers.inside)
        return answers

    def count_polygons(
        self,
        geometries: Any,
        *,
        crs: Any = None,
        where: Where | None = None,
    ) -> Answers:
        """Counts with error bars for polygons: shapely, GeoPandas or GeoJSON, one or many.

        `crs` is the reference system of bare shapely geometries, by default the map's; `where` gives
        ranges of further axes, such as `{"hour": (7, 10)}`. Needs shapely. A warning says when none of
        the polygons lies on the map. Raises InputError for what is no polygon.
        """
        from htf.query.outside import warn_of_polygons
        from htf.query.polygons import count_polygons

        index = self.derived.answering_index
        answers = count_polygons(self.domain, index, geometries, crs=crs, where=where)
        warn_of_polygons(self.domain, answers.inside)
        return answers

    def plot(self, **options: Any) -> Figure:
        """A map of the density on a log scale; `where`, `axes` and `by` say what to do with further
        axes (htf.maps.plot.plot_release has all options). Needs matplotlib."""
        from htf.maps.plot import plot_release

        return plot_release(self, **options)

    def sample(self, n: int | None = None, seed: int | None = None) -> pa.Table:
        """`n` synthetic points drawn from the release, by default as many as it counts; no budget."""
        from htf.export.sample import draw_points

        return draw_points(self, n, seed)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write a GeoParquet file, whole or not at all.

        A file that exists is refused unless `overwrite` is given, and a release that was charged to a
        budget file even then (docs/outputs.md). Raises OutputError if it cannot be written.
        """
        from htf.release.file import save

        save(self, arguments.path(path, "the output"), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> Release:
        """Read a file that `save` wrote. Raises ReleaseFileError if it is damaged, or none."""
        from htf.release.file import load

        remedy = "a table of points is counted with htf.read_points, then released with htf.publish"
        return load(arguments.path(path, "a release to load", remedy))

    def summary(self) -> dict[str, Any]:
        """All but the boxes and the measurements, as plain values."""
        return {
            "private": self.private,
            "statement": self.statement,
            "epsilon": str(self.epsilon),
            "protection": self.protection.to_dict(),
            "record_epsilon": str(self.record_epsilon),
            "suggestion": None if self.suggestion is None else self.suggestion.to_dict(),
            "spent": str(self.spent),
            "noise": self.noise,
            "mechanism": self.mechanism,
            "parameters": self.parameters,
            "facts": self.facts,
            "estimator": self.estimator,
            "leaves": len(self),
            "measurements": len(self.measurements),
            "domain": self.domain.to_dict(),
            "prior": None if self.prior is None else self.prior.to_dict(),
            "ledger": [line.to_dict() for line in self.ledger],
        }


def check_release(given: object, name: str = "release") -> Release:
    """The release that a caller names."""
    remedy = "read one with htf.Release.load(path), or make one with htf.publish"
    return arguments.instance(given, Release, name, remedy)
