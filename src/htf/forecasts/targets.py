"""Targets of a forecast, such as `5 % in squares of 1 km`, and the questions that show whether they are reached.

| text | the error that it limits |
| --- | --- |
| `5 % in squares of 1 km` | the typical one in squares around records, relative to the true count |
| `20 records in squares of 500 m` | the same, in records |
| `5 % in squares of 1 % of the map`, `… of 8 cells` | for maps without a reference system |
| `10 % in zones` | the typical one in zones that hold a record, each zone counting once |

The typical error is the median, so half of the squares or zones are closer to the truth.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from htf.base import arguments
from htf.base.numerals import decimal
from htf.curator.frequency import FrequencyMatrix
from htf.errors import InputError
from htf.forecasts.counting import ExactCounter, answer_boxes, spread_estimates
from htf.forecasts.protecting import release_people
from htf.forecasts.simulation import Simulation, stand_in_of
from htf.forecasts.trials import Trial, derive_seeds, load_once, make_release
from htf.forecasts.workloads import Boxes, Workload
from htf.frame.areas import cell_metres
from htf.frame.domain import Domain, FloatArray, IntArray
from htf.privacy.epsilon import Epsilon
from htf.privacy.protection import RECORDS, split_people
from htf.release.release import Release

if TYPE_CHECKING:
    from htf.frame.zone_index import Shapes

QUESTIONS = 4000  # squares per simulated release; the median of them is then good to a few per cent
NUMBER = r"(?P<value>[0-9]+(?:[.,][0-9]+)?)"
KIND = r"(?P<kind>%|per ?cent|percent|records?|(?:split )?(?:people|persons?|person-(?:day|week|month)s?))"
SIZE = r"(?P<size>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>km|m|metres?|meters?|cells?|%(?: of the map)?)"
TARGET = re.compile(
    rf"{NUMBER}\s*{KIND}\s*(?:in|for|per)\s+(?:(?P<zones>zones?)|squares?\s+of\s+{SIZE}(?:\s+around\s+records)?)"
)
FORMS = (
    "'5 % in squares of 1 km', '20 records in squares of 500 m', '5 % in squares of 1 % of the map', "
    "'5 % in squares of 8 cells' or '10 % in zones'"
)
METRES = {"km": 1000.0, "m": 1.0}
LARGEST_SHARE = 10.0  # of the true count: a larger error than 1000 % is no target


@dataclass(frozen=True, slots=True)
class Errors:
    """Medians over the questions of one simulated release."""

    relative: float  # of |answer - truth| / truth
    absolute: float
    count: float  # the true one


@dataclass(frozen=True, slots=True)
class Target:
    """An error that is not to be exceeded, and where."""

    limit: float  # a share of the true count, or a number of what is counted
    is_relative: bool
    size: float | None = None  # of squares; None for zones
    unit: str = ""  # m, cells or %
    counted: str | None = None  # what the limit is a number of, if it is not relative

    @classmethod
    def read(cls, text: str) -> Target:
        """The target that a text on the command line names."""
        found = TARGET.fullmatch(" ".join(text.lower().replace("\u00a0", " ").split()).rstrip("."))
        if found is None:
            raise InputError(f"a target is {FORMS}, got {text!r}")
        kind = found["kind"]
        is_relative = kind == "%" or "cent" in kind
        limit = decimal(found["value"].replace(",", ".")) / (100 if is_relative else 1)
        if not 0 < limit <= (LARGEST_SHARE if is_relative else 1e12):
            raise InputError(f"the error of a target is above 0, and at most 1000 %, got {text!r}")
        counted = None if is_relative else _plural(kind)
        if found["zones"]:
            return cls(limit, is_relative, counted=counted)
        unit = "%" if found["unit"].startswith("%") else found["unit"]
        unit = "cells" if unit.startswith("cell") else "m" if unit.startswith("met") else unit
        size = decimal(found["size"]) * METRES.get(unit, 1)
        if not size > 0:
            raise InputError(f"squares have a size above 0, got {text!r}")
        return cls(limit, is_relative, size, "m" if unit in METRES else unit, counted)

    @property
    def place(self) -> str:
        """As sentences call it."""
        if self.size is None:
            return "zones"
        if self.unit == "m":
            return f"squares of {length_text(self.size)}"
        return (
            f"squares of {self.size:g} % of the map"
            if self.unit == "%"
            else f"squares of {self.size:g} cells"
        )

    def check_counted(self, quantity: str) -> None:
        """Refuse a target in split people where records are counted, and the other way round."""
        if self.counted not in (None, quantity):
            raise InputError(
                f"the target is in {self.counted}, but {quantity} are counted: give it in {quantity} or in %"
            )

    def told(self, quantity: str) -> str:
        limit = f"{100 * self.limit:g} %" if self.is_relative else f"{self.limit:g} {quantity}"
        return f"{limit} in {self.place}"

    def error(self, errors: Errors) -> float:
        return errors.relative if self.is_relative else errors.absolute


@dataclass(frozen=True, slots=True)
class Squares:
    """Squares around records, as wide as so many cells along each axis."""

    sides: tuple[float, ...]

    @classmethod
    def of(cls, target: Target, domain: Domain) -> Squares:
        shape = domain.shape
        size = float(target.size or 0)
        if target.unit == "%":
            sides = tuple((size / 100) ** (1 / len(shape)) * cells for cells in shape)
        elif domain.dimensions != 2:
            raise InputError(
                f"the map has {domain.dimensions} axes: give squares as a share of it, such as 'squares of 1 % of the map'"
            )
        elif target.unit == "cells":
            sides = (size, size)
        else:
            metres = cell_metres(domain)
            if metres is None:
                raise InputError(
                    "the map has no reference system, so metres are not known on it: give one with --crs, or squares of so "
                    "many cells"
                )
            sides = (size / metres[0], size / metres[1])
        if min(sides) < 0.999:
            raise InputError(
                f"{target.place} are smaller than the cells of this map{_size_of_cells(domain)}: ask about larger squares, "
                "or give more --cells"
            )
        if any(side > cells for side, cells in zip(sides, shape, strict=True)):
            raise InputError(f"{target.place} are larger than the map: ask about smaller squares")
        return cls(sides)

    def draw(self, matrix: FrequencyMatrix, seeds: np.random.SeedSequence) -> AskedSquares:
        workload = Workload("squares", at_records=True, sides=self.sides)
        return AskedSquares(workload.draw(matrix, QUESTIONS, seeds))


@dataclass(frozen=True, slots=True)
class AskedSquares:
    boxes: Boxes

    def count(self, matrix: FrequencyMatrix) -> FloatArray:
        return ExactCounter(matrix).count(self.boxes).astype(np.float64)

    def answer(self, release: Release) -> FloatArray:
        return answer_boxes(release, self.boxes)


@dataclass(frozen=True, slots=True, eq=False)
class InZones:
    """Zones of a public layer, as the cells whose middles they hold."""

    zone: IntArray  # of each cell, in the order of a flat grid; the number of zones where it is in none
    number: int

    @classmethod
    def of(cls, shapes: Shapes, domain: Domain) -> InZones:
        from htf.frame.zone_index import find_cells

        if domain.dimensions != 2:
            raise InputError(
                f"zones are for a map of two axes, and this one has {domain.dimensions}"
            )
        if domain.size > MOST_CELLS_IN_ZONES:
            raise InputError(
                f"a target in zones is for at most {MOST_CELLS_IN_ZONES:,} cells, got {domain.size:,}: give fewer --cells"
            )
        x, y = (axis.from_cells(np.arange(axis.cells) + 0.5) for axis in domain.axes)
        wide, high = np.meshgrid(x, y, indexing="ij")
        found = find_cells(shapes, False, wide.ravel(), high.ravel())
        zone = np.where(np.isnan(found), len(shapes), found).astype(np.int64)
        if (zone == len(shapes)).all():
            raise InputError("none of the zones lies on the map: check --bounds and the layer")
        return cls(zone, len(shapes))

    def draw(self, matrix: FrequencyMatrix, seeds: np.random.SeedSequence) -> InZones:  # noqa: ARG002
        """The zones are the same in every run."""
        return self

    def count(self, matrix: FrequencyMatrix) -> FloatArray:
        places = np.ravel_multi_index(tuple(matrix.exact_coordinates), matrix.domain.shape)
        return self._add(self.zone[places], matrix.exact_counts)

    def answer(self, release: Release) -> FloatArray:
        return self._add(self.zone, spread_estimates(release).ravel())

    def _add(self, zones: IntArray, values: FloatArray | IntArray) -> FloatArray:
        found = np.bincount(zones, weights=values, minlength=self.number + 1)
        return np.asarray(found[: self.number], dtype=np.float64)


MOST_CELLS_IN_ZONES = 4096 * 4096
Places = Squares | InZones


def ask_once(plan: Simulation, places: Places, epsilon: Epsilon, run: int) -> Errors:
    """Simulate one release, and ask it. Questions are the same for every epsilon."""
    stand_in = stand_in_of(plan, run)
    records = load_once(stand_in)
    asked = places.draw(records, derive_seeds(plan.bench.seed, "target", run))
    trial = Trial(stand_in, plan.spec, str(epsilon), run)
    if plan.counted is None:
        release = arguments.instance(make_release(plan.bench, trial), Release, "the mechanism")
        return _errors(asked.count(records), [asked.answer(release)])
    made = release_people(plan.bench, trial, plan.counted)
    shares = made.measured.protection.shares
    truth = asked.count(records) if shares == 1 else asked.count(made.measured) / shares
    answer = asked.answer(made.release)
    return _errors(truth, [answer * times for times in made.scalings])


def _errors(truth: FloatArray, answers: list[FloatArray]) -> Errors:
    some = truth >= 1 if (truth >= 1).any() else truth >= 0
    truth = truth[some]
    off = [np.abs(answer[some] - truth) for answer in answers]
    relative = [np.median(one / np.maximum(truth, 1)) for one in off]
    absolute = [np.median(one) for one in off]
    return Errors(float(np.mean(relative)), float(np.mean(absolute)), float(np.median(truth)))


def _plural(kind: str) -> str:
    if kind.startswith("record"):
        return RECORDS
    _, _, per = kind.rstrip("s").partition("-")
    return split_people(per or None)


def length_text(metres: float) -> str:
    """Such as `500 m` and `1.5 km`."""
    return f"{metres:.3g} m" if metres < 1000 else f"{float(f'{metres / 1000:.3g}'):g} km"


def _size_of_cells(domain: Domain) -> str:
    metres = cell_metres(domain) if domain.dimensions == 2 else None
    return "" if metres is None else f", {metres[0]:.3g} x {metres[1]:.3g} m"
