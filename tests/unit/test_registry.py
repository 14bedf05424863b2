"""The record of a release for the public registry of deployments.

The keys and choices below are those of its schema that we fill in (deployments-schema.yaml of
opendp/deployments-registry-data, as of November 2026). The schema itself is not ours to carry, and it forbids keys that it
does not know, so that a wrong one would make the whole record invalid.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htf
from htf import Domain, FrequencyMatrix, Release, publish
from htf.cli.main import run
from htf.export.registry import TODO, registry_record, registry_yaml
from support import city_matrix, people_matrix, require_package
from support_zones import zone_domain, zone_release

TEXT = str
KNOWN: dict[str, Any] = {
    "url_slug": TEXT,
    "status": ("Draft",),
    "tier": (1, 2, 3),
    "deployment": {
        "basic": {
            "name": TEXT,
            "data_curators": [TEXT],
            "description": TEXT,
            "intended_use": TEXT,
            "data_product_type": ("Summary statistics",),
            "data_product_region": TEXT,
            "publication_date": TEXT,
        },
        "dp_variant": {
            "variant_name": ("Pure DP",),
            "data_domain": TEXT,
            "unprotected_quantities": TEXT,
        },
        "privacy_loss": {
            "privacy_unit": TEXT,
            "privacy_unit_details": TEXT,
            "privacy_parameters": {"epsilon": float},
            "privacy_parameters_details": TEXT,
        },
        "deployment_model": {
            "model_name": ("Central",),
            "actors": TEXT,
            "release_type": ("One release", "Many releases"),
            "release_type_details": TEXT,
            "data_source_type": ("Static", "Dynamic"),
            "data_source_type_details": TEXT,
            "access_type": ("Non-interactive",),
            "access_type_details": TEXT,
        },
        "accounting": {"post_processing": TEXT, "composition": TEXT},
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": TEXT,
            "mechanisms": TEXT,
            "justification": TEXT,
        },
        "administrative": {"sources": TEXT, "notes": TEXT, "registry_authors": [TEXT]},
    },
}


def check(found: Any, known: Any, where: str = "record") -> None:
    if isinstance(known, dict):
        assert set(found) == set(known), where
        for name, inner in known.items():
            check(found[name], inner, f"{where}.{name}")
    elif isinstance(known, list):
        assert found
        for one in found:
            check(one, known[0], where)
    elif isinstance(known, tuple):
        assert found in known, where
    else:
        assert type(found) is known, where
        assert found, where


def releases() -> dict[str, Release]:
    return {
        "records": publish(city_matrix(16), "0.5", noise="seeded:1"),
        "people": publish(people_matrix(per="month"), 1, noise="seeded:1"),
        "zones": zone_release(zone_domain()),
    }


@pytest.mark.parametrize("kind", ["records", "people", "zones"])
def test_the_record_has_what_the_schema_knows(kind: str) -> None:
    yaml = require_package("yaml", "PyYAML")
    release = releases()[kind]
    record = registry_record(release, "Some name: 2026")
    read = yaml.safe_load(registry_yaml(record))
    assert read == record
    check(read, KNOWN)
    assert read["url_slug"] == "some-name-2026"
    loss = read["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"]["epsilon"] == float(release.epsilon)
    assert loss["privacy_unit"].lower() == release.protection.name
    date.fromisoformat(read["deployment"]["basic"]["publication_date"])
    assert "NOT PRIVATE" in read["deployment"]["administrative"]["notes"]


def test_texts_of_others_stay_texts() -> None:
    yaml = require_package("yaml", "PyYAML")
    odd = {"a": 'x: "y" # z\n\u2028\u0085- b', "b": ["yes", "2026-01-01", "null"], "c": 0.1, "d": 3}
    assert yaml.safe_load(registry_yaml(odd)) == odd


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    domain = Domain.from_bounds(0, 0, 1, 1, cells=4)
    matrix = FrequencyMatrix.from_dense(domain, np.full((4, 4), 9))
    publish(matrix, 1).save(tmp_path / "town.parquet")
    output = tmp_path / "record.yaml"
    source = str(tmp_path / "town.parquet")
    assert run(["info", source, "--registry", "-o", str(output)]) == 0
    text = output.read_text("utf-8")
    assert capsys.readouterr().out.startswith(f"Wrote {output}: {text.count(TODO)} texts")
    assert 'release_type: "One release"' in text
    assert "NOT PRIVATE" not in text
    for wrong, says in (
        (["--registry"], "go together"),
        (["-o", str(output)], "go together"),
        (["--registry", "--json", "-o", str(output)], "give one of them"),
        (["--registry", "-o", str(tmp_path / "record.txt")], r"a record is a .yaml or .yml file"),
        (["--registry", "-o", str(output)], "already exists"),
    ):
        assert run(["info", source, *wrong]) == 2
        assert says in capsys.readouterr().err


def test_a_release_of_a_series_has_its_plan(tmp_path: Path) -> None:
    domain = Domain.from_bounds(0, 0, 1, 1, cells=4)
    recipe = htf.Recipe(domain=domain, epsilon=1)
    series = htf.Series.create(tmp_path / "city", recipe, "month", releases=12)
    series.add(FrequencyMatrix.from_dense(domain, np.full((4, 4), 9)), "2026-01")
    source, output = tmp_path / "city/2026-01.parquet", tmp_path / "record.yml"
    assert run(["info", str(source), "--registry", "-o", str(output)]) == 0
    assert 'release_type: "Many releases"' in output.read_text("utf-8")
    assert "Each of up to 12 releases" in output.read_text("utf-8")
