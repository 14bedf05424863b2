"""The table of different people of a release that has one."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import numpy as np

from htf import PeopleByBox, Protection, measure_distinct, publish
from htf.curator.frequency import FrequencyMatrix
from htf.frame.domain import Domain
from htf.serve.limits import Limits
from htf.serve.openapi import describe
from serving import client, running


def test_it_is_served_where_there_is_one(tmp_path: Path) -> None:
    domain = Domain.from_bounds(0, 0, 1, 1, 4)
    cells = np.indices((4, 4), dtype=np.int32).reshape(2, -1)
    protection = Protection("person", count="people", shares=256)
    matrix = FrequencyMatrix(domain, cells, np.full(16, 2560), protection)
    people = PeopleByBox((2, 2), [[300, 200, 100, 50], [30, 20, 10, 5]])
    table = measure_distinct(people, "0.2", noise="fast")
    release = publish(matrix, 1, "ug", noise="fast", bought=(table,))
    release.save(tmp_path / "with.parquet")
    publish(matrix, 1, "ug", noise="fast").save(tmp_path / "without.parquet")
    with (
        running([tmp_path / "with.parquet", tmp_path / "without.parquet"]) as (address, _),
        client(address) as api,
    ):
        answer = api.get("/api/releases/with/distinct")
        again = api.get(
            "/api/releases/with/distinct", headers={"If-None-Match": answer.headers["etag"]}
        )
        missing = api.get("/api/releases/without/distinct")
        asked = api.get("/api/releases/with/distinct?box=0,0,1,1")
    assert (answer.status_code, again.status_code) == (200, 304)
    assert missing.status_code == 404
    assert "no table of different people" in missing.json()["detail"]
    assert asked.status_code == 400
    found = answer.json()
    assert found["quantity"] == "different people"
    assert found["different_people"] == release.count_distinct().different_people.tolist()
    schemas = describe(Limits(), False)["components"]
    jsonschema.validate(
        found, {"$ref": "#/components/schemas/DistinctPeople", "components": schemas}
    )
