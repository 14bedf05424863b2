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
    from htf.estimation.distinct import DistinctPeople
    from htf.estimation.prior import Prior
    from htf.evaluation.synthetic import CityPoints, synthetic_city
    from htf.evaluation.trips import Trips, synthetic_trips
    from htf.evaluation.visits import Visits, synthetic_visits
    from htf.evaluation.zones import synthetic_zones
    from htf.frame.domain import Axis, Domain
    from htf.frame.names import Level, Names, Outlines
    from htf.frame.tree import RegionTree
    from htf.ingest.check import PointsCheck, check_points
    from htf.ingest.layers import read_zones
    from htf.ingest.points import NothingInside, read_people_by_box, read_points
    from htf.ingest.prior import read_prior
    from htf.ingest.records import read_records_per_person
    from htf.maps.comparison import Difference, Named, difference
    from htf.maps.plot_compare import plot_comparison, plot_difference
    from htf.maps.plot_distinct import plot_distinct
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
    from htf.privacy.zones import ZonesBought
    from htf.publication import publish
    from htf.query.change import Changes
    from htf.query.columns import Answers
    from htf.query.ratios import Ratios, ratio
    from htf.query.zones import Zones, grid_zones, h3_zones, zone_layer
    from htf.recipes.quote import Quote
    from htf.recipes.recipe import Recipe
    from htf.release.inside_zones import inside_zones
    from htf.release.release import MeasurementTable, Release
    from htf.report.document import write_report
    from htf.series.plan import SeriesPlan
    from htf.series.series import Series
    from htf.verification import Check, verify

_HOME = {
    "Account": "htf.privacy.account",
    "Activity": "htf.privacy.activity",
    "Answers": "htf.query.columns",
    "Axis": "htf.frame.domain",
    "Background": "htf.estimation.background",
    "BudgetError": "htf.errors",
    "BudgetFile": "htf.privacy.budget",
    "Changes": "htf.query.change",
    "Check": "htf.verification",
    "CityPoints": "htf.evaluation.synthetic",
    "Clipped": "htf.privacy.clipping",
    "Curator": "htf.curator.curator",
    "Difference": "htf.maps.comparison",
    "DistinctCounts": "htf.privacy.distinct",
    "DistinctPeople": "htf.estimation.distinct",
    "Domain": "htf.frame.domain",
    "Entry": "htf.privacy.account",
    "Epsilon": "htf.privacy.epsilon",
    "FileMark": "htf.privacy.origins",
    "FrequencyMatrix": "htf.curator.frequency",
    "Histogram": "htf.mechanisms.base",
    "HtfError": "htf.errors",
    "InputError": "htf.errors",
    "LedgerLine": "htf.privacy.ledger",
    "Level": "htf.frame.names",
    "Measurement": "htf.curator.measurements",
    "MeasurementTable": "htf.release.release",
    "Mechanism": "htf.mechanisms.base",
    "MissingExtraError": "htf.errors",
    "Named": "htf.maps.comparison",
    "Names": "htf.frame.names",
    "NoiseSource": "htf.curator.noise",
    "NothingInside": "htf.ingest.points",
    "NothingInsideError": "htf.errors",
    "Outlines": "htf.frame.names",
    "OutputError": "htf.errors",
    "PeopleByBox": "htf.curator.distinct",
    "PointsCheck": "htf.ingest.check",
    "Prior": "htf.estimation.prior",
    "Protection": "htf.privacy.protection",
    "Quote": "htf.recipes.quote",
    "Ratios": "htf.query.ratios",
    "Recipe": "htf.recipes.recipe",
    "RecordsPerPerson": "htf.curator.contributions",
    "RegionTree": "htf.frame.tree",
    "Release": "htf.release.release",
    "ReleaseFileError": "htf.errors",
    "Series": "htf.series.series",
    "SeriesPlan": "htf.series.plan",
    "ToldApart": "htf.privacy.apart",
    "Trips": "htf.evaluation.trips",
    "View": "htf.maps.views",
    "Visits": "htf.evaluation.visits",
    "WeighedRecords": "htf.curator.frequency",
    "Window": "htf.curator.window",
    "Zones": "htf.query.zones",
    "ZonesBought": "htf.privacy.zones",
    "best_max_records": "htf.estimation.activity",
    "check_points": "htf.ingest.check",
    "difference": "htf.maps.comparison",
    "grid_zones": "htf.query.zones",
    "h3_zones": "htf.query.zones",
    "inside_zones": "htf.release.inside_zones",
    "make_mechanism": "htf.mechanisms",
    "measure_activity": "htf.curator.contributions",
    "measure_clipped": "htf.curator.clipping",
    "measure_distinct": "htf.curator.distinct",
    "plot_comparison": "htf.maps.plot_compare",
    "plot_difference": "htf.maps.plot_compare",
    "plot_distinct": "htf.maps.plot_distinct",
    "publish": "htf.publication",
    "ratio": "htf.query.ratios",
    "read_people_by_box": "htf.ingest.points",
    "read_points": "htf.ingest.points",
    "read_prior": "htf.ingest.prior",
    "read_records_per_person": "htf.ingest.records",
    "read_zones": "htf.ingest.layers",
    "synthetic_city": "htf.evaluation.synthetic",
    "synthetic_trips": "htf.evaluation.trips",
    "synthetic_visits": "htf.evaluation.visits",
    "synthetic_zones": "htf.evaluation.zones",
    "verify": "htf.verification",
    "write_report": "htf.report.document",
    "zone_layer": "htf.query.zones",
}

__all__ = [
    "Account",
    "Activity",
    "Answers",
    "Axis",
    "Background",
    "BudgetError",
    "BudgetFile",
    "Changes",
    "Check",
    "CityPoints",
    "Clipped",
    "Curator",
    "Difference",
    "DistinctCounts",
    "DistinctPeople",
    "Domain",
    "Entry",
    "Epsilon",
    "FileMark",
    "FrequencyMatrix",
    "Histogram",
    "HtfError",
    "InputError",
    "LedgerLine",
    "Level",
    "Measurement",
    "MeasurementTable",
    "Mechanism",
    "MissingExtraError",
    "Named",
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
    "Quote",
    "Ratios",
    "Recipe",
    "RecordsPerPerson",
    "RegionTree",
    "Release",
    "ReleaseFileError",
    "Series",
    "SeriesPlan",
    "ToldApart",
    "Trips",
    "View",
    "Visits",
    "WeighedRecords",
    "Window",
    "Zones",
    "ZonesBought",
    "best_max_records",
    "check_points",
    "difference",
    "grid_zones",
    "h3_zones",
    "inside_zones",
    "make_mechanism",
    "measure_activity",
    "measure_clipped",
    "measure_distinct",
    "plot_comparison",
    "plot_difference",
    "plot_distinct",
    "publish",
    "ratio",
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
    "zone_layer",
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
