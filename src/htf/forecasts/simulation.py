"""Forecasts the error of a release before any budget is spent, by simulation on made-up records.

The recipe takes the very steps of `htf release` (htf.recipes.make), with seeded noise, and answers are compared with the
made-up records. It never reads the data to be released: a budget or a grid chosen by them would reveal something about
them that no guarantee covers.

Where people are protected, each run has other people. Answers are compared with all records or people. The error then
has two parts: what is lost and scaled before any noise is drawn, and the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from htf.curator.contributions import RecordsPerPerson, measure_activity
from htf.errors import BudgetError
from htf.estimation.worth import scale_to_all, worth_of
from htf.forecasts.accuracy import SMOOTHING, relative_error, rounded, typical
from htf.forecasts.made_up import MadeUp, StandIn
from htf.forecasts.questions import Exact, Kind
from htf.forecasts.workloads import Boxes, derive_seeds
from htf.frame.areas import cell_metres
from htf.frame.domain import FloatArray
from htf.privacy.epsilon import LARGEST_EPSILON, UNITS_PER_EPSILON, Epsilon
from htf.privacy.meaning import Meaning
from htf.privacy.protection import PERSON, RECORDS, Protection
from htf.recipes.make import Prepared
from htf.release.release import Release

QUERIES = 1000
QUESTIONS = 4000  # for one typical error, which is then good to a few per cent
RUNS_USUAL = 5
SEED = 1
SCALINGS = 8  # draws of the activity of people per simulated map
MOST_RUNS_BESIDE = 3  # of half and double the budget, which only the comparison needs

RELATIVE_TO = (
    f"errors are relative to the true count, or to {SMOOTHING} where it is less, so that areas that "
    "are nearly empty weigh much"
)
CAVEAT = (
    "This was a simulation: it spent no budget and kept nothing. The error of the real release depends on the "
    "real data and will differ."
)

Tell = Callable[[int, int, str], None]  # releases done, releases in all, what comes next


@dataclass(frozen=True, eq=False)
class Area:
    """One kind of area: its typical count, and how far answers are off, run by run."""

    kind: Kind
    share: float | None  # of the map; this and the next two are medians over all boxes
    km: tuple[float, ...] | None  # width and height, where the map is one of the earth
    count: float  # what is truly there
    errors: FloatArray  # median of |answer - truth|
    large_errors: FloatArray  # which one box in twenty exceeds
    relative_errors: FloatArray  # mean of |answer - truth| / max(truth, 20), in per cent
    biases: FloatArray  # median of |exact counts of what was measured, scaled - truth|
    noises: FloatArray  # median of |answer - those counts|
    answers: int  # how many areas were asked about in each release
    of_people: bool  # only then some records may not be measured

    @classmethod
    def of(cls, kind: Kind, plan: Simulation, runs: Sequence[Sequence[Compared]]) -> Area:
        """From the answers of all runs."""
        flat = [one for run in runs for one in run]
        boxes = [run[0].boxes for run in runs if run[0].boxes is not None]
        share = km = None
        if boxes:
            sides = np.concatenate([one.high - one.low for one in boxes])
            share = float(np.median(np.prod(sides / plan.prepared.domain.shape, axis=1)))
            if (metres := cell_metres(plan.prepared.domain)) is not None:
                km = tuple((np.median(sides, axis=0)[:2] * metres / 1000).tolist())
        errors = [np.abs(one.answer - one.truth) for one in flat]
        return cls(
            kind,
            share,
            km,
            float(np.median(np.concatenate([one.truth for one in flat]))),
            np.array([typical(error) for error in errors]),
            np.array([np.quantile(error, 0.95) for error in errors]),
            np.array([relative_error(one.truth, one.answer) for one in flat]),
            np.array([np.median(np.abs(one.measured - one.truth)) for one in flat]),
            np.array([typical(np.abs(one.answer - one.measured)) for one in flat]),
            len(flat[0].truth),
            plan.stand_in.crowd is not None,
        )

    @property
    def name(self) -> str:
        return self.kind.name

    @property
    def error(self) -> float:
        return float(self.errors.mean())

    @property
    def large_error(self) -> float:
        return float(self.large_errors.mean())

    def told(self, quantity: str) -> str:
        """One sentence for readers who skip the table."""
        ratio = f" ({100 * self.error / self.count:.2g} %)" if self.count >= 1 else ""
        where = "" if self.kind.at_records else ", anywhere"
        place = f"{self.kind.place[0].upper()}{self.kind.place[1:]}{where}{self._size}"
        return (
            f"{place}: off by about {rounded(self.error)} of {rounded(self.count, 3)} {quantity}{ratio}; one in twenty by "
            f"more than {rounded(self.large_error)}."
        )

    @property
    def _size(self) -> str:
        if self.km is None:
            return ""
        if min(self.km) < 1:
            return f" ({' x '.join(rounded(1000 * side) for side in self.km)} m)"
        return f" ({' x '.join(f'{side:.2g}' for side in self.km)} km)"

    def to_dict(self) -> dict[str, Any]:
        parts = {"median_bias": self.biases, "median_noise": self.noises} if self.of_people else {}
        return {
            "area": self.name,
            "workload": self.kind.text,
            "share_of_map": self.share,
            "km": None if self.km is None else list(self.km),
            "typical_count": self.count,
            "median_error": _with_spread(self.errors),
            "error_exceeded_by_5_percent": _with_spread(self.large_errors),
            "mean_relative_error_percent": _with_spread(self.relative_errors),
            **{name: _with_spread(part) for name, part in parts.items()},
        }


def _with_spread(values: FloatArray) -> dict[str, float | None]:
    spread = float(values.std(ddof=1)) if len(values) > 1 else None
    return {"mean": float(values.mean()), "deviation_over_runs": spread}


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

    plan: Simulation
    main: Outlook
    beside: tuple[Outlook, ...]

    @property
    def quantity(self) -> str:
        """What is counted."""
        return self.plan.protection.quantity

    @property
    def counted(self) -> str:
        """The same with its bound. Where the number of records to keep was found with noise, runs may differ."""
        unit, kept = self.plan.protection, self.main.kept
        if unit.unit != PERSON or unit.quantity != RECORDS or not kept:
            return unit.told
        told = replace(unit, max_records=max(kept)).told
        if min(kept) < max(kept):
            told = told.replace("at most", f"at most {min(kept):,} to", 1)
        return told + (", scaled" if "activity" in self.plan.prepared.quote.prices else "")

    @property
    def outlooks(self) -> list[Outlook]:
        """By budget."""
        return sorted([self.main, *self.beside], key=lambda outlook: outlook.epsilon)

    def to_dict(self) -> dict[str, Any]:
        """Describe the forecast with plain values, for JSON."""
        return {
            **self.plan.to_dict(),
            "counted": self.counted,
            "epsilon": str(self.plan.epsilon),
            "meaning": Meaning(self.plan.epsilon, self.plan.protection).to_dict(),
            "runs": self.plan.runs,
            "areas_asked_in_each_run": self.plan.queries,
            "summary": [area.told(self.quantity) for area in self.main.areas],
            "outlooks": [
                {**one.to_dict(), "error_compared": self.change(one) if one.areas else None}
                for one in self.outlooks
            ],
        }

    def change(self, other: Outlook) -> float:
        """How many times as large the typical error is at another budget: the geometric mean over
        the areas, by the runs that both have, which were asked the same questions. A kind of which there are few areas,
        such as three districts, says little, and weighs as little."""
        found = [
            (here.answers, there.errors.mean() / here.errors[: len(there.errors)].mean())
            for here, there in zip(self.main.areas, other.areas, strict=True)
            if here.errors.any() and there.errors.any()
        ]
        if not found:
            return 1.0
        weights, ratios = zip(*found, strict=True)
        return math.exp(float(np.average(np.log(ratios), weights=weights)))


@dataclass(frozen=True, eq=False)
class Simulation:
    """The plan of a simulation: the release, what stands in for its records, and what it is asked."""

    prepared: Prepared
    stand_in: StandIn
    kinds: tuple[Kind, ...]
    runs: int = 1
    queries: int = QUERIES

    @property
    def epsilon(self) -> Epsilon:
        return self.prepared.quote.epsilon

    @property
    def protection(self) -> Protection:
        """What epsilon protects. How many records are kept may be found later."""
        return self.prepared.quote.unit

    @property
    def label(self) -> str:
        """The mechanism, with those of its parameters that differ from their defaults."""
        mechanism = self.prepared.mechanism
        usual = {one["name"]: one["default"] for one in mechanism.describe()["parameters"]}
        set_to = {n: v for n, v in mechanism.parameters().items() if v != usual[n]}
        return ":".join([mechanism.name, *(f"{name}={value}" for name, value in set_to.items())])

    @property
    def budgets(self) -> dict[Epsilon, int]:
        """The number of runs for each budget. The chosen budget comes first, so that errors in it show
        at once."""
        beside = min(self.runs, MOST_RUNS_BESIDE)
        most = LARGEST_EPSILON * UNITS_PER_EPSILON
        others = (self.epsilon // 2, self.epsilon * 2)
        beside_it = {epsilon: beside for epsilon in others if 1 <= epsilon.units <= most}
        return {self.epsilon: self.runs, **beside_it}

    @property
    def records(self) -> int:
        """How many records stand in, in the first run."""
        return self.stand_in.draw(0).records

    def to_dict(self) -> dict[str, Any]:
        """Describe what is simulated with plain values, for JSON."""
        crowd, made_by = self.stand_in.crowd, self.prepared.mechanism
        people = {} if crowd is None else {"people": crowd.people}
        of = {"kind": self.stand_in.kind, "name": self.stand_in.name, "records": self.records}
        return {
            "simulation": True,
            "budget_spent": 0,
            "caveat": CAVEAT,
            "notes": list(self.stand_in.notes),
            "stand_in": {**of, **people},
            "grid": list(self.prepared.domain.shape),
            "mechanism": made_by.name,
            "parameters": made_by.parameters(),
        }

    def noise(self, epsilon: Epsilon, run: int, purpose: str = "noise") -> str:
        """The name of a source of noise that is the same whenever the release is made."""
        words = (self.stand_in.name, self.label, str(epsilon), run)
        state = derive_seeds(SEED, purpose, *words).generate_state(2, np.uint64)
        return f"seeded:{int(state[0]) << 64 | int(state[1])}"


@dataclass(frozen=True, eq=False)
class Made:
    """A simulated release, and the exact counts that it measured.

    Where counts are scaled by the activity of people, all of them share one error, that of the total. It is drawn once
    per release, so a few releases say little about it. Other draws of the activity are cheap. `scalings` says by how
    much each of them would multiply the published counts; the first is that of the release, 1.
    """

    plan: Simulation
    run: int
    release: Release
    truth: Exact
    measured: Exact
    scalings: tuple[float, ...] = (1.0,)

    @classmethod
    def of(cls, plan: Simulation, epsilon: Epsilon, run: int) -> Made:
        """Take the steps of `htf release`."""
        made_up = plan.stand_in.draw(run)
        release = plan.prepared.simulate(made_up, epsilon, plan.noise(epsilon, run))
        unit = release.protection
        truth = Exact(made_up, made_up.whole(unit), unit)
        measured = Exact(made_up, made_up.counted(unit), unit)
        scalings = 1.0, *_other_scalings(plan, made_up, release, epsilon, run)
        return cls(plan, run, release, truth, measured, scalings)

    def ask(self, kind: Kind, number: int, *purpose: str) -> list[Compared]:
        """So many questions of a kind, the same for every epsilon: the truth beside the answers, for each scaling."""
        seeds = derive_seeds(SEED, *purpose, self.run)
        asked = kind.draw(self.truth.made_up, number, seeds)
        truth, answer = asked.count(self.truth), asked.answer(self.release)
        if not asked.scaled:
            return [Compared(truth, answer, truth, asked.boxes)] * len(self.scalings)
        truth = truth / self.release.protection.shares
        exact = asked.count(self.measured) * worth_of(self.release).each
        return [
            Compared(truth, answer * times, exact * times, asked.boxes) for times in self.scalings
        ]

    def typical_errors(self, kind: Kind) -> Errors:
        """The typical errors in areas that hold something."""
        found = self.ask(kind, QUESTIONS, "target")
        truth = found[0].truth
        some = truth >= 1 if (truth >= 1).any() else truth >= 0
        truth = truth[some]
        off = [np.abs(one.answer[some] - truth) for one in found]
        relative = [typical(one / np.maximum(truth, 1)) for one in off]
        absolute = [typical(one) for one in off]
        return Errors(float(np.mean(relative)), float(np.mean(absolute)), float(np.median(truth)))


@dataclass(frozen=True, slots=True)
class Errors:
    """Medians over the questions of one simulated release."""

    relative: float  # of |answer - truth| / truth
    absolute: float
    count: float  # the true one


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """The answers to one kind of question in one run."""

    truth: FloatArray
    answer: FloatArray
    measured: FloatArray  # exact counts of what was measured, scaled as the answers
    boxes: Boxes | None = None


def _other_scalings(
    plan: Simulation, made_up: MadeUp, release: Release, epsilon: Epsilon, run: int
) -> Iterator[float]:
    activity, people = release.activity, made_up.each
    if activity is None or people is None:
        return
    kept = release.estimates / release.factor
    each = RecordsPerPerson.from_records(people, activity.ends[-1])
    for number in range(1, SCALINGS):
        noise = plan.noise(epsilon, run, f"activity {number}")
        again = measure_activity(each, activity.epsilon, noise=noise, per=activity.per)
        yield scale_to_all(kept, release.scales, release.protection, again) / release.factor


def simulate(plan: Simulation, tell: Tell | None = None) -> Forecast:
    """Make the releases, ask them, and keep none."""
    tell = tell or (lambda *_: None)
    total = sum(plan.budgets.values())
    tell(0, total, "preparing the stand-in")
    plan.stand_in.draw(0)
    done, outlooks = 0, []
    for epsilon, runs in plan.budgets.items():
        label = f"releasing at epsilon {epsilon}"
        outlooks.append(look(plan, epsilon, runs, lambda run: tell(done + run, total, label)))  # noqa: B023
        done += runs
    return Forecast(plan, outlooks[0], tuple(outlooks[1:]))


def look(
    plan: Simulation, epsilon: Epsilon, runs: int, tell: Callable[[int], None] = lambda _: None
) -> Outlook:
    """The result at one budget. `tell` hears the number of each run before it starts."""
    found, kept, failure = [], [], ""
    for run in range(runs):
        tell(run)
        try:
            made = Made.of(plan, epsilon, run)
        except BudgetError as error:
            if epsilon == plan.epsilon:
                raise
            failure = str(error)
            continue
        found.append([made.ask(kind, plan.queries, "queries", kind.text) for kind in plan.kinds])
        if plan.stand_in.crowd is not None:
            kept.append(made.release.protection.max_records)
    by_kind = zip(plan.kinds, zip(*found, strict=True), strict=True) if found else ()
    areas = (Area.of(kind, plan, its) for kind, its in by_kind)
    return Outlook(epsilon, runs, tuple(areas), failure, tuple(kept))
