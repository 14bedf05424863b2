"""Whatever is given to a public function for one of its arguments, with all others right: it is taken, where
that is what the table below says, or refused with one of our errors, which names the argument or what it
must be, what was given, and carries nothing of the data.

The number of arguments and their names stay Python's own business, as TypeErrors.
"""

from __future__ import annotations

import dataclasses
import inspect
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely

import htf
from htf.base.arguments import whole
from htf.curator.frequency import WeighedRecords
from htf.curator.measurements import CountRegions
from htf.curator.noise import SeededNoise
from htf.errors import HtfError
from htf.estimation.background import Background
from htf.estimation.prior import Prior
from htf.frame.names import Outlines
from htf.maps.draw import draw
from htf.maps.layer import Layer
from htf.maps.views import view
from htf.mechanisms import base, registry
from htf.privacy.activity import Activity
from htf.privacy.budget import read_accounts
from htf.privacy.clipping import Clipped
from htf.privacy.distinct import DistinctCounts
from htf.query.tilings import grid_zones, h3_zones
from htf.release.release import MeasurementTable
from htf.synthetic.city import synthetic_city
from htf.synthetic.trips import synthetic_trips
from htf.synthetic.visits import synthetic_visits
from promised import promised

SECRET = 98.7654321  # stands for a coordinate of a record
LONGEST_MESSAGE = 700

# Fresh for each call: a generator is used up, and a function might change what it is given.
VALUES: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "text": lambda: "nonsense",
    "empty text": lambda: "",
    "bytes": lambda: b"bytes",
    "int": lambda: 3,
    "negative": lambda: -3,
    "huge": lambda: 10**400,
    "too long": lambda: 10**5000,
    "nan": lambda: float("nan"),
    "inf": lambda: float("1e400"),
    "float": lambda: 0.5,
    "true": lambda: True,
    "list": lambda: [1, 2.5, "a"],
    "empty list": list,
    "ragged": lambda: [[1, 2], [3]],
    "nested": lambda: [[1, 2], [3, 4]],
    "huge in list": lambda: [0, 0, 10**400, 1],
    "dict": lambda: {"a": 1},
    "dict of numbers": lambda: {1: 2},
    "set": lambda: {1, 2},
    "object": object,
    "function": lambda: lambda *_: None,
    "class": lambda: htf.Release,
    "instance of ours": lambda: htf.Epsilon.of(1),
    "floats": lambda: np.array([0.5, SECRET, 2.5]),
    "complex": lambda: np.array([1 + 2j, 3, 4, 5]),
    "times": lambda: np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]"),
    "objects": lambda: np.array([object(), None, "a", 1], dtype=object),
    "texts": lambda: np.array(["0", "0", "1", "1"]),
    "truths": lambda: np.array([[True, False], [True, True]]),
    "no axis": lambda: np.array(0.5),
    "three axes": lambda: np.ones((2, 2, 2)),
    "numpy int": lambda: np.int64(3),
    "numpy float": lambda: np.float32(0.5),
    "frame": lambda: pd.DataFrame({"lon": [SECRET, 1.0], "lat": [0.5, SECRET]}),
    "series": lambda: pd.Series([SECRET, 0.5, 1.0]),
    "path": lambda: Path("nowhere"),
    "file": lambda: io.BytesIO(b"a,b"),
    "decimal": lambda: Decimal("0.5"),
    "decimal nan": lambda: Decimal("sNaN"),
    "fraction": lambda: Fraction(1, 2),
    "generator": lambda: (one for one in (1, 2)),
    "range": lambda: range(2),
    "polygon": lambda: shapely.box(0, 0, 1, 1),
}

NONE, TEXT = {"none"}, {"text", "empty text"}
WHOLE = {"int", "numpy int"}
SHARES = {"float", "decimal", "fraction", "numpy float"}
NUMBER = {"negative", *WHOLE, *SHARES}
FUNCTION = {"none", "function"}
NOTHING: set[str] = set()


@dataclass(frozen=True)
class Call:
    """A public function with arguments that are right, and what else it takes for each of them."""

    function: Callable[..., Any]
    right: dict[str, Any]
    takes: dict[str, set[str]] = field(default_factory=dict)
    says: dict[str, str] = field(
        default_factory=dict
    )  # where an error calls the argument otherwise
    only: tuple[str, ...] | None = None  # which of them are tried; all, if None
    runs: bool = True  # whether the call with right arguments does; it may need more than those

    @property
    def tried(self) -> list[str]:
        return [name for name in self.right if self.only is None or name in self.only]


class Fresh:
    """An argument that is made anew for each call, such as the name of a file that is not there yet."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


class World:
    """What the calls below are made with: a map of 4 x 4 cells and a few records."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.files = folder, 0
        self.domain = htf.Domain.from_bounds(0, 0, 1, 1, cells=4)
        self.matrix = htf.FrequencyMatrix.from_dense(self.domain, np.full((4, 4), 50))
        self.release = htf.publish(self.matrix, 1, "singular", noise="seeded:1")
        self.prior = htf.read_prior(np.ones((4, 4)), self.domain)
        self.people = htf.RecordsPerPerson([5, 4, 3])
        self.riders = htf.BudgetFile.create(
            folder / "budget.sqlite", "riders", 1, unit="one person"
        )
        self.by_box = htf.PeopleByBox(2, [[5, 4, 3, 2], [4, 3, 2, 1]])
        self.distinct = htf.measure_distinct(self.by_box, "0.1", noise="fast")
        self.activity = htf.measure_activity(self.people, "0.1", noise="fast", budget=self.riders)
        self.persons = htf.read_points(
            {"x": [0.5, 0.25], "y": [0.5, 0.5], "who": [1, 2]},
            self.domain,
            user="who",
            max_records=1,
        )
        self.with_distinct = htf.publish(
            self.persons, 1, "singular", noise="fast", bought=(self.distinct,)
        )
        self.budget = htf.BudgetFile.create(folder / "budget.sqlite", "pings", 1000)
        rides = {"x": [0.5, 0.25], "y": [0.5, 0.5], "passengers": [1, 9]}
        self.weighed = htf.read_points(rides, self.domain, weight="passengers", max_weight=6)
        self.clipped = htf.measure_clipped(self.weighed, "0.1", noise="fast")
        self.sums = htf.publish(self.weighed, 1, "singular", noise="seeded:1")
        self.points = {"lon": np.array([0.5, 0.25]), "lat": np.array([0.5, 0.75])}
        self.points |= {"who": np.array([1, 2]), "at": np.array([0, 3600])}
        self.zones = geopandas.GeoDataFrame(
            {"tract": ["a", "b"], "district": ["c", "c"]},
            geometry=[shapely.box(0, 0, 1, 1), shapely.box(1, 0, 2, 1)],
            crs="EPSG:2056",
        )
        self.saved = folder / "release.parquet"
        self.release.save(self.saved)
        self.pair = [Layer.of(self.release, "a"), Layer.of(self.release, "b")]
        self.on_map = htf.publish(self.matrix, 1, noise="fast")
        hours = htf.Domain((*self.domain.axes, htf.Axis("hour", 0, 24, 3)), self.domain.crs)
        by_hour = htf.FrequencyMatrix.from_dense(hours, np.full((4, 4, 3), 50))
        self.hours = Layer.of(htf.publish(by_hour, 1, "singular", noise="seeded:1"))
        recipe = htf.Recipe(domain=self.domain, epsilon=1)
        self.series = htf.Series.create(folder / "months", recipe, "month", releases=3)
        self.series.add(self.matrix, "2026-01", noise="fast")
        self.of_zones = htf.publish(self._zone_matrix(), 1, noise="fast")

    def _zone_matrix(self) -> htf.FrequencyMatrix:
        shapes = tuple(
            shapely.to_wkb(shapely.box(0, n / 2, 1, n / 2 + 0.5), byte_order=1) for n in (0, 1)
        )
        names = htf.Names.of({"half": ["south", "north"]}, outlines=Outlines(shapes))
        domain = htf.Domain((htf.Axis.named("zone", names),), self.domain.crs)
        return htf.FrequencyMatrix.from_dense(domain, [3, 4])

    def output(self, ending: str) -> Fresh:
        def make() -> Path:
            self.files += 1
            return self.folder / f"out{self.files}{ending}"

        return Fresh(make)

    def charge(self) -> Fresh:
        return Fresh(
            lambda: htf.publish(self.matrix, "0.5", "singular", noise="fast", budget=self.budget)
        )

    def account(self) -> Fresh:
        def make() -> str:
            self.files += 1
            return f"set {self.files}"

        return Fresh(make)


