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
    from htf.curator.contributions import RecordsPerPerson, suggest_max_records
    from htf.curator.curator import Curator
    from htf.curator.frequency import FrequencyMatrix
    from htf.errors import (
        BudgetError,
        HtfError,
        InputError,
        NothingInsideError,
        ReleaseFileError,
    )
    from htf.frame.domain import Axis, Domain
    from htf.ingest.points import read_points
    from htf.ingest.prior import read_prior
    from htf.mechanisms import make_mechanism
    from htf.mechanisms.base import Mechanism
    from htf.privacy.budget import BudgetFile
    from htf.privacy.epsilon import Epsilon
    from htf.privacy.protection import Protection
    from htf.publication import publish
    from htf.query.columns import Answers
    from htf.release.release import Release
    from htf.verification import verify

_HOME = {
    "Answers": "htf.query.columns",
    "Axis": "htf.frame.domain",
    "BudgetError": "htf.errors",
    "BudgetFile": "htf.privacy.budget",
    "Curator": "htf.curator.curator",
    "Domain": "htf.frame.domain",
    "Epsilon": "htf.privacy.epsilon",
    "FrequencyMatrix": "htf.curator.frequency",
    "HtfError": "htf.errors",
    "InputError": "htf.errors",
    "Mechanism": "htf.mechanisms.base",
    "NothingInsideError": "htf.errors",
    "Protection": "htf.privacy.protection",
    "RecordsPerPerson": "htf.curator.contributions",
    "Release": "htf.release.release",
    "ReleaseFileError": "htf.errors",
    "make_mechanism": "htf.mechanisms",
    "publish": "htf.publication",
    "read_points": "htf.ingest.points",
    "read_prior": "htf.ingest.prior",
    "suggest_max_records": "htf.curator.contributions",
    "verify": "htf.verification",
}

__all__ = [
    "Answers",
    "Axis",
    "BudgetError",
    "BudgetFile",
    "Curator",
    "Domain",
    "Epsilon",
    "FrequencyMatrix",
    "HtfError",
    "InputError",
    "Mechanism",
    "NothingInsideError",
    "Protection",
    "RecordsPerPerson",
    "Release",
    "ReleaseFileError",
    "make_mechanism",
    "publish",
    "read_points",
    "read_prior",
    "suggest_max_records",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'htf' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
