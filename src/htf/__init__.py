"""HTF: publish location data with differential privacy.

    import htf

    domain = htf.Domain.square(34.05223, -118.24368, 70, cells=1024)
    matrix = htf.read_points("pings.parquet", domain, ["lon", "lat"])
    release = htf.publish(matrix, epsilon=0.5)
    release.save("release.parquet")
    release.count([-118.3, 34.0, -118.2, 34.1])

Names are loaded when they are first used, so that importing the package is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from htf.curator.clipping import measure_clipped
    from htf.curator.contributions import RecordsPerPerson, measure_activity
    from htf.curator.curator import Curator
    from htf.curator.distinct import PeopleByBox, measure_distinct
    from htf.curator.frequency import FrequencyMatrix, WeighedRecords
    from htf.curator.measurements import Measurement
    from htf.curator.noise import NoiseSource
    from htf.curator.window import Window
    from htf.errors import (
        BudgetError,
        HtfError,
        InputError,
        MissingExtraError,
        NothingInsideError,
        OutputError,
        ReleaseFileError,
    )
    from htf.estimation.activity import best_max_records
    from htf.estimation.background import Background
    from htf.estimation.prior import Prior
    from htf.frame.domain import Axis, Domain
    from htf.frame.names import Level, Names, Outlines
    from htf.frame.tree import RegionTree
    from htf.ingest.check import PointsCheck, check_points
    from htf.ingest.layers import read_zones
    from htf.ingest.points import read_people_by_box, read_points
    from htf.ingest.prior import read_prior
    from htf.ingest.records import read_records_per_person
    from htf.ingest.remarks import NothingInside
    from htf.maps.draw import draw
    from htf.maps.layer import Layer
    from htf.maps.views import View
    from htf.mechanisms import make_mechanism
    from htf.mechanisms.base import Histogram, Mechanism
    from htf.privacy.account import Account, Entry
    from htf.privacy.activity import Activity
    from htf.privacy.apart import ToldApart
    from htf.privacy.budget import BudgetFile
    from htf.privacy.clipping import Clipped
    from htf.privacy.distinct import DistinctCounts
    from htf.privacy.epsilon import Epsilon
    from htf.privacy.ledger import LedgerLine
    from htf.privacy.origins import FileMark
    from htf.privacy.protection import Protection
    from htf.privacy.zones_bought import ZonesBought
    from htf.publication import publish
    from htf.query.answer import Answer
    from htf.query.question import Question
    from htf.query.tilings import Tiling, grid_zones, h3_zones
    from htf.recipes.quote import Quote
    from htf.recipes.recipe import Recipe
    from htf.release.inside_zones import inside_zones
    from htf.release.release import MeasurementTable, Release
    from htf.report.document import write_report
    from htf.series.plan import SeriesPlan
    from htf.series.series import Series
    from htf.synthetic.city import CityPoints, synthetic_city
    from htf.synthetic.city_zones import synthetic_zones
    from htf.synthetic.trips import Trips, synthetic_trips
    from htf.synthetic.visits import Visits, synthetic_visits
    from htf.verification import Check, verify

_HOME = {
    "Account": "htf.privacy.account",
    "Activity": "htf.privacy.activity",
    "Answer": "htf.query.answer",
    "Axis": "htf.frame.domain",
    "Background": "htf.estimation.background",
    "BudgetError": "htf.errors",
    "BudgetFile": "htf.privacy.budget",
    "Check": "htf.verification",
    "CityPoints": "htf.synthetic.city",
    "Clipped": "htf.privacy.clipping",
    "Curator": "htf.curator.curator",
    "DistinctCounts": "htf.privacy.distinct",
    "Domain": "htf.frame.domain",
    "Entry": "htf.privacy.account",
    "Epsilon": "htf.privacy.epsilon",
    "FileMark": "htf.privacy.origins",
    "FrequencyMatrix": "htf.curator.frequency",
    "Histogram": "htf.mechanisms.base",
    "HtfError": "htf.errors",
    "InputError": "htf.errors",
    "Layer": "htf.maps.layer",
    "LedgerLine": "htf.privacy.ledger",
    "Level": "htf.frame.names",
    "Measurement": "htf.curator.measurements",
    "MeasurementTable": "htf.release.release",
    "Mechanism": "htf.mechanisms.base",
    "MissingExtraError": "htf.errors",
    "Names": "htf.frame.names",
    "NoiseSource": "htf.curator.noise",
    "NothingInside": "htf.ingest.remarks",
    "NothingInsideError": "htf.errors",
    "Outlines": "htf.frame.names",
    "OutputError": "htf.errors",
    "PeopleByBox": "htf.curator.distinct",
    "PointsCheck": "htf.ingest.check",
    "Prior": "htf.estimation.prior",
    "Protection": "htf.privacy.protection",
    "Question": "htf.query.question",
    "Quote": "htf.recipes.quote",
    "Recipe": "htf.recipes.recipe",
    "RecordsPerPerson": "htf.curator.contributions",
    "RegionTree": "htf.frame.tree",
    "Release": "htf.release.release",
    "ReleaseFileError": "htf.errors",
    "Series": "htf.series.series",
    "SeriesPlan": "htf.series.plan",
    "ToldApart": "htf.privacy.apart",
    "Trips": "htf.synthetic.trips",
    "View": "htf.maps.views",
    "Visits": "htf.synthetic.visits",
    "WeighedRecords": "htf.curator.frequency",
    "Window": "htf.curator.window",
    "Tiling": "htf.query.tilings",
    "ZonesBought": "htf.privacy.zones_bought",
    "best_max_records": "htf.estimation.activity",
    "check_points": "htf.ingest.check",
    "draw": "htf.maps.draw",
    "grid_zones": "htf.query.tilings",
    "h3_zones": "htf.query.tilings",
    "inside_zones": "htf.release.inside_zones",
    "make_mechanism": "htf.mechanisms",
    "measure_activity": "htf.curator.contributions",
    "measure_clipped": "htf.curator.clipping",
    "measure_distinct": "htf.curator.distinct",
    "publish": "htf.publication",
    "read_people_by_box": "htf.ingest.points",
    "read_points": "htf.ingest.points",
    "read_prior": "htf.ingest.prior",
    "read_records_per_person": "htf.ingest.records",
    "read_zones": "htf.ingest.layers",
    "synthetic_city": "htf.synthetic.city",
    "synthetic_trips": "htf.synthetic.trips",
    "synthetic_visits": "htf.synthetic.visits",
    "synthetic_zones": "htf.synthetic.city_zones",
    "verify": "htf.verification",
    "write_report": "htf.report.document",
}

__all__ = [
    "Account",
    "Activity",
    "Answer",
    "Axis",
    "Background",
    "BudgetError",
    "BudgetFile",
    "Check",
    "CityPoints",
    "Clipped",
    "Curator",
    "DistinctCounts",
    "Domain",
    "Entry",
    "Epsilon",
    "FileMark",
    "FrequencyMatrix",
    "Histogram",
    "HtfError",
    "InputError",
    "Layer",
    "LedgerLine",
    "Level",
    "Measurement",
    "MeasurementTable",
    "Mechanism",
    "MissingExtraError",
    "Names",
    "NoiseSource",
    "NothingInside",
    "NothingInsideError",
    "Outlines",
    "OutputError",
    "PeopleByBox",
    "PointsCheck",
    "Prior",
    "Protection",
    "Question",
    "Quote",
    "Recipe",
    "RecordsPerPerson",
    "RegionTree",
    "Release",
    "ReleaseFileError",
    "Series",
    "SeriesPlan",
    "Tiling",
    "ToldApart",
    "Trips",
    "View",
    "Visits",
    "WeighedRecords",
    "Window",
    "ZonesBought",
    "best_max_records",
    "check_points",
    "draw",
    "grid_zones",
    "h3_zones",
    "inside_zones",
    "make_mechanism",
    "measure_activity",
    "measure_clipped",
    "measure_distinct",
    "publish",
    "read_people_by_box",
    "read_points",
    "read_prior",
    "read_records_per_person",
    "read_zones",
    "synthetic_city",
    "synthetic_trips",
    "synthetic_visits",
    "synthetic_zones",
    "verify",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("htf-dp")
    if name not in _HOME:
        raise AttributeError(f"module 'htf' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
