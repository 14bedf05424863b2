"""The release: what is published. Public and immutable.

It holds the boxes with their estimates, the raw noisy measurements behind them, the ledger, and all
that is needed to check the one against the other. It holds nothing exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from htf.base import arguments
from htf.base.read_only import ReadOnlyArrays, make_read_only
from htf.errors import InputError
from htf.estimation.background import Background
from htf.estimation.expectation import trust_shape
from htf.estimation.hierarchy import HIERARCHY
from htf.estimation.homogeneous import FROM_LEAVES, PRIOR_TRUST
from htf.estimation.inside_zones import COUNTED_REGIONS, INSIDE_ZONES, OWN_EPSILON, WITH_MAP
from htf.estimation.least_squares import TreeCounts
from htf.estimation.prior import MOST_PRIORS, Prior
from htf.estimation.worth import Worth, scale_to_all
from htf.frame.domain import Domain, FloatArray, IntArray
from htf.frame.tree import RegionTree
from htf.privacy.activity import Activity
from htf.privacy.clipping import Clipped
from htf.privacy.distinct import DistinctCounts
from htf.privacy.epsilon import Epsilon
from htf.privacy.ledger import LedgerLine
from htf.privacy.meaning import Meaning
from htf.privacy.protection import OF_RECORDS, RECORD, Protection, epsilon_per_share
from htf.privacy.purchase import find, in_order
from htf.privacy.purchases import PURCHASES, Bought
from htf.privacy.statement import privacy_statement
from htf.privacy.zones_bought import ZonesBought
from htf.release.kinds import KINDS

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from htf.maps.views import View
    from htf.mechanisms.base import Histogram
    from htf.query.answer import Answer
    from htf.query.derived import Derived
    from htf.query.question import Question
    from htf.query.where import Where

BORROWING = (FROM_LEAVES, HIERARCHY)  # the estimators that use a background
# Records, and noise: measurements are 64-bit integers, and squares of it do not overflow.
LARGEST = 2.0**62


@dataclass(frozen=True, eq=False)
class MeasurementTable(ReadOnlyArrays):
    """The raw noisy measurements of a release, one row each.

    Attributes
    ----------
    line : ndarray of int
        The line of the ledger.
    kind : ndarray of int
        The place of its kind in `release.kinds.KINDS`.
    region : ndarray of int
        The region asked about.
    axis, cut : ndarray of int
        Where a cut was asked about; -1 where the question names none.
    epsilon : ndarray of int
        The price in units of 1e-15. Of answers that are paid for together, the first has it.
    value : ndarray of int
        The noisy answer.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> matrix = htf.FrequencyMatrix.from_dense(domain, [[500, 20], [0, 30]])
    >>> table = htf.publish(matrix, 1, noise="seeded:1").measurements
    >>> table.value
    array([627, 500,  21,  -1,  30])
    """

    line: IntArray  # of the ledger
    kind: IntArray  # place in release.kinds.KINDS
    region: IntArray
    axis: IntArray  # -1 where the question names none
    cut: IntArray
    epsilon: IntArray  # in units of 1e-15; of answers that are paid for together, the first has it
    value: IntArray

    @classmethod
    def from_parts(cls, parts: Iterable[dict[str, Any]]) -> MeasurementTable:
        """Join the columns of several charges, in which a whole number stands for a constant column.

        Parameters
        ----------
        parts : iterable of dict
            The columns of each charge.

        Returns
        -------
        MeasurementTable
            All rows.

        Examples
        --------
        >>> from htf.release.release import MeasurementTable
        >>> len(MeasurementTable.from_parts([table.columns(), table.columns()]))
        10
        """
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
        """Select the rows of one kind of measurement.

        Parameters
        ----------
        kind : str
            Its name, such as `count`.

        Returns
        -------
        MeasurementTable
            These rows.

        Examples
        --------
        >>> len(table.of_kind("count"))
        5
        """
        rows = self.kind == KINDS.index(kind)
        return MeasurementTable(**{name: column[rows] for name, column in self.columns().items()})

    def tree_counts(self) -> TreeCounts:
        """The noisy counts of regions. Not part of what is promised."""
        table, counts = self.of_kind("count"), TreeCounts()
        counts.add(table.region, table.value, table.epsilon)
        table = self.of_kind("agreeing")
        for line in sorted(set(table.line.tolist())):  # those of one line were drawn together
            rows = table.line == line
            columns = table.region[rows], table.value[rows], table.epsilon[rows]
            counts.add(*columns, agreeing=True)
        looks, refined = self.of_kind("look"), self.of_kind("refined")
        size = self.region.max(initial=0) + 1
        is_refined, paid = np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.int64)
        is_refined[refined.region] = True
        alone = ~is_refined[looks.region]
        counts.add(looks.region[alone], looks.value[alone], looks.epsilon[alone])
        counts.searched = looks.region[alone]
        paid[looks.region] = looks.epsilon
        counts.add(refined.region, refined.value, paid[refined.region] + refined.epsilon)
        return counts

    def columns(self) -> dict[str, IntArray]:
        """All columns by name.

        Returns
        -------
        dict of ndarray
            The columns.

        Examples
        --------
        >>> list(table.columns())
        ['line', 'kind', 'region', 'axis', 'cut', 'epsilon', 'value']
        """
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True, eq=False)
class Release(ReadOnlyArrays):
    """A differentially private histogram of the map: what is published. Immutable.

    Make one with `publish`, read one with `load`.

    Attributes
    ----------
    domain : Domain
        The map.
    epsilon : Epsilon
        What is claimed, for one unit. It was fixed before the first draw.
    mechanism : str
        The name of the mechanism.
    parameters : dict
        Its parameters.
    facts : dict
        What the mechanism found out by noisy measurements, such as the height of the tree.
    estimator : str
        How the estimates follow from the measurements.
    noise : str
        Where the noise came from.
    private : bool
        False where the noise was seeded or scripted.
    tree : RegionTree
        All regions.
    leaves : ndarray of int
        The regions that tile the map.
    estimates : ndarray of float
        The count of each leaf: records, or split people.
    scales : ndarray of float
        The scale of the Laplace noise in each estimate, on whole numbers: of the same variance as its noise.
    measurements : MeasurementTable
        The raw noisy measurements. Where split people are counted, their values are in shares of a person.
    ledger : tuple of LedgerLine
        What each measurement has cost.
    priors : tuple of Prior
        What the curator said was publicly known of the map. Estimates follow from it too.
    background : Background, optional
        In a series: what the releases of earlier periods count in each region. Estimates follow from it too.
    protection : Protection
        The unit, and how its records were bounded.
    bought : tuple of Activity, DistinctCounts, Clipped or ZonesBought
        What was measured beside the map: an activity of people, a table of different people, the number of cut records,
        zones. `epsilon` includes the cost. `activity`, `distinct`, `clipped` and `zones` find one of them, or None.
    factor : float
        What kept records were multiplied by, so that counts are of all records. It follows from the activity.
    budget_entry : str, optional
        The entry of the budget file that was charged. Random, and public.
    low, high : ndarray of int
        The bounds of the leaves, in cells.

    Examples
    --------
    >>> import htf
    >>> city = htf.synthetic_city(20_000, seed=1)
    >>> domain = htf.Domain.from_bounds(*city.domain_bounds, cells=64)
    >>> matrix = htf.read_points([city.x, city.y], domain)
    >>> release = htf.publish(matrix, epsilon=1, noise="seeded:1")
    >>> release.epsilon == htf.Epsilon.of(1)
    True
    """

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
    priors: tuple[Prior, ...] = ()  # public, given by the curator; estimates follow from them too
    background: Background | None = None  # what earlier releases of a series count in each region
    protection: Protection = OF_RECORDS  # the unit, and how its records were bounded
    bought: tuple[Bought, ...] = ()  # measured beside the map; `epsilon` counts it in
    factor: float = 1.0  # by which counts of kept records are multiplied, for those of all records
    budget_entry: str | None = None  # of the budget file that it was charged to; random, public
    low: IntArray = field(init=False)  # boxes of the leaves, in cells
    high: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self._check_kinds()
        self.tree.check_regions(self.leaves)
        object.__setattr__(self, "low", self.tree.low[self.leaves])
        object.__setattr__(self, "high", self.tree.high[self.leaves])
        make_read_only(self.leaves, self.estimates, self.scales, self.low, self.high)
        self._check()

    def _check_kinds(self) -> None:
        for name, kind in _kinds().items():
            if not isinstance(getattr(self, name), kind):
                expected = getattr(kind, "__name__", str(kind))
                remedy = "make a release with htf.publish"
                raise arguments.unfit(f"{name} of a release", expected, getattr(self, name), remedy)
        for line in self.ledger:
            arguments.instance(line, LedgerLine, "each line of the ledger of a release")
        for one in self.bought:
            if not isinstance(one, PURCHASES):
                raise arguments.unfit("each of what a release bought", "a purchase", one)
        object.__setattr__(self, "bought", in_order(self.bought, PURCHASES))
        for name, kind in (("leaves", "i"), ("estimates", "f"), ("scales", "f")):
            arguments.row(getattr(self, name), kind, f"{name} of a release")

    def _check_priors(self) -> None:
        for prior in self.priors:
            arguments.instance(prior, Prior, "each prior of a release")
            prior.check_map(self.domain)
        if self.priors and self.estimator != FROM_LEAVES:
            raise InputError(f"the estimator {self.estimator!r} cannot use a prior")
        if len(self.priors) > MOST_PRIORS:
            raise InputError(f"a release has at most {MOST_PRIORS} priors, not {len(self.priors)}")
        if self.priors:
            trust, shape = self.prior_trust, trust_shape(self.domain.shape, len(self.priors))
            if trust.shape != shape or not np.all(trust >= 0) or np.any(trust.sum(axis=0) > 1):
                raise InputError("the trust in the priors of a release does not fit them")

    def _check_background(self) -> None:
        if self.background is None:
            return
        if self.estimator not in BORROWING:
            raise InputError(f"the estimator {self.estimator!r} cannot use a background")
        if len(self.background.values) != len(self.tree):
            raise InputError("the background of a release needs one value for each region")

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
        self._check_priors()
        self._check_background()
        for one in self.bought:
            one.check_map(self.domain)
        if self.zones is not None or self.estimator == INSIDE_ZONES:
            self._check_inside()
        if self.own_epsilon > self.epsilon:
            raise InputError(
                f"zones cannot have been given epsilon {self.own_epsilon}, which is more than all of {self.epsilon}"
            )
        epsilon_per_share(self.own_epsilon, self.protection, *self.bought)  # refuses what cannot be
        if not 1 <= self.factor <= LARGEST or (self.activity is None and self.factor != 1):
            raise InputError(
                f"the factor of a release is at least 1, and 1 without an activity, got {self.factor}"
            )

    def _check_inside(self) -> None:
        """A map inside zones says what was counted of it. The zones are inside of nothing."""
        zones, counted = self.zones, self.facts.get(COUNTED_REGIONS)
        sound = self.estimator == INSIDE_ZONES and self.domain.has_map
        sound = sound and type(counted) is int and 0 < counted <= len(self.tree)
        of_zones = zones is not None and zones.zones is None and bool(zones.domain.outlined)
        claimed = zones is not None and (zones.estimator, zones.epsilon)
        if not (sound and of_zones and claimed == (WITH_MAP, self.epsilon)):
            raise InputError(
                "a map inside zones must have them, with the same epsilon, and say which of its regions were counted"
            )

    @classmethod
    def from_histogram(cls, histogram: Histogram, *, tree: RegionTree, **rest: Any) -> Release:
        """Make a release from what a mechanism returns. The Curator does this.

        Leaves come in an order that keeps neighbours together.

        Parameters
        ----------
        histogram : Histogram
            What the mechanism returned.
        tree : RegionTree
            All regions.
        **rest
            All other attributes of the release, by name.

        Returns
        -------
        Release
            The release.

        Raises
        ------
        InputError
            If the parts do not belong together.

        Examples
        --------
        >>> from dataclasses import fields
        >>> names = [f.name for f in fields(release) if f.init and f.name not in
        ...          ("tree", "leaves", "estimates", "scales", "estimator", "facts")]
        >>> from htf.mechanisms import Histogram
        >>> histogram = Histogram(
        ...     release.leaves, release.estimates, release.scales, release.estimator, release.facts)
        >>> rest = {name: getattr(release, name) for name in names}
        >>> htf.Release.from_histogram(histogram, tree=release.tree, **rest) == release
        True
        """
        order = np.argsort(tree.preorder()[histogram.leaves])
        protection = rest.get("protection", OF_RECORDS)
        activity = find(rest.get("bought", ()), Activity)
        factor = scale_to_all(histogram.estimates, histogram.scales, protection, activity)
        total = factor * float(np.sum(histogram.estimates)) / protection.shares
        worth = Worth.of(protection, activity, factor, total)
        estimates, scales = worth.of_estimates(histogram.estimates, histogram.scales)
        return cls(
            tree=tree,
            leaves=np.asarray(histogram.leaves, dtype=np.int64)[order],
            estimates=estimates[order],
            scales=scales[order],
            estimator=histogram.estimator,
            facts=histogram.facts,
            **{**rest, "factor": factor},
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
        rest = (self.estimator, self.noise, self.private, self.ledger, self.priors, self.background)
        claims = (self.protection, self.bought, self.factor)
        return (*plain, *rest, *claims, *(array.tobytes() for array in arrays))

    @property
    def prior_trust(self) -> FloatArray:
        """How far each prior was trusted, from 0 to 1: by prior, by level (at level n regions are 1/4^n of the map) and by
        density of the land (thin, usual, dense)."""
        found = np.ones(trust_shape(self.domain.shape, 0))
        if self.priors:
            given = self.facts.get(PRIOR_TRUST)
            found = arguments.array(given, "the trust in priors").astype(float)
        make_read_only(found)
        return found

    @property
    def record_epsilon(self) -> Epsilon:
        """What measurements may cost each record of which K were kept per person, or each share of a person, or each unit
        of a weight."""
        return epsilon_per_share(self.own_epsilon, self.protection, *self.bought)

    @property
    def own_epsilon(self) -> Epsilon:
        """What its own measurements were given. That is less than `epsilon` for the zones of a map inside zones: their
        estimates come from the counts of both, so that only what both cost together may be claimed."""
        if self.estimator != WITH_MAP:
            return self.epsilon
        return Epsilon.of(arguments.text(self.facts.get(OWN_EPSILON), "the own epsilon of zones"))

    @property
    def activity(self) -> Activity | None:
        """How many people have how many records, found with noise, if that was bought."""
        return find(self.bought, Activity)

    @property
    def distinct(self) -> DistinctCounts | None:
        """How many different people were in each box of a grid, found with noise, if that was bought."""
        return find(self.bought, DistinctCounts)

    @property
    def clipped(self) -> Clipped | None:
        """How many records were cut at the largest weight, found with noise, if that was bought."""
        return find(self.bought, Clipped)

    @property
    def zones(self) -> Release | None:
        """The zones that the map adds up to, if they were bought. `inside_zones` makes such a release."""
        found = find(self.bought, ZonesBought)
        return None if found is None else found.release

    @property
    def quantity(self) -> str:
        """What counts are numbers of, in a few words: `records`, `split people`, `split person-days` or, for example,
        `sum of passengers`."""
        return self.protection.quantity

    @property
    def counted(self) -> str:
        """The quantity with its bound, to stand beside numbers, such as `records, at most 20 per person`."""
        return self.protection.told + (", scaled" if self.activity is not None else "")

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
        """What is computed from this record to answer questions: each piece once, when first needed.

        It is not part of what is promised, and may change from one version to the next.
        """
        from htf.query.derived import Derived

        return Derived.of(self)

    def ask(self, question: Question) -> Answer:
        """Answer a question: counts with errors of boxes, polygons, zones or names.

        Warns about places outside of the map: they count 0, whatever is there.

        Parameters
        ----------
        question : Question
            What is asked. `Question.boxes`, `polygons`, `zones` and `by` make one.

        Returns
        -------
        Answer
            One entry for each box, polygon or name.

        Raises
        ------
        InputError
            If the question does not fit the map.

        Examples
        --------
        >>> answer = release.ask(htf.Question.boxes([-30.02, 39.98, -29.98, 40.02]))
        >>> bool(answer.low[0] < answer.high[0])
        True
        """
        from htf.query.question import ask

        return ask(question, self)

    def count(self, boxes: Any = None, where: Where | None = None) -> Answer:
        """Count the records or split people in boxes, with errors: short for `ask(Question.boxes(boxes, where))`.

        Parameters
        ----------
        boxes : array_like, optional
            One box W,S,E,N in map coordinates, or many as rows; by default the whole map. A box may also
            name every axis, all low edges first, then all high ones.
        where : mapping, optional
            Ranges of further axes, such as `{"hour": (7, 10)}`. Other axes are counted whole.

        Returns
        -------
        Answer
            One entry for each box.

        Raises
        ------
        InputError
            If boxes or ranges are not finite, are swapped, or name no axis.

        Examples
        --------
        >>> answers = release.count([-30.02, 39.98, -29.98, 40.02])
        >>> bool(answers.low[0] < answers.high[0])
        True
        """
        from htf.query.question import Question, ask

        return ask(Question.boxes(boxes, where), self)

    def count_distinct(self) -> Answer:
        """Count the different people in each box of the grid of a table of different people, with errors: short for
        `ask(Question.different_people())`.

        Returns
        -------
        Answer
            `different_people`, `std_error`, `low` and `high` of each box.

        Raises
        ------
        InputError
            If the release has no such table.

        Examples
        --------
        >>> release.distinct is None
        True
        """
        from htf.query.question import Question, ask

        return ask(Question.different_people(), self)

    def count_polygons(
        self, geometries: Any, *, crs: Any = None, where: Where | None = None
    ) -> Answer:
        """Count the records or split people in polygons, with errors: short for `ask(Question.polygons(geometries))`.
        Needs shapely.

        Parameters
        ----------
        geometries : object
            Polygons as shapely geometries, a GeoPandas series or frame, or GeoJSON; one or many.
        crs : object, optional
            The reference system of bare shapely geometries, by default that of the map.
        where : mapping, optional
            Ranges of further axes, such as `{"hour": (7, 10)}`.

        Returns
        -------
        Answer
            One entry for each polygon.

        Raises
        ------
        InputError
            If something is not a polygon.

        Examples
        --------
        >>> import shapely
        >>> answers = release.count_polygons(shapely.Point(-30, 40).buffer(0.05))
        >>> float(answers.inside[0])
        1.0
        """
        from htf.query.question import Question, ask

        return ask(Question.polygons(geometries, crs=crs, where=where), self)

    def table(self, *by: str, where: Where | None = None) -> pa.Table:
        """Count by names, as a table of Arrow: short for `ask(Question.by(…)).to_arrow()`.

        Parameters
        ----------
        *by : str
            Levels, such as `district`, and axes, such as `hour`. A level of zones that both ends of trips have gives
            a row for each pair. By default the lowest level of the first axis of zones.
        where : mapping, optional
            Ranges of other axes, or names on them, such as `{"hour": (7, 10), "offence": "Assault"}`.

        Returns
        -------
        pyarrow.Table
            Labels, all that the layer says of zones, and the counts.

        Raises
        ------
        InputError
            If there is no such level or axis, or there would be too many rows.

        Examples
        --------
        >>> kinds = htf.Names.of({"kind": ["tram", "bus"]})
        >>> domain = htf.Domain((htf.Axis.named("kind", kinds),))
        >>> matrix = htf.FrequencyMatrix.from_dense(domain, [70, 30])
        >>> htf.publish(matrix, 1, noise="seeded:1").table("kind")["kind"].to_pylist()
        ['tram', 'bus']
        """
        from htf.query.question import Question, ask

        return ask(Question.by(*by, where=where), self).to_arrow()

    def plot(self, **options: Any) -> Figure:
        """Draw the density on a map, with a log scale. Needs matplotlib, and for zones shapely.

        Parameters
        ----------
        **options
            `axes` names the two axes to draw; `where` gives ranges of the others; `by` names one that gets
            a panel for each of its steps or names; `boxes=True` adds the outlines of the leaves; `pixels`
            limits the resolution; `title` stands above it; `basemap=True` adds coasts, borders and names of
            places; `ax` is where to draw. Of a release of zones, `level` names the level to
            draw. Trips between zones are lines, unless `where` names one end.

        Returns
        -------
        matplotlib.figure.Figure
            Save it with its `savefig`.

        Raises
        ------
        InputError
            If an axis is not there, or a range is off the map.

        Examples
        --------
        >>> release.plot(boxes=True).savefig("map.png")
        """
        from htf.maps.draw import plot_release

        return plot_release(self, **options)

    def view(
        self,
        axes: tuple[str, str] = ("x", "y"),
        where: Where | None = None,
        cells: int | tuple[int, int] | None = None,
    ) -> View:
        """Spread the counts over a regular grid along two axes: the numbers that `plot` draws.

        Parameters
        ----------
        axes : (str, str)
            The axes of the grid. Others are summed.
        where : mapping, optional
            Ranges of axes, such as `{"hour": (7, 10)}`. A range of an axis of the grid crops the view at
            whole cells.
        cells : int or (int, int), optional
            The most pixels a side.

        Returns
        -------
        View
            Counts, noise and edges of the pixels.

        Raises
        ------
        InputError
            If an axis is not there, or a range is off the map.

        Examples
        --------
        >>> release.view(cells=16).counts.shape
        (16, 16)
        """
        from htf.maps.views import view

        return view(self, axes, where, cells)

    def sample(self, n: int | None = None, seed: int | None = None) -> pa.Table:
        """Draw synthetic points from the release. This costs no budget.

        Parameters
        ----------
        n : int, optional
            How many, by default as many as the release counts.
        seed : int, optional
            The same seed gives the same points.

        Returns
        -------
        pyarrow.Table
            One row for each point.

        Raises
        ------
        InputError
            If there is nothing to draw from, or too much.

        Examples
        --------
        >>> release.sample(100, seed=1).column_names
        ['lon', 'lat']
        """
        from htf.export.sample import draw_points

        return draw_points(self, n, seed)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write a GeoParquet file, whole or not at all.

        Parameters
        ----------
        path : str or Path
            Where to write it.
        overwrite : bool
            Whether a file of that name may be replaced. A release that was charged to a budget file never
            is (docs/outputs.md).

        Raises
        ------
        OutputError
            If the file cannot be written, or must not be.

        Examples
        --------
        >>> release.save("city.parquet")
        """
        from htf.release.file import save

        save(self, arguments.path(path, "the output"), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> Release:
        """Read a file that `save` wrote.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        Release
            The release.

        Raises
        ------
        ReleaseFileError
            If the file is damaged, or is no release.

        Examples
        --------
        >>> release.save("same.parquet")
        >>> htf.Release.load("same.parquet") == release
        True
        """
        from htf.release.file import load

        remedy = "a table of points is counted with htf.read_points, then released with htf.publish"
        return load(arguments.path(path, "a release to load", remedy))

    def summary(self) -> dict[str, Any]:
        """Describe everything but the leaves and the measurements with plain values, for JSON.

        Returns
        -------
        dict
            What `htf info --json` prints.

        Examples
        --------
        >>> release.summary()["epsilon"]
        '1'
        """
        return {
            "private": self.private,
            "statement": self.statement,
            "epsilon": str(self.epsilon),
            "meaning": Meaning(self.epsilon, self.protection).to_dict() if self.private else None,
            "protection": self.protection.to_dict(),
            "quantity": self.quantity,
            "counted": self.counted,
            "record_epsilon": str(self.record_epsilon),
            "factor": self.factor,
            **{kind.kind: None for kind in PURCHASES},
            **{one.kind: one.to_dict() for one in self.bought},
            "spent": str(self.spent),
            "noise": self.noise,
            "mechanism": self.mechanism,
            "parameters": self.parameters,
            "facts": self.facts,
            "estimator": self.estimator,
            "leaves": len(self),
            "measurements": len(self.measurements),
            "domain": self.domain.to_dict(),
            "priors": [prior.to_dict() for prior in self.priors],
            "ledger": [line.to_dict() for line in self.ledger],
        }


@cache
def _kinds() -> dict[str, Any]:
    """What each field of a release must be, by its annotation; arrays are looked at apart."""
    hints = get_type_hints(Release)
    kinds = {f.name: hints[f.name] for f in fields(Release) if f.init}
    plain = {name: getattr(kind, "__origin__", kind) for name, kind in kinds.items()}
    return {name: kind for name, kind in plain.items() if kind is not np.ndarray}


def check_release(given: object, name: str = "release") -> Release:
    """The release that a caller names."""
    remedy = "read one with htf.Release.load(path), or make one with htf.publish"
    return arguments.instance(given, Release, name, remedy)
