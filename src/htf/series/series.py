"""A series: a map released period after period, under one plan for its budget.

Each release borrows from those before it, which costs nothing (htf.series.borrowing). A release is never rewritten: a
correction is a new file with a number, and is charged again.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from htf.base import arguments
from htf.errors import InputError
from htf.estimation.expectation import trust_shape
from htf.estimation.homogeneous import PRIOR_TRUST
from htf.files import make_folder
from htf.privacy.budget import BudgetFile, digest_of
from htf.query.answer import Answer, over_periods
from htf.query.question import Question, check_question, warn_of_outside
from htf.release.release import Release
from htf.series.borrowing import borrow, borrows, foresees
from htf.series.folder import ALL, BUDGET, REMEMBERED, SeriesFolder, unit_name
from htf.series.plan import period_of, plan_of, write_plan

if TYPE_CHECKING:
    from decimal import Decimal
    from fractions import Fraction

    from htf.curator.noise import NoiseSource
    from htf.estimation.prior import Prior
    from htf.frame.domain import Domain
    from htf.privacy.epsilon import Epsilon
    from htf.query.where import Where
    from htf.recipes.recipe import Recipe


class Series(SeriesFolder):
    """A folder of releases over periods on one map, with one plan for its budget.

    Parameters
    ----------
    folder : str or Path
        The folder, which `create` or `htf series init` has made.

    Raises
    ------
    InputError
        If there is no series in the folder.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 1, 1, cells=16)
    >>> recipe = htf.Recipe(domain=domain, epsilon=1)
    >>> series = htf.Series.create("city", recipe, "month", releases=12)
    >>> for month, people in (("2026-01", 500), ("2026-02", 700)):
    ...     matrix = htf.FrequencyMatrix.from_cells(domain, [[3] * people, [5] * people])
    ...     release = series.add(matrix, month)
    >>> series.periods
    ['2026-01', '2026-02']
    >>> series.count([0, 0, 0.5, 0.5]).changes().beyond_noise
    array([ True])
    """

    def __repr__(self) -> str:
        return f"Series({str(self.folder)!r})"

    @property
    def domain(self) -> Domain:
        """The map of every release."""
        return self.plan.domain

    @classmethod
    def create(
        cls,
        folder: str | Path,
        recipe: Recipe,
        period: str,
        *,
        releases: int,
        total: Epsilon | str | int | float | Decimal | Fraction | None = None,
    ) -> Series:
        """Make a series in a new or empty folder. Its plan is final.

        Parameters
        ----------
        folder : str or Path
            The folder.
        recipe : Recipe
            What each release is made of. Its epsilon is what one release costs. A source in it is left out.
        period : {"day", "week", "month", "quarter", "year"}
            What one release is of. Where the recipe has a column of times, only records of the period count.
        releases : int
            How many periods there will be, at most.
        total : Epsilon, str, int, float, Decimal or Fraction, optional
            What one unit loses in the whole series, at most. What the releases leave of it pays for corrections. By
            default nothing is left.

        Returns
        -------
        Series
            The series, without any release.

        Raises
        ------
        InputError
            If something is in the folder already, or the recipe or the numbers do not go together.

        Examples
        --------
        >>> htf.Series.create("town", recipe, "month", releases=12).periods
        []
        """
        path = arguments.path(folder, "the folder of a series")
        plan = plan_of(recipe, period, releases, total)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise InputError(f"{path} exists and is not an empty folder: give another name")
        make_folder(path)
        # Where periods do not add up, each gets an account of its own later; the file is made once, here.
        BudgetFile.create(path / BUDGET, ALL, plan.total, unit=unit_name(plan))
        write_plan(plan, path)
        return cls(path)

    def release(self, period: str) -> Release:
        """Read the release of a period, with its last correction.

        Parameters
        ----------
        period : str
            Its name, such as `2026-03`.

        Returns
        -------
        Release
            The release.

        Raises
        ------
        InputError
            If that period was not released.

        Examples
        --------
        >>> str(series.release("2026-01").epsilon)
        '1'
        """
        found = self.latest.get(period_of(self.plan, period).name)
        if found is None:
            known = ", ".join(self.periods) or "none"
            raise InputError(f"{period} was not released in {self.folder}; released are: {known}")
        return self._load(found.path)

    def add(
        self,
        source: Any,
        period: str,
        *,
        noise: NoiseSource | str = "opendp",
        correct: bool = False,
        resume: bool = False,
        take_from_later: bool = False,
        allow_empty: bool = False,
    ) -> Release:
        """Charge, release and save one more period, by the recipe of the series.

        Parameters
        ----------
        source : str, Path, data or FrequencyMatrix
            The records: what `read_points` takes, or the counts that it has made of this period alone. If the recipe has
            no column of times, all records must be of the period.
        period : str
            Its name, such as `2026-03`.
        noise : NoiseSource or str
            Where noise comes from. It must be secret.
        correct : bool
            Whether to release a period once more. The correction is charged again.
        resume : bool
            Whether to resume an interrupted release of this period, under its own charge. Do so only if nothing
            of it was seen.
        take_from_later : bool
            Whether a correction may cost what later periods of a series of persons were meant to.
        allow_empty : bool
            Whether to make a release if no record is in the period.

        Returns
        -------
        Release
            The release, which is in the folder too.

        Raises
        ------
        InputError
            If the period was released already, or the data do not fit the plan.
        BudgetError
            If too little is left, for this release or for the periods that are planned.

        Examples
        --------
        >>> series.add(matrix, "2026-02")
        Traceback (most recent call last):
        htf.errors.InputError: 2026-02 was released already, as 2026-02.parquet. To release a correction, which is charged again: correct=True (htf series add --correct)
        """
        asked = {"correct": correct, "resume": resume, "take_from_later": take_from_later}
        with self.adding(period, **asked) as addition:
            if isinstance(addition, Release):
                return addition
            recipe = self.fill(addition, source, allow_empty=allow_empty)
            assert addition.budget is not None  # it is no dry run
            made = recipe.make(budget=addition.budget, noise=noise)
            made = self.finish(made, addition.period)
            addition.budget.save(made, addition.output)
            return made

    def adopt(self, path: str | Path) -> Release:
        """Bring in a release of this series that was saved elsewhere, because its own place could not be written.

        The charge that the file names says which period it is of. Nothing is charged.

        Parameters
        ----------
        path : str or Path
            The file. It is copied, and stays where it is.

        Returns
        -------
        Release
            The release, which is in the folder now.

        Raises
        ------
        InputError
            If the file is not what was charged, or the period has its file already.

        Examples
        --------
        >>> series.adopt("city/2026-01.parquet") == series.release("2026-01")  # it is in its place already
        True
        """
        return self._bring_in(arguments.path(path, "the release"))

    def priors(self, period: str) -> tuple[Prior, ...]:
        """What the releases before a period say about it: the last of them, and the mean of them all.

        Parameters
        ----------
        period : str
            The period.

        Returns
        -------
        tuple of Prior
            Up to two priors.

        Examples
        --------
        >>> [prior.name for prior in series.priors("2026-03")]
        ['2026-02.parquet', 'mean of 2026-01 to 2026-02']
        """
        return self._priors(self._before(period_of(self.plan, period)))

    def revised(self, period: str) -> Release:
        """Estimate a period anew, with what later periods have told too. This costs nothing.

        Parameters
        ----------
        period : str
            A period that was released.

        Returns
        -------
        Release
            The same measurements with other estimates. The file of the period stays as it is.

        Raises
        ------
        InputError
            If that period was not released.

        Examples
        --------
        >>> series.revised("2026-01").background.periods
        1
        """

        if not borrows(self.plan.recipe):
            raise InputError("this series borrows nothing, so there is nothing to revise")
        release, own = self.release(period), self.latest[period]
        others = [one for one in self.latest.values() if one.period != own.period]
        nearest = sorted(others, key=lambda one: abs(one.period.start - own.period.start))
        known = sorted(nearest[:REMEMBERED], key=lambda one: one.period)
        priors = self._priors(known) if foresees(self.plan.recipe) else ()
        facts = dict(release.facts)
        if priors:  # no trust, until it is learnt
            facts[PRIOR_TRUST] = np.zeros(trust_shape(release.domain.shape, len(priors))).tolist()
        bare = replace(release, facts=facts, background=None, priors=priors)
        marks = [digest_of(one.path) for one in known]
        return borrow(bare, [self._load(one.path) for one in known], marks)

    def ask(self, question: Question) -> Answer:
        """Answer the same question for every period.

        Warns about places outside of the map: they count 0, whatever is there.

        Parameters
        ----------
        question : Question
            What is asked. `Question.boxes`, `polygons`, `zones` and `by` make one.

        Returns
        -------
        Answer
            A row for each period and each box, polygon or name. Its `changes` are from each period to the next.

        Raises
        ------
        InputError
            If nothing was released, or the question does not fit the map.

        Examples
        --------
        >>> series.ask(htf.Question.boxes([0, 0, 0.5, 0.5])).changes().to_arrow()["since"].to_pylist()
        ['2026-01']
        """
        return warn_of_outside(self._answer(question))

    def count(self, boxes: Any = None, where: Where | None = None) -> Answer:
        """Count the same boxes in every period: short for `ask(Question.boxes(boxes, where))`.

        Parameters
        ----------
        boxes : array_like, optional
            As in `Release.count`.
        where : mapping, optional
            As in `Release.count`.

        Returns
        -------
        Answer
            A row for each period and box.

        Raises
        ------
        InputError
            If nothing was released, or a box is wrong.

        Examples
        --------
        >>> series.count([0, 0, 0.5, 0.5]).to_arrow()["period"].to_pylist()
        ['2026-01', '2026-02']
        """
        return warn_of_outside(self._answer(Question.boxes(boxes, where)))

    def _answer(self, question: Question) -> Answer:
        """What every period answers, in the order of time."""
        if not self.periods:
            raise InputError(f"{self.folder} has no release yet: add one with `htf series add`")
        asked = check_question(question)
        return over_periods({name: asked.answer(self.release(name)) for name in self.periods})