PATHS = {"text", "empty text", "path"}  # of which none leads to what is looked for
ARRAYS = {
    "int", "negative", "nan", "inf", "float", "empty list", "nested", "floats", "no axis", "three axes", "numpy int",
    "numpy float", "frame", "series", "range",
}  # fmt: skip
EPSILON = {"int", "numpy int", *SHARES}
NAMES = htf.Names.of({"kind": ["a", "b"]})

_PLAIN = NONE | TEXT
_NUMBERS = _PLAIN | {"negative", "list", "instance of ours", "path", *WHOLE, *SHARES}
_LISTED = TEXT | {"empty list", "dict", "path"}
RECIPE_TAKES: dict[str, set[str]] = {
    **dict.fromkeys(
        ("x", "y", "by", "crs", "dest_x", "dest_y", "dest_zones", "dest_by", "table", "sql", "memory",
         "points_crs", "user", "time", "mechanism"),
        _PLAIN,
    ),
    **dict.fromkeys(("bounds", "around", "cells", "within", "dest_within", "distinct", "distinct_boxes"), _NUMBERS),
    **dict.fromkeys(("axes", "categories", "other", "spend", "settings", "prior"), _LISTED),
    **dict.fromkeys(
        ("domain", "inside", "columns", "encoding", "count", "per", "once_per", "weight", "max_weight", "time_format", "since", "until"), NONE
    ),
    **dict.fromkeys(("skip_lines", "skip_last"), NONE | WHOLE),
    "zones": _PLAIN | {"path"},
    "max_records": NONE | WHOLE | {"negative"},  # refused by the quote, which knows what is counted
    "utc_offset": WHOLE | {"negative"},
    "allow_empty": {"true"},
    "epsilon": EPSILON | {"instance of ours"},
    "most_records": WHOLE | {"negative"},
    "label": TEXT,
}  # fmt: skip
RECIPE_SAYS = {
    "time_format": "time_format|form of times",
    "utc_offset": "utc_offset|--read utc-offset",
    "since": "since|a time is written",
    "until": "until|a time is written",
}
CALLS: dict[str, Callable[[World], Call]] = {
    "Axis": lambda _: Call(
        htf.Axis,
        {"name": "x", "low": 0, "high": 1, "cells": 4, "names": None},
        {
            "name": {"text"},
            "names": NONE,
            "low": NUMBER - WHOLE,
            "high": NUMBER - {"negative"},
            "cells": WHOLE,
        },
    ),
    "Axis.named": lambda _: Call(
        htf.Axis.named, {"name": "kind", "names": NAMES}, {"name": {"text"}}, {"name": "name"}
    ),
    "Names.of": lambda _: Call(
        htf.Names.of,
        {"columns": {"kind": ["a"]}, "rest": None, "outlines": None},
        {"rest": {*NONE, "text"}, "outlines": NONE},
        {"columns": "columns|names|labels", "rest": "rest|label"},
    ),
    "Names.edges": lambda _: Call(NAMES.edges, {"level": 0}, {"level": set()}, {"level": "level"}),
    "Names.level_number": lambda _: Call(
        NAMES.level_number, {"name": "kind"}, {"name": set()}, {"name": "level"}
    ),
    "Names.range_of": lambda _: Call(
        NAMES.range_of,
        {"label": "a", "level": None},
        {"label": set(), "level": NONE},
        {"label": "name|no", "level": "level"},
    ),
    "Names.label_of": lambda _: Call(
        NAMES.label_of,
        {"low": 0, "high": 1, "first": 0},
        {"low": set(), "high": set(), "first": WHOLE},
    ),
    "Axis.to_cells": lambda w: Call(
        w.domain.axes[0].to_cells, {"values": [0.5]}, {"values": ARRAYS}, {"values": "coordinates"}
    ),
    "Axis.from_cells": lambda w: Call(
        w.domain.axes[0].from_cells, {"edges": [0, 1]}, {"edges": ARRAYS}
    ),
    "Domain": lambda w: Call(
        htf.Domain,
        {"axes": w.domain.axes, "crs": "EPSG:2056"},
        {"crs": {*NONE, *TEXT}},
        {"axes": "axes|axis"},
    ),
    "Domain.from_bounds": lambda _: Call(
        htf.Domain.from_bounds,
        {"west": 0, "south": 0, "east": 1, "north": 1, "cells": 4, "crs": "EPSG:2056"},
        {
            "west": NUMBER - WHOLE,
            "south": NUMBER - WHOLE,
            "east": NUMBER - {"negative"},
            "north": NUMBER - {"negative"},
            "cells": WHOLE,
            "crs": {*NONE, *TEXT},
        },
        {"west": "west|'x'", "south": "south|'y'", "east": "east|'x'", "north": "north|'y'"},
    ),
    "Domain.square": lambda _: Call(
        htf.Domain.square,
        {"latitude": 34, "longitude": -118, "side_km": 70, "cells": 4},
        {"latitude": NUMBER, "longitude": NUMBER, "side_km": NUMBER - {"negative"}, "cells": WHOLE},
        {"side_km": "side"},
    ),
    "Domain.from_dict": lambda w: Call(
        htf.Domain.from_dict,
        {"data": w.domain.to_dict(), "outlines": None},
        {"outlines": {*NONE, "empty dict", "dict"}},
        {"data": "domain"},
    ),
    "Epsilon": lambda _: Call(
        htf.Epsilon, {"units": 5}, {"units": {*WHOLE, "huge", "too long"}}, {"units": "units|e-15"}
    ),
    "Epsilon.of": lambda _: Call(
        htf.Epsilon.of,
        {"value": 1},
        {"value": {*EPSILON, "instance of ours"}},
        {"value": "epsilon"},
    ),
    "Epsilon.share": lambda _: Call(
        htf.Epsilon(1000).share,
        {"weights": [Fraction(1), 2]},
        {"weights": {"range", "huge in list"}},
    ),
    "MeasurementTable": lambda w: Call(
        MeasurementTable, {n: c.copy() for n, c in w.release.measurements.columns().items()}
    ),
    "Release": lambda w: Call(
        htf.Release,
        {f.name: getattr(w.release, f.name) for f in fields(htf.Release) if f.init},
        {
            "background": NONE,
            "epsilon": {"instance of ours"},
            "mechanism": TEXT,
            "parameters": {"dict", "dict of numbers"},
            "facts": {"dict", "dict of numbers"},
            "estimator": TEXT,
            "noise": TEXT,
            "private": {"true"},
            "prior": NONE,
            "bought": set(),
            "budget_entry": {*NONE, *TEXT},
        },
        {"estimates": "estimate", "scales": "scale"},
    ),
    "CountRegions": lambda _: Call(
        CountRegions,
        {"label": "whole", "regions": [0], "epsilon": [10**14]},
        {"label": TEXT, "regions": {"range", "empty list"}, "epsilon": {"range", "empty list"}},
    ),
    "FrequencyMatrix": lambda w: Call(
        htf.FrequencyMatrix,
        {
            "domain": w.domain,
            "coordinates": np.zeros((2, 1), dtype=np.int32),
            "counts": np.ones(1, dtype=np.int64),
            "protection": htf.Protection(),
            "files": (),
            "weighed": None,
            "told_apart": None,
        },
        {"files": {"empty list"}, "weighed": NONE, "told_apart": NONE},
    ),
    "ToldApart": lambda _: Call(
        htf.ToldApart,
        {"user": "who", "time": "at", "time_unit": "s", "utc_offset": 0, "time_format": None},
        {
            "user": {*NONE, *TEXT},
            "time": {*NONE, *TEXT},
            "time_unit": TEXT,
            "utc_offset": {"negative", *WHOLE},
            "time_format": {*NONE, *TEXT},
        },
        {"utc_offset": "offset from UTC"},
    ),
    "FrequencyMatrix.from_cells": lambda w: Call(
        htf.FrequencyMatrix.from_cells,
        {"domain": w.domain, "coordinates": [[0, 1], [2, 3]], "counts": [1, 2]},
        {"coordinates": {"truths"}, "counts": {*NONE, "range"}},
        {"coordinates": "cell indices|one count for each cell", "counts": "count"},
    ),
    "FrequencyMatrix.from_dense": lambda w: Call(
        htf.FrequencyMatrix.from_dense,
        {"domain": w.domain, "matrix": np.ones((4, 4), dtype=np.int64)},
        {},
        {"matrix": "counts|matrix"},
    ),
    "Protection": lambda _: Call(
        htf.Protection,
        {
            "unit": "person",
            "max_records": 5,
            "once_per": "day",
            "of_query": False,
            "count": "records",
            "per": "day",
            "shares": 1,
            "weight": None,
            "max_weight": 1,
        },
        {"max_records": WHOLE, "once_per": NONE, "of_query": {"true"}, "per": NONE, "weight": NONE},
        {
            "max_records": "records",
            "count": "counted",
            "per": "period",
            "shares": "shares",
            "weight": "weight|once per",
            "max_weight": "weight",
        },
    ),
    "Protection of weights": lambda _: Call(
        htf.Protection,
        {"weight": "passengers", "max_weight": 6},
        {"weight": {"text"}, "max_weight": WHOLE},
        {"weight": "weight", "max_weight": "weight"},
    ),
    "WeighedRecords": lambda _: Call(
        WeighedRecords,
        {"within": 5, "above": 2},
        {"within": {*WHOLE, "zero"}, "above": {*WHOLE, "zero"}},
        {"within": "records", "above": "records"},
    ),
    "Clipped": lambda w: Call(
        Clipped,
        {f.name: getattr(w.clipped, f.name) for f in fields(Clipped)},
        {
            "within": {*WHOLE, "negative"},
            "above": {*WHOLE, "negative"},
            "epsilon": {"instance of ours"},
            "noise": TEXT,
            "private": {"true"},
            "budget_entry": {*NONE, *TEXT},
            "told_apart": NONE,
        },
        {"within": "records", "above": "records", "budget_entry": "entry"},
    ),
    "Clipped.from_dict": lambda w: Call(
        Clipped.from_dict, {"data": w.clipped.to_dict()}, {}, {"data": "cut records"}
    ),
    "Clipped.check_fits": lambda w: Call(
        w.clipped.check_fits, {"protection": w.clipped.protection}, {}, {"protection": "protection"}
    ),
    "measure_clipped": lambda w: Call(
        htf.measure_clipped,
        {"matrix": w.weighed, "epsilon": 1, "noise": "seeded:1", "budget": None, "label": ""},
        {"epsilon": {*EPSILON, "instance of ours"}, "budget": NONE, "label": TEXT},
    ),
    "Background": lambda _: Call(
        Background,
        {"values": np.ones(3), "variances": np.ones(3), "periods": 2},
        {"values": {"floats"}, "variances": {"floats"}, "periods": WHOLE},
        {"periods": "periods|background"},
    ),
    "Series.create": lambda w: Call(
        htf.Series.create,
        {
            "folder": w.output(""),
            "recipe": htf.Recipe(domain=w.domain, epsilon="0.01"),
            "period": "month",
            "releases": 3,
            "total": 9,
        },
        {
            "folder": {"text", "path"},
            "total": {*NONE, *EPSILON, "instance of ours"},
            "releases": WHOLE,
        },
        {"folder": "folder|name", "total": "epsilon|total", "releases": "releases"},
        runs=False,
    ),
    "Protection.from_dict": lambda _: Call(
        htf.Protection.from_dict, {"data": htf.Protection().to_dict()}, {}, {"data": "protected"}
    ),
    "Activity": lambda w: Call(
        Activity,
        {f.name: getattr(w.activity, f.name) for f in fields(Activity)},
        {
            "epsilon": {"instance of ours"},
            "noise": TEXT,
            "private": {"true"},
            "decides": {"true"},
            "per": NONE,
            "budget_entry": {*NONE, *TEXT},
            "told_apart": NONE,
            "most": WHOLE,  # as long as there are as many classes
            "weight": {*NONE, "text"},
        },
        {
            "people": "people|activity",
            "weight": "column|weight",
            "max_weight": "weight",
            "per": "period",
            "budget_entry": "entry",
            "most": "most|records|classes",
        },
    ),
    "Activity.from_dict": lambda w: Call(
        Activity.from_dict, {"data": w.activity.to_dict()}, {}, {"data": "activity"}
    ),
    "Activity.check_fits": lambda w: Call(
        w.activity.check_fits,
        {"protection": htf.Protection("person", 3)},
        {},
        {"protection": "protection"},
    ),
    "measure_activity": lambda w: Call(
        htf.measure_activity,
        {
            "people": w.people,
            "epsilon": 1,
            "noise": "seeded:1",
            "budget": None,
            "label": "",
            "per": None,
        },
        {"epsilon": {*EPSILON, "instance of ours"}, "budget": NONE, "label": TEXT, "per": NONE},
        {"per": "period"},
    ),
    "best_max_records": lambda w: Call(
        htf.best_max_records,
        {"activity": w.activity, "epsilon": htf.Epsilon.of(1), "most": 50},
        {"epsilon": {*EPSILON, "instance of ours"}, "most": WHOLE},
        {"most": "records"},
    ),
    "PeopleByBox": lambda _: Call(
        htf.PeopleByBox,
        {"grid": (2, 1), "people": [[5, 4], [1, 0]], "per": "day", "told_apart": None},
        {"grid": {"text"}, "per": NONE, "told_apart": NONE},
        {"people": "people", "per": "per", "grid": "grid|divided"},
    ),
    "DistinctCounts": lambda w: Call(
        DistinctCounts,
        {f.name: getattr(w.distinct, f.name) for f in fields(DistinctCounts)},
        {
            "grid": {"text"},
            "max_boxes": WHOLE,
            "epsilon": {"instance of ours"},
            "noise": TEXT,
            "private": {"true"},
            "decides": {"true"},
            "per": NONE,
            "budget_entry": {*NONE, *TEXT},
            "told_apart": NONE,
        },
        {
            "grid": "grid|counts|divided",
            "max_boxes": "boxes",
            "budget_entry": "budget entry",
            "people_epsilon": "epsilon",
        },
    ),
    "DistinctCounts.from_dict": lambda w: Call(
        DistinctCounts.from_dict, {"data": w.distinct.to_dict()}, {}, {"data": "different people"}
    ),
    "measure_distinct": lambda w: Call(
        htf.measure_distinct,
        {
            "people": w.by_box,
            "epsilon": 1,
            "max_boxes": 2,
            "noise": "seeded:1",
            "budget": None,
            "label": "",
        },
        {
            "epsilon": {*EPSILON, "instance of ours"},
            "max_boxes": {*NONE, *WHOLE},
            "budget": NONE,
            "label": TEXT,
        },
    ),
    "read_people_by_box": lambda w: Call(
        htf.read_people_by_box,
        {
            "source": w.points,
            "domain": w.domain,
            "grid": 2,
            "columns": ["lon", "lat"],
            "user": "who",
            "per": "day",
            "time": "at",
            "time_unit": "s",
            "utc_offset": 0,
            "crs": "OGC:CRS84",
            "table": None,
            "sql": None,
            "time_format": None,
            "encoding": None,
            "decimal": ".",
            "skip_lines": None,
            "skip_last": None,
            "engine": "duckdb",
            "memory": "1GB",
            "progress": None,
            "tell": None,
            "allow_empty": False,
        },
        {
            "grid": WHOLE,
            "allow_empty": {"true"},
            "columns": NONE,
            "per": NONE,
            "utc_offset": {"negative", *WHOLE},
            "crs": {*NONE, "empty text"},
            "table": NONE,
            "time_format": NONE,
            "encoding": NONE,
            "skip_lines": NONE,
            "skip_last": NONE,
            "sql": NONE,
            "memory": NONE,
            "progress": FUNCTION,
            "tell": FUNCTION,
        },
        {
            "grid": "grid|level|divided",
            "source": "points|file|arrays|column",
            "columns": "column",
            "user": "column|user|person",
            "time": "column|time",
            "time_unit": "unit of times",
            "time_format": "form of times|time_format",
            "encoding": "encoding|text file",
            "decimal": "decimal",
            "skip_lines": "skip_lines|lines|text file",
            "skip_last": "skip_last|lines|text file",
            "utc_offset": "offset from UTC",
            "crs": "reference system|crs",
            "sql": "sql|query",
        },
    ),
    "read_records_per_person": lambda w: Call(
        htf.read_records_per_person,
        {
            "source": w.points,
            "domain": w.domain,
            "columns": ["lon", "lat"],
            "user": "who",
            "most": 2000,
            "per": "day",
            "once_per": "day",
            "since": 0,
            "until": 10**9,
            "time": "at",
            "time_unit": "s",
            "utc_offset": 0,
            "crs": "OGC:CRS84",
            "table": None,
            "sql": None,
            "time_format": None,
            "encoding": None,
            "decimal": ".",
            "skip_lines": None,
            "skip_last": None,
            "engine": "duckdb",
            "memory": "1GB",
            "progress": None,
            "tell": None,
            "allow_empty": False,
        },
        {
            "allow_empty": {"true"},
            "columns": NONE,
            "most": WHOLE,
            "per": NONE,
            "once_per": NONE,
            "since": {*NONE, "negative", *WHOLE},
            "until": {*NONE, *WHOLE},
            "utc_offset": {"negative", *WHOLE},
            "crs": {*NONE, "empty text"},
            "table": NONE,
            "time_format": NONE,
            "encoding": NONE,
            "skip_lines": NONE,
            "skip_last": NONE,
            "sql": NONE,
            "memory": NONE,
            "progress": FUNCTION,
            "tell": FUNCTION,
        },
        {
            "source": "points|file|arrays|column",
            "columns": "column",
            "user": "column|user|person",
            "most": "most|records|max_records",
            "time": "column|time",
            "time_unit": "unit of times",
            "time_format": "form of times|time_format",
            "encoding": "encoding|text file",
            "decimal": "decimal",
            "skip_lines": "skip_lines|lines|text file",
            "skip_last": "skip_last|lines|text file",
            "utc_offset": "offset from UTC",
            "since": "since|a time is written",
            "until": "until|a time is written|since",
            "crs": "reference system|crs",
            "sql": "sql|query",
        },
    ),
    "RecordsPerPerson": lambda _: Call(
        htf.RecordsPerPerson,
        {"persons": [1, 2], "told_apart": None, "weight": "riders", "max_weight": 2},
        {"persons": {"range"}, "told_apart": NONE, "weight": {"text"}, "max_weight": WHOLE},
        {"persons": "people|person", "weight": "column|weight", "max_weight": "weight"},
    ),
    "RecordsPerPerson.from_records": lambda _: Call(
        htf.RecordsPerPerson.from_records,
        {"records": [1, 2], "most": 5, "told_apart": None},
        {
            "records": {"empty list", "int", "numpy int", "nested"},
            "most": WHOLE,
            "told_apart": NONE,
        },
        {"most": "most|records"},
    ),
    "SeededNoise": lambda _: Call(SeededNoise, {"seed": 1}, {"seed": WHOLE}),
    "read_points": lambda w: Call(
        htf.read_points,
        {
            "source": w.points,
            "domain": w.domain,
            "columns": ["lon", "lat"],
            "user": "who",
            "count": "records",
            "per": "month",
            "max_records": 2,
            "once_per": "day",
            "weight": None,
            "max_weight": None,
            "time": "at",
            "time_unit": "s",
            "utc_offset": 0,
            "since": 0,
            "until": 10**9,
            "crs": "OGC:CRS84",
            "table": None,
            "sql": None,
            "time_format": None,
            "encoding": None,
            "decimal": ".",
            "skip_lines": None,
            "skip_last": None,
            "engine": "duckdb",
            "memory": "1GB",
            "progress": None,
            "tell": None,
            "allow_empty": False,
        },
        {
            "allow_empty": {"true"},
            "columns": NONE,
            "count": NONE,
            "per": NONE,
            "max_records": WHOLE,
            "once_per": NONE,
            "weight": NONE,
            "max_weight": NONE,
            "utc_offset": {"negative", *WHOLE},
            "since": {*NONE, "negative", *WHOLE},
            "until": {*NONE, *WHOLE},
            "crs": {*NONE, "empty text"},
            "table": NONE,
            "time_format": NONE,
            "encoding": NONE,
            "skip_lines": NONE,
            "skip_last": NONE,
            "sql": NONE,
            "memory": NONE,
            "progress": FUNCTION,
            "tell": FUNCTION,
        },
        {
            "source": "points|file|arrays|column",
            "columns": "column",
            "user": "column|user|person",
            "max_records": "records",
            "time": "column|time",
            "time_unit": "unit of times",
            "time_format": "form of times|time_format",
            "encoding": "encoding|text file",
            "decimal": "decimal",
            "skip_lines": "skip_lines|lines|text file",
            "skip_last": "skip_last|lines|text file",
            "utc_offset": "offset from UTC",
            "since": "since|a time is written",
            "until": "until|a time is written|since",
            "crs": "reference system|crs",
            "table": "table",
            "sql": "sql|query",
            "memory": "memory",
        },
    ),
    "check_points": lambda w: Call(
        htf.check_points,
        {
            "source": w.points,
            "domain": w.domain,
            "columns": ["lon", "lat"],
            "user": "who",
            "time": "at",
            "time_unit": "s",
            "time_format": None,
            "utc_offset": 0,
            "crs": "OGC:CRS84",
            "table": None,
            "sql": None,
            "encoding": None,
            "decimal": ".",
            "skip_lines": None,
            "skip_last": None,
            "memory": "1GB",
            "progress": None,
        },
        {
            "domain": NONE,
            "columns": {*NONE, "empty list"},
            "user": NONE,
            "time": NONE,
            "time_format": NONE,
            "utc_offset": {"negative", *WHOLE},
            "crs": {*NONE, "empty text"},
            "table": NONE,
            "sql": NONE,
            "encoding": NONE,
            "skip_lines": NONE,
            "skip_last": NONE,
            "memory": NONE,
            "progress": FUNCTION,
        },
        {
            "source": "points|file|arrays|column",
            "columns": "column",
            "user": "column|user|person",
            "time": "column|time",
            "time_unit": "unit of times",
            "time_format": "form of times|time_format",
            "encoding": "encoding|text file",
            "decimal": "decimal",
            "skip_lines": "skip_lines|lines|text file",
            "skip_last": "skip_last|lines|text file",
            "utc_offset": "offset from UTC",
            "crs": "reference system|crs",
            "table": "table",
            "sql": "sql|query",
            "memory": "memory",
        },
    ),
    "read_points of arrays": lambda w: Call(
        htf.read_points,
        {"source": [[0.5], [0.5]], "domain": w.domain, "allow_empty": True, "tell": len},
        {"source": {"nested", "frame"}},
        {"source": "points|file|arrays|column"},
        ("source",),
    ),
    "read_prior": lambda w: Call(
        htf.read_prior,
        {"source": np.ones((4, 4)), "domain": w.domain, "columns": ["lon", "lat"]},
        {"source": {"nested", "truths", "frame"}, "columns": {"empty list"}},
        {"source": "prior|file", "columns": "columns"},
    ),
    "read_zones": lambda w: Call(
        htf.read_zones,
        {
            "layer": w.zones,
            "by": "tract",
            "within": ["district"],
            "crs": "EPSG:2056",
            "elsewhere": "drop",
            "name": "zone",
        },
        {"within": {"empty list"}, "crs": NONE, "name": {"text"}},
        {
            "layer": "zones|file",
            "by": "column",
            "within": "within|column",
            "crs": "crs|reference system",
            "name": "name of an axis|axis name",
        },
    ),
    "Prior": lambda w: Call(
        Prior,
        {f.name: getattr(w.prior, f.name) for f in fields(Prior)},
        {"name": TEXT, "sha256": TEXT, "file": NONE},
        {"sha256": "SHA-256"},
    ),
    "Prior.of": lambda w: Call(
        Prior.of,
        {"values": np.ones((4, 4)), "domain": w.domain, "name": "a", "sha256": "b", "file": None},
        {"values": {"nested", "truths", "frame"}, "name": TEXT, "sha256": TEXT, "file": NONE},
        {"values": "prior", "sha256": "SHA-256"},
    ),
    "Prior.check_map": lambda w: Call(w.prior.check_map, {"domain": w.domain}),
    "make_mechanism": lambda _: Call(
        htf.make_mechanism, {"name": "ug"}, says={"name": "mechanism"}
    ),
    "Recipe": lambda _: Call(
        htf.Recipe,
        {
            **{one.name: one.default for one in dataclasses.fields(htf.Recipe)},
            "source": "visits.csv",  # of any kind: it may be data in memory
            "bounds": (0, 0, 1, 1),
            "epsilon": 1,
        },
        RECIPE_TAKES,
        RECIPE_SAYS,
        only=tuple(one.name for one in dataclasses.fields(htf.Recipe) if one.name != "source"),
    ),
    "publish": lambda w: Call(
        htf.publish,
        {
            "matrix": w.matrix,
            "epsilon": 1,
            "mechanism": "singular",
            "prior": None,
            "noise": "seeded:1",
            "budget": None,
            "label": "",
            "bought": (),
            "progress": None,
        },
        {
            "epsilon": {*EPSILON, "instance of ours"},
            "mechanism": NONE,
            "prior": {*NONE, "empty list"},
            "noise": NONE,
            "budget": NONE,
            "label": TEXT,
            "bought": {"empty list"},
            "progress": FUNCTION,
        },
    ),
    "publish charged": lambda w: Call(
        htf.publish,
        {
            "matrix": w.matrix,
            "epsilon": 1,
            "mechanism": "singular",
            "noise": "fast",
            "budget": w.budget,
            "label": "",
        },
        {"mechanism": NONE, "noise": NONE, "label": TEXT},
        only=("matrix", "mechanism", "noise", "label"),
    ),
    "Curator": lambda w: Call(
        htf.Curator,
        {
            "matrix": w.matrix,
            "epsilon": htf.Epsilon.of(1),
            "noise": None,
            "prior": None,
            "budget": None,
            "label": "",
            "bought": (),
        },
        {
            "epsilon": {*EPSILON, "instance of ours"},
            "noise": NONE,
            "prior": {*NONE, "empty list"},
            "budget": NONE,
            "label": TEXT,
            "bought": {"empty list"},
        },
    ),
    "Curator.measure": lambda w: Call(
        htf.Curator(w.matrix, htf.Epsilon.of(1)).measure,
        {"measurement": CountRegions("whole", np.zeros(1, np.int64), np.array([10**14]))},
    ),
    "Curator.run": lambda w: Call(
        lambda **given: htf.Curator(w.matrix, htf.Epsilon.of(1), SeededNoise(1)).run(**given),
        {"mechanism": htf.make_mechanism("singular"), "progress": None},
        {"progress": FUNCTION},
    ),
    "verify": lambda w: Call(htf.verify, {"release": w.saved}, {}, {"release": "release|file"}),
    "write_report": lambda w: Call(
        htf.write_report,
        {
            "release": w.saved,
            "output": w.output(".html"),
            "budget": None,
            "title": "A town",
            "runs": 0,
            "overwrite": False,
        },
        {
            "budget": NONE,
            "title": {*NONE, "text"},
            "runs": {*NONE, "int", "numpy int"},
            "overwrite": {"true"},
        },
        {"release": "release|file", "output": "output|report"},
        runs=False,
    ),
    "BudgetFile": lambda w: Call(
        htf.BudgetFile,
        {"path": w.budget.path, "dataset": "pings"},
        {},
        {"path": "budget file", "dataset": "dataset|budget for"},
    ),
    "BudgetFile.create": lambda w: Call(
        htf.BudgetFile.create,
        {"path": w.budget.path, "dataset": w.account(), "cap": 1, "unit": "one record"},
        {"path": {"text", "path"}, "dataset": {"text"}, "cap": {*EPSILON, "instance of ours"}},
        {"path": "budget file|cannot write", "dataset": "data set", "cap": "epsilon"},
    ),
    "BudgetFile.charge": lambda w: Call(
        w.budget.charge,
        {
            "epsilon": "0.001",
            "mechanism": "ug",
            "label": "",
            "unit": "one record",
            "told_apart": None,
        },
        {
            "epsilon": {*EPSILON, "instance of ours"},
            "mechanism": TEXT,
            "label": TEXT,
            "told_apart": NONE,
        },
    ),
    "BudgetFile.save": lambda w: Call(
        w.budget.save,
        {"release": w.charge().make(), "path": w.output(".parquet"), "overwrite": False},
        {"overwrite": {"true"}},
        {"path": "output|Parquet|folder"},
        runs=False,
    ),
    "BudgetFile.publish": lambda w: Call(
        w.budget.publish,
        {"id_": w.charge().make().budget_entry, "path": w.saved},
        {},
        {"id_": "entry", "path": "release|file"},
        runs=False,
    ),
    "BudgetFile.withdraw": lambda w: Call(
        w.budget.withdraw, {"id_": w.charge().make().budget_entry}, {}, {"id_": "entry"}, runs=False
    ),
    "BudgetFile.check_bought": lambda w: Call(
        w.riders.check_bought, {"bought": w.activity}, {}, {"bought": "bought"}
    ),
    "BudgetFile.check_output": lambda w: Call(
        w.budget.check_output, {"path": w.output(".parquet")}, {"path": PATHS}, {"path": "output"}
    ),
    "BudgetFile.may_overwrite": lambda w: Call(
        w.budget.may_overwrite, {"path": w.output(".parquet")}, {"path": PATHS}, {"path": "output"}
    ),
    "read_accounts": lambda w: Call(
        read_accounts, {"path": w.budget.path}, {}, {"path": "budget file"}
    ),
    "Release.load": lambda w: Call(
        htf.Release.load, {"path": w.saved}, {}, {"path": "release|file"}
    ),
    "Release.save": lambda w: Call(
        w.release.save,
        {"path": w.output(".parquet"), "overwrite": False},
        {"overwrite": {"true"}},
        {"path": "output|Parquet|folder"},
    ),
    "Release.count": lambda w: Call(
        w.release.count,
        {"boxes": [0, 0, 1, 1], "where": None},
        {"boxes": {*NONE, "empty list"}, "where": NONE},
        {"boxes": "box", "where": "where|axis"},
    ),
    "Release.count in ranges": lambda w: Call(
        lambda x: w.release.count(where={"x": x}), {"x": [0, 1]}, {"x": {"range"}}, {"x": "range"}
    ),
    "Release.count_polygons": lambda w: Call(
        w.release.count_polygons,
        {"geometries": [shapely.box(0, 0, 1, 1)], "crs": None, "where": None},
        {"geometries": {*NONE, "polygon", "empty list"}, "crs": NONE, "where": NONE},
        {"geometries": "polygon|geometr", "crs": "reference system", "where": "where|axis"},
    ),
    "Release.ask": lambda w: Call(w.release.ask, {"question": htf.Question()}),
    "Question.boxes": lambda w: Call(
        lambda boxes, where, by: w.release.ask(htf.Question.boxes(boxes, where, by=by)),
        {"boxes": [0, 0, 1, 1], "where": None, "by": ()},
        {"boxes": {*NONE, "empty list"}, "where": NONE, "by": {"empty list"}},
        {"boxes": "box", "where": "where|axis", "by": "by|level"},
    ),
    "Question.polygons": lambda w: Call(
        lambda geometries, crs, where, labels: w.release.ask(
            htf.Question.polygons(geometries, crs=crs, where=where, labels=labels)
        ),
        {"geometries": shapely.box(0, 0, 1, 1), "crs": None, "where": None, "labels": ["a"]},
        {"geometries": {*NONE, "polygon"}, "crs": NONE, "where": NONE, "labels": NONE},
        {
            "geometries": "polygon|geometr",
            "crs": "reference system",
            "where": "where|axis",
            "labels": "labels|label",
        },
    ),
    "Question.zones": lambda w: Call(
        lambda name, where, by: w.of_zones.ask(htf.Question.zones(name, where=where, by=by)),
        {"name": "south", "where": None, "by": ()},
        {"where": NONE, "by": {"empty list"}},
        {"name": "zone|there is no", "where": "where|axis|range", "by": "by|level"},
    ),
    "Question.by": lambda w: Call(
        lambda name, where: w.of_zones.ask(htf.Question.by(name, where=where)),
        {"name": "half", "where": None},
        {"name": {"empty text"}, "where": NONE},
        {"name": "by|level", "where": "where|axis|range"},
    ),
    "Answer.minus": lambda w: Call(w.release.count().minus, {"other": w.release.count()}),
    "Answer.per": lambda w: Call(
        w.sums.count().per, {"counts": w.release.count()}, {}, {"counts": "other answer"}
    ),
    "Release.plot": lambda w: Call(
        w.release.plot,
        {
            "ax": None,
            "boxes": False,
            "pixels": 4,
            "axes": ("x", "y"),
            "where": None,
            "by": None,
            "level": None,
        },
        {"ax": NONE, "boxes": {"true"}, "pixels": WHOLE, "where": NONE, "by": NONE, "level": NONE},
        {"pixels": "pixel", "axes": "axes|axis", "where": "where|axis", "by": "axis"},
    ),
    "Release.sample": lambda w: Call(
        w.release.sample,
        {"n": 5, "seed": 1},
        {"n": {*NONE, *WHOLE}, "seed": {*NONE, *WHOLE}},
        {"n": "points"},
    ),
    "view": lambda w: Call(
        view,
        {"release": w.release, "axes": ("x", "y"), "where": None, "cells": 4},
        {"where": NONE, "cells": {*NONE, *WHOLE}},
        {"axes": "axes|axis", "where": "where|axis", "cells": "pixel"},
    ),
    "grid_zones": lambda w: Call(
        grid_zones,
        {"domain": w.domain, "width": 0.5, "height": 0.5},
        {"width": {*NONE, *WHOLE, *SHARES}, "height": {*NONE, *WHOLE, *SHARES}},
    ),
    "grid_zones by number": lambda w: Call(
        grid_zones,
        {"domain": w.domain, "columns": 2, "rows": 2},
        {"columns": {*NONE, *WHOLE}, "rows": {*NONE, *WHOLE}},
        {"rows": "rows|zones", "columns": "columns|zones"},
    ),
    "h3_zones": lambda w: Call(
        h3_zones, {"domain": w.domain, "resolution": 2}, {"resolution": WHOLE}
    ),
    "Release.view": lambda w: Call(
        w.release.view,
        {"axes": ("x", "y"), "where": None, "cells": 4},
        {"where": NONE, "cells": {*NONE, *WHOLE}},
        {"axes": "axes|axis", "where": "where|axis", "cells": "pixel"},
    ),
    "Layer.of": lambda w: Call(
        Layer.of,
        {"release": w.release, "title": "a", "axes": ("x", "y"), "where": None, "level": None},
        {"title": {*NONE, *TEXT}, "where": NONE, "level": NONE},
        {"axes": "axes|axis", "where": "where|axis"},
    ),
    "Layer.distinct": lambda w: Call(
        Layer.distinct, {"release": w.with_distinct, "title": "a"}, {"title": {*NONE, *TEXT}}
    ),
    "Layer.periods": lambda w: Call(
        Layer.periods,
        {"series": w.series, "axes": ("x", "y"), "where": None, "level": None},
        {"where": NONE, "level": NONE},
        {"axes": "axes|axis", "where": "where|axis"},
    ),
    "Layer.by": lambda w: Call(w.hours.by, {"name": "hour"}, {}, {"name": "axis"}),
    "Layer.minus": lambda w: Call(w.pair[0].minus, {"other": w.pair[1]}, {}, {"other": "layer"}),
    "draw": lambda w: Call(
        draw,
        {
            "layers": w.pair,
            "output": str(w.folder / "map.png"),
            "boxes": False,
            "title": None,
            "basemap": False,
            "style": None,
            "overwrite": True,
        },
        {
            "boxes": {"true"},
            "title": {*NONE, *TEXT},
            "basemap": {"true"},
            "style": NONE,
            "overwrite": {"true"},
        },
        {"layers": "layer", "output": "output|map"},
    ),
    "synthetic_city": lambda _: Call(
        synthetic_city, {"points": 5, "seed": 1}, {"points": WHOLE, "seed": WHOLE}
    ),
    "synthetic_trips": lambda _: Call(
        synthetic_trips, {"trips": 5, "seed": 1}, {"trips": WHOLE}, {"trips": "points"}, ("trips",)
    ),
    "synthetic_zones": lambda _: Call(
        htf.synthetic_zones,
        {"tracts": 5, "districts": 2, "seed": 1},
        {"tracts": {"int", "numpy int"}, "districts": {"int", "numpy int"}, "seed": WHOLE},
    ),
    "inside_zones": lambda w: Call(
        htf.inside_zones,
        {"on_map": w.on_map, "zones": w.of_zones},
        {"on_map": set(), "zones": set()},
    ),
    "synthetic_visits": lambda _: Call(
        synthetic_visits,
        {"visits": 5, "seed": 1},
        {"visits": WHOLE},
        {"visits": "points"},
        ("visits",),
    ),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("wrong")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield World(folder)


def arguments(call: Call) -> dict[str, Any]:
    return {n: v.make() if isinstance(v, Fresh) else v for n, v in call.right.items()}


def outcome(call: Call, name: str, value: Any) -> str:
    """What is wrong with the answer to a wrong value; "taken" or "refused" where nothing is."""
    given = arguments(call)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            call.function(**{**given, name: value})
    except HtfError as error:
        message = str(error)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    else:
        return "taken"
    named = call.says.get(name, name).split("|")
    if not any(word in message for word in named):
        return f"names no {' or '.join(named)}: {message}"
    if "98.76" in message or len(message) > LONGEST_MESSAGE:
        return f"tells too much: {message}"
    return "refused"


def wrongs(call: Call) -> list[str]:
    found = []
    for name in call.tried:
        takes = call.takes.get(name, NOTHING)
        for value, make in VALUES.items():
            told = outcome(call, name, make())
            if told != ("taken" if value in takes else "refused"):
                found.append(f"{name}={value}: {told}")
    return found


@pytest.mark.parametrize("name", CALLS)
def test_wrong_types_are_refused_in_words(
    world: World, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call = CALLS[name](world)
    if call.runs:
        call.function(**arguments(call))
    assert wrongs(call) == []


OF_PARAMETERS: dict[Any, set[str]] = {
    base.read_integer: {"negative", *WHOLE},
    base.read_optional_integer: {*NONE, *WHOLE},
    base.read_epsilon: {*EPSILON, "instance of ours"},
    base.read_text: TEXT,
    base.read_number: NUMBER,
    base.read_share: SHARES,
}


@pytest.mark.parametrize("name", registry())
def test_parameters_of_mechanisms(name: str) -> None:
    """Of some kind; that a number is negative, or a text not one of a few, is for each to say."""
    for parameter in fields(registry()[name]):
        call = Call(registry()[name], {parameter.name: parameter.default})
        takes = OF_PARAMETERS[parameter.metadata["parse"]]
        found = {value: outcome(call, parameter.name, make()) for value, make in VALUES.items()}
        assert {value for value, told in found.items() if told == "taken"} <= takes
        assert set(found.values()) <= {"taken", "refused"}, found
        settings = {parameter.name: parameter.default}
        assert htf.make_mechanism(name, **settings) == registry()[name]()


# Classes that functions of ours make and give out, or that only mechanisms hold.
MADE_HERE = {
    "Account", "Check", "CityPoints", "Entry", "FileMark", "Histogram", "LedgerLine", "Level", "Outlines", "PointsCheck", "Quote", "RegionTree", "SeriesPlan", "Tiling",
    "Trips", "View", "Visits", "Window", "ZonesBought",
}  # fmt: skip


def test_every_public_name_is_in_the_table() -> None:
    """Errors, warnings and abstract classes are not for calling."""
    called = {name.partition(".")[0] for name in CALLS}
    public = promised()
    uncalled = {
        name
        for name, value in public.items()
        if inspect.isabstract(value) or (inspect.isclass(value) and issubclass(value, Exception))
    }
    assert set(public) - called == MADE_HERE | uncalled


IN_TWO_CALLS = {
    "Protection of weights",
    "publish charged",
    "read_points of arrays",
    "grid_zones",
    "grid_zones by number",
}


def test_every_argument_is_in_the_table(world: World) -> None:
    """A new argument of a public function has to be entered above."""
    for name, make in CALLS.items():
        call = make(world)
        known = inspect.signature(call.function).parameters
        named = {p.name for p in known.values() if p.kind is not p.VAR_KEYWORD}
        if name not in IN_TWO_CALLS:
            assert named <= set(call.right), name


FRAME = pd.DataFrame({"lon": [SECRET], "lat": [SECRET]})
DOMAIN = htf.Domain.from_bounds(0, 0, 1, 1, cells=4)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: htf.publish(FRAME, 1),
            r"matrix must be a FrequencyMatrix, got a DataFrame: count the points first, with "
            r"htf\.read_points\(points, domain, \[column, column\]\)",
        ),
        (lambda: htf.publish("trips.parquet", 1), r"got 'trips.parquet': .*htf\.read_points"),  # type: ignore[arg-type]
        (lambda: htf.publish(np.ones((4, 4)), 1), r"got an array of float64: .*htf\.read_points"),  # type: ignore[arg-type]
        (lambda: htf.Release.load(FRAME), r"name of a file, got a DataFrame: .*htf\.read_points"),
        (
            lambda: htf.read_points(FRAME, DOMAIN, "lon"),
            r"columns must be a list of names, one for each axis, such as \['lon', 'lat'\], got 'lon'",
        ),
        (
            lambda: htf.read_points(FRAME, (0, 0, 1, 1)),  # type: ignore[arg-type]
            r"domain must be a Domain, got a tuple: make one with htf\.Domain\.from_bounds",
        ),
        (
            lambda: htf.publish(
                htf.FrequencyMatrix.from_dense(DOMAIN, np.ones((4, 4))),
                1,
                budget="budget.sqlite",  # type: ignore[arg-type]
            ),
            r"the budget must be a BudgetFile, got 'budget.sqlite': open it with htf\.BudgetFile",
        ),
        (lambda: htf.Domain.from_bounds("0", 0, 1, 1), "west must be a finite number, got '0'"),  # type: ignore[arg-type]
        (lambda: htf.Epsilon(0.5), "the units of an Epsilon, of 1e-15 each, must be a whole"),  # type: ignore[arg-type]
    ],
)
def test_errors_say_what_to_do(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(htf.InputError, match=says):
        call()


def test_settings_may_be_plain_values() -> None:
    given = htf.make_mechanism("htf", halvings=4, growth=2, total_share="0.02")
    assert given == htf.make_mechanism("htf", halvings="4", growth="2", total_share=0.02)
    assert given.parameters()["growth"] == 2.0


def test_too_large_a_number_is_refused_in_a_sentence() -> None:
    with pytest.raises(
        HtfError, match=r"must be a whole number, 0 or more and below 2\*\*63, got 9"
    ):
        whole(10**20 - 1, "points", least=0)
    with pytest.raises(HtfError, match=r"must be a whole number below 2\*\*63, got 9"):
        whole(10**20 - 1, "points")
