"""Forecasts the error of a release before any budget is spent, by simulation on stand-in data.

The mechanism runs on the stand-in with seeded noise, and answers the queries of the bench. It never runs on
the data to be released: a budget or a grid chosen by them would reveal something about them that no guarantee
covers.

Where people are protected, the stand-in is a population, a new one in each run. Answers are compared with all records
or people. The error then has two parts: what is lost and scaled before any noise is drawn, and the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from htf.base import arguments
from htf.errors import BudgetError
from htf.estimation.worth import worth_of
from htf.forecasts.accuracy import SMOOTHING, relative_error
from htf.forecasts.counting import ExactCounter, answer_boxes
from htf.forecasts.datasets import DataSet
from htf.forecasts.population import Population
from htf.forecasts.protecting import Counted, release_people
from htf.forecasts.specs import Spec
from htf.forecasts.trials import Bench, Trial, answer_all, draw_questions, load_once, make_release
from htf.forecasts.workloads import Boxes, Workload, read_workload
from htf.frame.crs import CRS84
from htf.frame.domain import KM_PER_DEGREE, Domain, FloatArray, IntArray
from htf.privacy.epsilon import LARGEST_EPSILON, UNITS_PER_EPSILON, Epsilon
from htf.privacy.protection import OF_RECORDS, RECORDS, Protection

WORKLOADS = ("data-0.01%", "data-0.1%", "data-1%", "data-5%", "2%", "6%", "10%", "random")
QUERIES = 1000
SEED = 1
MOST_RUNS_BESIDE = 3  # of half and double the budget, which only the comparison needs

Tell = Callable[[int, int, str], None]  # trials done, trials in all, what comes next


@dataclass(frozen=True, eq=False)
class Area:
    """One kind of area: its typical count, and how far answers are off, run by run."""

    workload: Workload
    share: float  # of the map; this and the next two are medians over all boxes
    km: tuple[float, float] | None  # width and height, where the map is one of the earth
    count: float  # records that are truly there
    errors: FloatArray  # median of |answer - truth|, in records
    large_errors: FloatArray  # which one box in twenty exceeds
    relative_errors: FloatArray  # mean of |answer - truth| / max(truth, 20), in per cent
    biases: FloatArray | None = (
        None  # median of |exact counts of what was measured, scaled - truth|
    )
    noises: FloatArray | None = None  # median of |answer - those counts|

    @property
    def name(self) -> str:
        if self.workload.share is None:
            return "any rectangle"
        where = "at records" if self.workload.at_records else "anywhere"
        return f"{100 * self.workload.share:g} % squares {where}"

    @property
    def error(self) -> float:
        return float(self.errors.mean())

    @property
    def large_error(self) -> float:
        return float(self.large_errors.mean())

    def to_dict(self) -> dict[str, Any]:
        parts = (
            {}
            if self.biases is None or self.noises is None
            else {
                "median_bias": _with_spread(self.biases),
                "median_noise": _with_spread(self.noises),
            }
        )
        return {
            "area": self.name,
            "workload": self.workload.text,
            "share_of_map": self.share,
            "km": None if self.km is None else list(self.km),
            "typical_count": self.count,
            "median_error": _with_spread(self.errors),
            "error_exceeded_by_5_percent": _with_spread(self.large_errors),
            "mean_relative_error_percent": _with_spread(self.relative_errors),
            **parts,
        }


@dataclass(frozen=True, eq=False)
class Outlook:
    """The result for one budget: a forecast for each kind of area, or the reason why there is none."""

    epsilon: Epsilon
    runs: int
    areas: tuple[Area, ...] = ()
    failure: str = ""
    kept: tuple[int, ...] = ()  # records per person, run by run, where people are protected

    def to_dict(self) -> dict[str, Any]:
        return {
            "epsilon": str(self.epsilon),
            "runs": self.runs,
            "failure": self.failure or None,
            **({"max_records": list(self.kept)} if self.kept else {}),
            "areas": [area.to_dict() for area in self.areas],
        }


@dataclass(frozen=True, eq=False)
class Forecast:
    """The outlook at the chosen budget, and at half and double that budget if those exist."""

    records: int  # of the stand-in
    main: Outlook
    beside: tuple[Outlook, ...]
    people: int | None = None  # of the stand-in, where people are protected
    quantity: str = RECORDS  # what is counted
    counted: str = RECORDS  # the same with its bound

    @property
    def outlooks(self) -> list[Outlook]:
        """By budget."""
        return sorted([self.main, *self.beside], key=lambda outlook: outlook.epsilon)

    def change(self, other: Outlook) -> float:
        """How many times as large the typical error is at another budget: the geometric mean over
        the areas, by the runs that both have, which were asked the same questions."""
        ratios = [
            there.errors.mean() / here.errors[: len(there.errors)].mean()
            for here, there in zip(self.main.areas, other.areas, strict=True)
            if here.errors.any() and there.errors.any()
        ]
        return math.exp(float(np.mean(np.log(ratios)))) if ratios else 1.0


@dataclass(frozen=True)
class Simulation:
    """The plan of a simulation."""

    stand_in: DataSet
    spec: Spec
    epsilon: Epsilon
    runs: int
    bench: Bench = field(
        default_factory=lambda: Bench(tuple(map(read_workload, WORKLOADS)), QUERIES, SEED)
    )
    counted: Counted | None = (
        None  # of the people of a Population; None: records are counted and protected
    )

    def __post_init__(self) -> None:
        arguments.instance(self.stand_in, DataSet, "stand_in")  # type: ignore[type-abstract]
        arguments.instance(self.spec, Spec, "spec", "make one with Spec.of(mechanism)")
        object.__setattr__(self, "epsilon", Epsilon.of(self.epsilon))
        object.__setattr__(self, "runs", arguments.whole(self.runs, "runs", 1))
        arguments.instance(self.bench, Bench, "bench")
        if self.counted is not None:
            arguments.instance(self.counted, Counted, "counted")
            arguments.instance(self.stand_in, Population, "stand_in", "only these have people")

    @property
    def protection(self) -> Protection:
        """What epsilon protects. How many records are kept may be found later."""
        return OF_RECORDS if self.counted is None else self.counted.protection(1)

    @property
    def budgets(self) -> dict[Epsilon, int]:
        """The number of runs for each budget. The chosen budget comes first, so that errors in it show
        at once."""
        beside = min(self.runs, MOST_RUNS_BESIDE)
        most = LARGEST_EPSILON * UNITS_PER_EPSILON
        others = (self.epsilon // 2, self.epsilon * 2)
        beside_it = {epsilon: beside for epsilon in others if 1 <= epsilon.units <= most}
        return {self.epsilon: self.runs, **beside_it}


def simulate(plan: Simulation, tell: Tell | None = None) -> Forecast:
    """Make the releases, ask them, and keep none."""
    arguments.instance(plan, Simulation, "plan")
    arguments.function(tell, "tell")
    tell = tell or (lambda *_: None)
    total = sum(plan.budgets.values())
    tell(0, total, "preparing the stand-in")
    records = records_of(plan)
    done, outlooks = 0, []
    for epsilon, runs in plan.budgets.items():
        label = f"releasing at epsilon {epsilon}"
        outlooks.append(look(plan, epsilon, runs, lambda run: tell(done + run, total, label)))  # noqa: B023
        done += runs
    found = Forecast(records, outlooks[0], tuple(outlooks[1:]))
    if plan.counted is None:
        return found
    people = arguments.instance(plan.stand_in, Population, "stand_in").people
    told = plan.counted.told(found.main.kept)
    return replace(found, people=people, quantity=plan.counted.quantity, counted=told)


def records_of(plan: Simulation) -> int:
    """How many records the stand-in has, in the first run."""
    return int(load_once(stand_in_of(plan, 0)).exact_counts.sum())


def look(
    plan: Simulation, epsilon: Epsilon, runs: int, tell: Callable[[int], None] = lambda _: None
) -> Outlook:
    """The result at one budget. `tell` hears the number of each run before it starts."""
    found: list[_Run] = []
    failure = ""
    for run in range(runs):
        tell(run)
        try:
            found += _run_once(plan, epsilon, run)
        except BudgetError as error:
            if epsilon == plan.epsilon:
                raise
            failure = str(error)
    areas = _put_together(plan, [one.asked for one in found])
    kept = tuple(one.kept for one in found if one.kept is not None)
    return Outlook(epsilon, runs, areas, failure, kept)


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """One workload of one run."""

    boxes: Boxes
    exact_counts: IntArray | FloatArray
    answers: FloatArray
    measured: FloatArray | None = None  # exact counts of what was measured, scaled as the answers


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """The workloads of one release, and how many records it kept per person."""

    asked: list[_Asked]
    kept: int | None = None


def _run_once(plan: Simulation, epsilon: Epsilon, run: int) -> list[_Run]:
    """One release; or several that share a map, where counts are scaled by a total that is drawn anew."""
    stand_in = stand_in_of(plan, run)
    trial = Trial(stand_in, plan.spec, str(epsilon), run)
    asked = draw_questions(plan.bench, stand_in, run)
    boxes = [drawn for drawn, _ in asked]
    if plan.counted is None:
        release = make_release(plan.bench, trial)
        answers = answer_all(partial(answer_boxes, release), boxes)
        return [
            _Run(
                [_Asked(*question, answer) for question, answer in zip(asked, answers, strict=True)]
            )
        ]
    made = release_people(plan.bench, trial, plan.counted)
    counter, shares = ExactCounter(made.measured), made.measured.protection.shares
    each, kept = worth_of(made.release).each, made.measured.protection.max_records
    answers = answer_all(partial(answer_boxes, made.release), boxes)
    found = [_Run([], None if number else kept) for number in range(len(made.scalings))]
    for (drawn, records), answer in zip(asked, answers, strict=True):
        exact = counter.count(drawn)
        truth = records if shares == 1 else exact / shares
        for times, one in zip(made.scalings, found, strict=True):
            measured = np.asarray(exact * (each * times), dtype=np.float64)
            one.asked.append(_Asked(drawn, truth, answer * times, measured))
    return found


def stand_in_of(plan: Simulation, run: int) -> DataSet:
    """Another population in each run, because the error depends on a few people with many records."""
    if plan.counted is None:
        return plan.stand_in
    return replace(arguments.instance(plan.stand_in, Population, "stand_in"), draw=run)


def _put_together(plan: Simulation, runs: Sequence[Sequence[_Asked]]) -> tuple[Area, ...]:
    if not runs:
        return ()
    by_workload = zip(plan.bench.workloads, zip(*runs, strict=True), strict=True)
    return tuple(_area(workload, plan.stand_in.domain, asked) for workload, asked in by_workload)


def _area(workload: Workload, domain: Domain, runs: Sequence[_Asked]) -> Area:
    sides = np.median(np.concatenate([run.boxes.high - run.boxes.low for run in runs]), axis=0)
    areas = np.concatenate([_shares(run.boxes, domain) for run in runs])
    errors = [np.abs(run.answers - run.exact_counts) for run in runs]
    parts = [
        [
            np.median(np.abs(one - other))
            for one, other in ((run.measured, run.exact_counts), (run.answers, run.measured))
        ]
        for run in runs
        if run.measured is not None
    ]
    biases, noises = np.array(parts).T if parts else (None, None)
    return Area(
        workload,
        float(np.median(areas)),
        _kilometres(sides, domain),
        float(np.median(np.concatenate([run.exact_counts for run in runs]))),
        np.array([np.median(error) for error in errors]),
        np.array([np.quantile(error, 0.95) for error in errors]),
        np.array([relative_error(run.exact_counts, run.answers) for run in runs]),
        biases,
        noises,
    )


def _shares(boxes: Boxes, domain: Domain) -> FloatArray:
    sides = (boxes.high - boxes.low) / np.array(domain.shape)
    return np.asarray(np.prod(sides, axis=1))


def _kilometres(sides: FloatArray, domain: Domain) -> tuple[float, float] | None:
    """Of a box in the middle of the map."""
    if domain.crs != CRS84 or domain.dimensions != 2:
        return None
    x, y = domain.axes
    east = KM_PER_DEGREE * math.cos(math.radians((y.low + y.high) / 2))
    return float(sides[0] * x.cell_width * east), float(sides[1] * y.cell_width * KM_PER_DEGREE)


def _with_spread(values: FloatArray) -> Mapping[str, float | None]:
    spread = float(values.std(ddof=1)) if len(values) > 1 else None
    return {"mean": float(values.mean()), "deviation_over_runs": spread}


RELATIVE_TO = (
    f"errors are relative to the true count, or to {SMOOTHING} where it is less, so that areas that "
    "are nearly empty weigh much"
)
