"""The Curator: the one place where exact counts meet noise.

Every measurement takes the same path: it is checked, then charged, then answered with noise. The epsilon
that is charged is the epsilon that sets the noise; of a look and its rest, that of both. Only noisy values leave this module.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from htf.base import arguments
from htf.curator.catalogue import MEASUREMENTS
from htf.curator.cells import ExactCells
from htf.curator.frequency import FrequencyMatrix, check_matrix
from htf.curator.measurements import Measurement
from htf.curator.noise import NoiseSource, OpenDPNoise
from htf.curator.payment import Payment
from htf.curator.window import Window
from htf.errors import BudgetError, InputError
from htf.estimation.prior import Prior, all_priors
from htf.frame.bounds import check_bounds
from htf.frame.crs import check_crs
from htf.frame.domain import Domain, IntArray
from htf.frame.tree import RegionTree
from htf.privacy.apart import check_alike
from htf.privacy.budget import BY_HAND, BudgetFile, still_charged
from htf.privacy.epsilon import Epsilon
from htf.privacy.ledger import Ledger
from htf.privacy.origins import check_not_data
from htf.privacy.protection import (
    OF_RECORDS,
    RECORD,
    RECORDS,
    Protection,
    epsilon_per_share,
    price_of_map,
)
from htf.privacy.purchase import in_order
from htf.privacy.purchases import MEASURED, PURCHASES, Measured
from htf.privacy.zones_bought import ZonesBought
from htf.release.release import MeasurementTable, Release

if TYPE_CHECKING:
    from htf.curator.window import Steps
    from htf.mechanisms.base import Histogram, Mechanism

Progress = Callable[[str], None]


class Curator:
    """The one place where exact counts meet noise. It answers measurements up to `epsilon`.

    The epsilon protects the unit that the matrix names. Where that is a person of whom K records were
    kept, or who was divided into shares, the ledger and the window of the mechanism have what is left for
    each record or share. Where records have weights, they have what is left for a unit of weight. `publish`
    makes a Curator and runs it: use the class to ask for measurements by hand.

    Parameters
    ----------
    matrix : FrequencyMatrix
        The exact counts.
    epsilon : Epsilon
        The privacy budget. It includes the cost of what was `bought`.
    noise : NoiseSource, optional
        Where noise comes from, by default OpenDP.
    prior : Prior or sequence of Prior, optional
        What is publicly known of the map, from one source or several.
    budget : BudgetFile, optional
        The budget to charge before the first noise is drawn.
    label : str
        What to call the charge.
    bought : sequence of Activity, DistinctCounts or Clipped
        What `measure_activity`, `measure_distinct` and `measure_clipped` found. Each was charged when it was made.

    Raises
    ------
    InputError
        If arguments are wrong or do not go together.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> matrix = htf.FrequencyMatrix.from_dense(domain, [[500, 20], [0, 30]])
    >>> curator = htf.Curator(matrix, htf.Epsilon.of(1))
    >>> curator
    Curator(epsilon=1, exact counts not shown)
    """

    __slots__ = (
        "_bought", "_cells", "_entry", "_epsilon", "_ledger", "_one_by_one", "_payment", "_process", "_protection",
        "_taken", "_used", "window",
    )  # fmt: skip

    def __init__(
        self,
        matrix: FrequencyMatrix,
        epsilon: Epsilon,
        noise: NoiseSource | None = None,
        prior: Prior | Sequence[Prior] | None = None,
        *,
        budget: BudgetFile | None = None,
        label: str = "",
        bought: Sequence[Measured] = (),
    ) -> None:
        priors = all_priors(prior)
        _check_given(matrix, bought)
        check_crs(matrix.domain.crs)
        check_bounds(matrix.domain)
        for one in priors:
            one.check_map(matrix.domain)
            check_not_data(one.file, matrix.files)
        published = tuple(one.as_published() for one in priors)
        self._epsilon, self._protection = Epsilon.of(epsilon), matrix.protection
        self._bought = in_order(bought, PURCHASES)
        each = epsilon_per_share(self._epsilon, self._protection, *self._bought)
        for purchase in self._bought:
            purchase.check_map(matrix.domain)
        tree = RegionTree(matrix.domain.shape)
        self.window = Window(matrix.domain, tree, each, published, self._protection.shares)
        self._cells = ExactCells(matrix, tree)
        self._ledger = Ledger(tree, each)
        price = price_of_map(self._epsilon, *self._bought)
        source = OpenDPNoise() if noise is None else noise
        unit = self._protection.name
        self._payment = Payment.of(price, source, budget, label, unit, matrix.told_apart)
        for purchase in self._bought:
            check_bought(purchase, self._payment.noise, budget)
            check_alike(purchase.told_apart, matrix.told_apart, unit, purchase.name)
        self._entry: str | None = None  # of the budget, once it is charged
        self._taken: list[tuple[Measurement, IntArray]] = []
        self._used = False
        self._process: int | None = None  # that has begun to ask, and alone goes on
        self._one_by_one = threading.Lock()

    def __repr__(self) -> str:
        return f"Curator(epsilon={self._epsilon}, exact counts not shown)"

    def __reduce__(self) -> NoReturn:
        raise InputError(
            "a Curator cannot be copied or pickled: a copy would hold the exact counts, and could spend again what "
            "was charged only once. Make a new one"
        )

    @property
    def spent(self) -> Epsilon:
        """What each record has lost so far."""
        return self._ledger.spent

    def measure(self, measurement: Measurement) -> IntArray:
        """Check a measurement, charge it, and answer it with noise.

        A measurement that is refused leaves the data, the ledger and the noise untouched.

        Parameters
        ----------
        measurement : Measurement
            The question, from a method of `curator.window`.

        Returns
        -------
        ndarray of int
            The noisy answers.

        Raises
        ------
        InputError
            If the question makes no sense.
        BudgetError
            If too little epsilon is left.

        Examples
        --------
        >>> question = next(curator.window.count([0], htf.Epsilon.of("0.5"), "total"))
        >>> len(curator.measure(question)), str(curator.spent)
        (1, '0.5')
        """
        if type(measurement) not in MEASUREMENTS:  # a subclass could compute anything
            raise InputError(f"{type(measurement).__name__} is not a measurement of the Curator")
        measurement.check(self.window.tree)
        self._keep_to_process()  # before the lock, which a forked child may have got closed
        with self._one_by_one:  # two threads could both find room for the last charge
            measurement._check_after(self._cells)
            self._pay(BY_HAND, {})
            self._ledger.charge(measurement)
            answer = measurement.answer(self._cells, self._payment.noise)
            answer.flags.writeable = False
            self._taken.append((measurement, answer))
        return answer

    def run(self, mechanism: Mechanism, progress: Progress | None = None) -> Release:
        """Let a mechanism ask, and make a Release of what it returns.

        A Curator serves one mechanism: its budget, tree and ledger belong to that release.

        Parameters
        ----------
        mechanism : Mechanism
            The mechanism.
        progress : callable, optional
            Called with the label of each measurement.

        Returns
        -------
        Release
            What may be published.

        Raises
        ------
        InputError
            If the mechanism cannot use this map, or the Curator has made its release.
        BudgetError
            If the budget cannot pay for the mechanism.

        Examples
        --------
        >>> htf.Curator(matrix, htf.Epsilon.of(1)).run(htf.make_mechanism("htf"))
        Release(htf, epsilon=1, 4 leaves)
        """
        if isinstance(mechanism, type) or not callable(getattr(mechanism, "build", None)):
            remedy = "make one with htf.make_mechanism(name)"
            raise arguments.unfit("mechanism", "a Mechanism", mechanism, remedy)
        arguments.function(progress, "progress")
        if self._used:
            raise InputError(
                "this Curator has already made its release: make a new Curator for another"
            )
        mechanism.check_priors(self.window.priors)
        self._used = True
        steps = told_for_unit(mechanism, self.window, self._protection)
        with still_charged(self._payment.budget):
            return self._drive(mechanism, steps, progress)

    def _drive(
        self, mechanism: Mechanism, steps: Steps[Histogram], progress: Progress | None
    ) -> Release:
        try:
            question = next(steps)  # here it refuses parameters that do not fit the budget
            if type(question) in MEASUREMENTS:  # and here, before any charge, what cannot be asked
                question.check(self.window.tree)
            self._pay(mechanism.name, mechanism.parameters())
            while True:
                if progress is not None:
                    progress(question.label)
                try:
                    answer = self.measure(question)
                except (BudgetError, InputError) as refusal:
                    # Its traceback would lead through our frames to the data.
                    question = steps.throw(refusal.with_traceback(None))
                else:
                    question = steps.send(answer)
        except StopIteration as stop:
            histogram = stop.value
        self._pay(mechanism.name, mechanism.parameters())  # if nothing was asked at all
        return Release.from_histogram(
            histogram,
            domain=self.window.domain,
            tree=self.window.tree,
            epsilon=self._epsilon,
            mechanism=mechanism.name,
            parameters=mechanism.parameters(),
            noise=self._payment.noise.description,
            private=self._payment.noise.private,
            measurements=self._table(),
            ledger=self._ledger.lines,
            priors=self.window.priors,
            protection=self._protection,
            bought=self._bought,
            budget_entry=self._entry,
        )

    def _pay(self, mechanism: str, parameters: Mapping[str, Any]) -> None:
        """Charge the budget, once, before any noise. Mechanisms must not handle its refusals.

        Unsound noise and missing compiled loops fail here, before any charge.
        """
        self._keep_to_process()
        if self._entry is None:
            self._entry = self._payment.pay(mechanism, parameters)

    def _keep_to_process(self) -> None:
        """Serve only the process that asks first: a forked child has the same ledger, and would spend the
        rest of it again."""
        self._process = self._process or os.getpid()
        if self._process != os.getpid():
            raise InputError(
                "this Curator was first used in another process: here it would spend the same epsilon again. "
                "Make a new one"
            )

    def _table(self) -> MeasurementTable:
        return MeasurementTable.from_parts(
            {
                "line": line,
                "kind": MEASUREMENTS.index(type(measurement)),
                "axis": -1,
                "cut": -1,
                **measurement.details(answer),
            }
            for line, (measurement, answer) in enumerate(self._taken)
        )


def _check_given(matrix: object, bought: object) -> None:
    """Check the types of arguments before anything is done with them."""
    check_matrix(matrix)
    remedy = "make it with htf.measure_activity, htf.measure_distinct or htf.measure_clipped"
    for one in arguments.items(bought, "what was bought (bought)", f"a list; {remedy}"):
        if isinstance(one, ZonesBought):
            raise InputError("zones join a map that is published: htf.inside_zones(map, zones)")
        if not isinstance(one, MEASURED):
            raise arguments.unfit("each of what was bought", "a purchase", one, remedy)


def check_bought(bought: Measured, noise: NoiseSource, budget: BudgetFile | None) -> None:
    """Refuse what would make the release claim, or the budget hold, less than was lost."""
    if noise.private and not bought.private:
        raise InputError(
            f"{bought.name} was measured with noise that is not secret ({bought.noise}): a release with secret "
            "noise needs secret noise there too"
        )
    if budget is not None:
        budget.check_bought(bought)


def rehearse(
    mechanism: Mechanism,
    domain: Domain,
    epsilon: Epsilon,
    unit: Protection = OF_RECORDS,
    priors: tuple[Prior, ...] = (),
) -> None:
    """Raise what a mechanism refuses of this map at this epsilon, before the data are read.

    The mechanism runs up to its first measurement, which depends on no answer.
    """
    each = epsilon_per_share(epsilon, unit)
    window = Window(domain, RegionTree(domain.shape), each, priors, unit.shares)
    steps = told_for_unit(mechanism, window, unit)
    question = next(steps, None)
    if type(question) in MEASUREMENTS:
        question.check(window.tree)  # type: ignore[union-attr]
    steps.close()


def told_for_unit(mechanism: Mechanism, window: Window, unit: Protection) -> Steps[Histogram]:
    """Run the steps of the mechanism. Its refusals are about the epsilon of a record: say so."""
    try:
        return (yield from mechanism.build(window))
    except BudgetError as error:
        if unit.unit == RECORD and unit.weight is None:
            raise
        one = "share of a person" if unit.count != RECORDS else unit.piece
        raise BudgetError(
            f"{error} (with {unit.spoken}, each {one} has epsilon {window.epsilon})"
        ) from None
