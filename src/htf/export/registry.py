"""A release as a record of the public registry of deployments of differential privacy, as far as a release knows it. Public.

The registry (github.com/opendp/deployments-registry-data) has a schema of its own, in YAML. A release knows its guarantee, but
not who publishes it, why, or how the data are guarded. These fields hold a text that starts with `TODO`, for a person to fill in.

YAML is written here: the record is nested mappings of texts, numbers and lists of texts. JSON texts are YAML too, so
that a few lines do, and no further package is needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from htf.estimation.level import LEVEL_TEXT
from htf.privacy.protection import PEOPLE, PERSON, RECORD
from htf.query.answer_texts import counts_of
from htf.release.release import Release
from htf.series.plan import SeriesPlan

TODO = "TODO: "
HEAD = """\
# A record for the public registry of deployments of differential privacy
# (https://github.com/opendp/deployments-registry-data), made by `htf info --registry`.
# What the release knows is filled in. Replace every text that starts with TODO, and check the rest.
"""
SOFTWARE = "htf-dp"
POST_PROCESSING = (
    "Estimates are computed from the noisy measurements alone ({estimator}), which costs no further privacy. They are "
    "published beside the raw measurements, and `htf verify` recomputes them."
)
COMPOSITION = (
    "Basic sequential composition along every path of the tree of regions, and parallel composition across disjoint regions: the "
    "loss of a record is the sum of the epsilons of the measurements whose region holds it, and the loss of the release the "
    "largest such sum. It is computed with exact whole numbers."
)
TUNING = (
    "Epsilon, bounds, grid and mechanism were fixed before any noise was drawn, and are not covered by epsilon. "
    f"{TODO}say that they were chosen without looking at the data, and what preprocessing or cleaning came before."
)
NO_FLOATS = (
    "Noise is drawn as whole numbers (discrete Laplace; medians by an exact exponential mechanism), so that the attacks on "
    "floating-point noise do not apply. The release is not interactive, so its answers have no timing channel; how long the computation took is not covered."
)


def registry_record(release: Release, name: str, plan: SeriesPlan | None = None) -> dict[str, Any]:
    """The record as plain values. `name` is that of the file; the plan is that of its series, if it is of one."""
    return {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "release",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": _basic(release, name),
            "dp_variant": _variant(release),
            "privacy_loss": _loss(release),
            "deployment_model": _model(plan),
            "accounting": {
                "post_processing": _post_processing(release),
                "composition": _composition(release),
            },
            "implementation": _implementation(release),
            "administrative": {
                "sources": f"{TODO}links to the release and to what was written about it.",
                "notes": _notes(release),
                "registry_authors": [f"{TODO}who filled in this record."],
            },
        },
    }


def registry_yaml(record: Mapping[str, Any]) -> str:
    """The record as YAML, with a comment above."""
    return HEAD + "\n".join(_lines(record, 0)) + "\n"


def _basic(release: Release, name: str) -> dict[str, Any]:
    return {
        "name": f"{TODO}name of the data product (file {name}).",
        "data_curators": [f"{TODO}who publishes the release."],
        "intended_use": f"{TODO}what the release is for.",
        "data_product_type": "Summary statistics",
        "data_product_region": f"{TODO}which region, and whose laws apply. {_place(release)}",
        "description": (
            f"Noisy {counts_of(release.quantity)} ({release.counted}) in {len(release):,} regions, with {LEVEL_TEXT} intervals. "
            f"{TODO}of what, and when."
        ),
        # The release has no date: when it was finished would say how long it took.
        "publication_date": datetime.now(UTC).date().isoformat(),
    }


def _place(release: Release) -> str:
    if not release.domain.has_map:
        return f"The release has the axes {', '.join(release.domain.names)}."
    x, y = release.domain.axes[:2]
    return f"The map has x from {x.low:g} to {x.high:g} and y from {y.low:g} to {y.high:g} ({release.domain.crs or 'no reference system'})."


def _variant(release: Release) -> dict[str, Any]:
    public = "the bounds, the grid or the zones, the mechanism and its parameters"
    total = release.parameters.get("public_total")
    known = "" if total is None else f" The number of records, {total}, was disclosed exactly."
    nobody = " or no person" if release.protection.unit == PERSON else ""
    return {
        "variant_name": "Pure DP",
        "data_domain": f"All multisets of records. Those outside the map, and those that name no place{nobody}, are left out.",
        "unprotected_quantities": f"What was fixed beforehand: {public}.{known}",
    }


def _loss(release: Release) -> dict[str, Any]:
    protection = release.protection
    return {
        "privacy_unit": protection.name.capitalize(),
        "privacy_unit_details": _adjacency(release),
        "privacy_parameters": {"epsilon": float(release.epsilon)},
        "privacy_parameters_details": (
            f"epsilon = {release.epsilon} exactly, for {protection.spoken}. It was fixed before any noise was drawn."
        ),
    }


def _adjacency(release: Release) -> str:
    protection = release.protection
    if protection.unit == RECORD:
        change = "one record"
        bound = "Someone with k records has k times this epsilon."
    else:
        period = "" if protection.per is None else f" in one {protection.per}"
        change = f"all records of one person{period}"
        bound = "A person is whoever has one identifier in the data."
        if protection.count == PEOPLE:
            bound += f" Each counts as one, in {protection.shares} shares over all their records."
        else:
            bound += f" At most {protection.max_records} records of each were kept."
    if protection.weight is not None:
        bound += (
            f" A record counts at most {protection.max_weight} times, by its {protection.weight}."
        )
    return f"Data sets are adjacent if one is the other with {change} added or removed. {bound}"


def _model(plan: SeriesPlan | None) -> dict[str, Any]:
    many = (
        f"{TODO}say whether the same data will be used again. Epsilons of further releases add up."
    )
    if plan is not None:
        many = " ".join(plan.told)
    return {
        "model_name": "Central",
        "actors": (
            "The curator holds the records and draws the noise, and must be trusted with both. Whoever has the release is not "
            f"trusted: the guarantee holds whatever they know. {TODO}name the curator, and who can reach the records."
        ),
        "release_type": "One release" if plan is None else "Many releases",
        "release_type_details": many,
        "data_source_type": "Static" if plan is None else "Dynamic",
        "data_source_type_details": f"{TODO}say whether new records come in over time.",
        "access_type": "Non-interactive",
        "access_type_details": "The release is one file. Questions are answered from it alone, and cost nothing.",
    }


def _post_processing(release: Release) -> str:
    names = ", ".join(prior.name for prior in release.priors)
    known = (
        f" They also use what was given as public knowledge and travels with the release: {names}."
    )
    return POST_PROCESSING.format(estimator=release.estimator) + (known if names else "")


def _composition(release: Release) -> str:
    parts = ", ".join(f"{one.kind} {one.epsilon}" for one in release.bought)
    beside = f" What was measured beside the map is part of epsilon: {parts}."
    return COMPOSITION + (beside if parts else "")


def _implementation(release: Release) -> dict[str, Any]:
    parameters = ", ".join(f"{name} = {value}" for name, value in release.parameters.items())
    return {
        "preprocessing_and_hyperparameter_tuning": TUNING,
        "mechanisms": (
            f"Mechanism {release.mechanism}{f' ({parameters})' if parameters else ''}, noise: {release.noise}. "
            f"{SOFTWARE} {version(SOFTWARE)}. {NO_FLOATS} {TODO}how the records are stored, and who can reach them."
        ),
        "justification": f"{TODO}why this epsilon, this unit and this map.",
    }


def _notes(release: Release) -> str:
    warning = f"NOT PRIVATE: the noise was {release.noise}. Do not register this release. "
    said = "Written by `htf info --registry` from the release itself."
    return said if release.private else warning + said


def _lines(values: Mapping[str, Any], depth: int) -> Iterator[str]:
    indent = "  " * depth
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield f"{indent}{name}:"
            yield from _lines(value, depth + 1)
        elif isinstance(value, list):
            yield f"{indent}{name}:"
            yield from (f"{indent}  - {_scalar(one)}" for one in value)
        else:
            yield f"{indent}{name}: {_scalar(value)}"


def _scalar(value: str | float) -> str:
    """A text or a number as JSON, which YAML reads; characters that YAML does not take are escaped."""
    if not isinstance(value, str):
        return json.dumps(value)
    return json.dumps(value, ensure_ascii=not value.isprintable())
