"""Different people in zones, categories and hours: a person counts once in each area of each level, whoever else there is."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htf import Axis, Domain, InputError, Names, PeopleByBox, Protection, read_people_by_box
from htf.curator.distinct import measure_distinct, people_by_class, people_in_boxes
from htf.frame.domain import IntArray
from support import naive_people
from support_zones import zones
from telling import examples

LONG = Names.of({"kind": [f"k{n}" for n in range(60)], "group": [f"g{n // 7}" for n in range(60)]})
SHORT = Names.of({"offence": ["assault", "robbery", "theft"], "group": ["own", "own", "rest"]})
DISTRICTS, TRACTS = [0, 3, 6, 9], list(range(10))
GROUPS = [*range(0, 60, 7), 60]
ZONE, DEST = (Axis.named(name, zones()) for name in ("zone", "dest_zone"))
HOUR = Axis("hour", 0.0, 24.0, 4)
WITH_REST = Domain((Axis.named("zone", zones("elsewhere")),))
DOMAINS = {
    "zones": Domain((ZONE,)),
    "trips": Domain((ZONE, DEST)),
    "hours": Domain((ZONE, HOUR)),
    "kinds": Domain((ZONE, Axis.named("kind", LONG))),
    "map": Domain((Axis("x", 0.0, 3.0, 6), Axis("y", 0.0, 3.0, 6), Axis.named("offence", SHORT))),
}
COLUMNS = {
    "zones": ["x", "y"],
    "trips": ["x", "y", "dx", "dy"],
    "hours": ["x", "y", "hour"],
    "kinds": ["x", "y", "kind"],
    "map": ["x", "y", "offence"],
}
DIVISIONS: dict[tuple[str, str], dict[int, list[int]]] = {
    ("zones", "tract"): {0: TRACTS},
    ("zones", "zone"): {0: TRACTS},
    ("zones", "district"): {0: DISTRICTS},
    ("trips", "district"): {0: DISTRICTS, 1: DISTRICTS},
    ("trips", "tract"): {0: TRACTS, 1: TRACTS},
    ("trips", "dest_zone:district"): {1: DISTRICTS},
    ("trips", "dest_zone,zone:district"): {0: DISTRICTS, 1: TRACTS},
    ("hours", "district,hour"): {0: DISTRICTS, 1: list(range(5))},
    ("hours", "hour"): {1: list(range(5))},
    ("kinds", "group"): {1: GROUPS},
    ("kinds", "district,group"): {0: DISTRICTS, 1: GROUPS},
    ("map", "group"): {2: [0, 2, 3]},
    ("map", "offence"): {2: [0, 1, 2, 3]},
}
PLACE = st.sampled_from([0.5, 1.5, 2.5, 3.5, None])  # 3.5 is in no zone
RECORD = st.fixed_dictionaries(
    {
        "x": PLACE, "y": PLACE, "dx": PLACE, "dy": PLACE,
        "hour": st.sampled_from([0.0, 7.5, 23.0, 25.0]),
        "kind": st.sampled_from(["k0", "k6", "k7", "k59", "none of these", None]),
        "offence": st.sampled_from(["assault", "robbery", "theft", "another", None]),
        "who": st.sampled_from(["ann", "bob", "1,2", None, ""]),
        "at": st.sampled_from([0, 1800, 90_000, None]),
    }
)  # fmt: skip
KINDS = {"kind": pa.string(), "offence": pa.string(), "who": pa.string(), "at": pa.int64()}
pytestmark = pytest.mark.filterwarnings("ignore::htf.ingest.remarks.NothingInside")


def read(records: list[Any], kind: str, by: str, per: str | None = None) -> IntArray:
    names = ("x", "y", "dx", "dy", "hour", "kind", "offence", "who", "at")
    columns = {
        n: pa.array([record[n] for record in records], KINDS.get(n, pa.float64())) for n in names
    }
    return read_people_by_box(
        pa.table(columns), DOMAINS[kind], by, COLUMNS[kind], user="who", per=per, time="at", allow_empty=True,
    ).exact_people  # fmt: skip


def tract(x: float | None, y: float | None) -> float | None:
    return None if x is None or y is None or max(x, y) > 3 else float(int(y) * 3 + int(x))


def places(record: Any, kind: str) -> tuple[float | None, ...]:
    """Where a record lies along each axis, found without the code that is tested."""
    zone, dest = tract(record["x"], record["y"]), tract(record["dx"], record["dy"])
    labels = {"kinds": LONG.levels[0].labels, "map": SHORT.levels[0].labels}.get(kind, ())
    label = record["kind"] if kind == "kinds" else record["offence"]
    name = float(labels.index(label)) if label in labels else None
    return {
        "zones": (zone,), "trips": (zone, dest), "hours": (zone, record["hour"]), "kinds": (zone, name),
        "map": (record["x"], record["y"], name),
    }[kind]  # fmt: skip


@pytest.mark.parametrize(("kind", "by"), DIVISIONS)
@given(st.lists(RECORD, max_size=30), st.sampled_from([None, "day"]))
@examples(5)
def test_people_are_counted_once_in_each_area(
    kind: str, by: str, records: list[Any], per: str | None
) -> None:
    """As the reference does, whatever the order of rows."""
    naive = [(places(record, kind), record["who"], record["at"]) for record in records]
    expected = naive_people(naive, DOMAINS[kind], DIVISIONS[kind, by], per)
    assert np.array_equal(read(records, kind, by, per), expected)
    mixed = random.Random(1).sample(records, len(records))
    assert np.array_equal(read(mixed, kind, by, per), expected)


@pytest.mark.parametrize(
    ("kind", "by"), [("zones", "district"), ("trips", "district"), ("kinds", "district,group")]
)
@given(st.lists(RECORD, max_size=30), st.integers(1, 3))
@examples(5)
def test_one_person_moves_so_many_counts_and_one_class(
    kind: str, by: str, records: list[Any], most: int
) -> None:
    more = PeopleByBox(by, read(records, kind, by))
    for who in {record["who"] or "" for record in records}:
        others = [record for record in records if (record["who"] or "") != who]
        less = PeopleByBox(by, read(others, kind, by))
        counts = people_in_boxes(more, most) - people_in_boxes(less, most)
        assert set(counts) <= {0, 1}
        assert counts.sum() <= most
        classes = people_by_class(more) - people_by_class(less)
        assert set(classes) <= {0, 1}
        assert classes.sum() <= (who != "")


def test_a_person_in_two_zones_of_one_district_counts_once_in_it() -> None:
    """Zones 0 and 1 are of the first district, zone 3 of the second. A person without a zone is nowhere."""
    rides = {
        "x": [0.5, 1.5, 0.5, 9.0], "y": [0.5, 0.5, 1.5, 9.0], "who": ["ann", "ann", "ann", "bob"],
    }  # fmt: skip
    by_district = read_people_by_box(rides, DOMAINS["zones"], "district", user="who")
    assert by_district.exact_people.sum(axis=0).tolist() == [1, 1, 0]
    assert people_by_class(by_district).tolist() == [0, 1, 0]
    by_tract = read_people_by_box(rides, DOMAINS["zones"], "tract", user="who")
    assert by_tract.exact_people.sum(axis=0).tolist() == [1, 1, 0, 1, 0, 0, 0, 0, 0]
    elsewhere = read_people_by_box(rides, WITH_REST, "district", user="who")
    assert elsewhere.exact_people.sum(axis=0).tolist() == [1, 1, 0, 1]


@pytest.mark.parametrize(
    ("kind", "by", "says"),
    [
        ("zones", "ward", "no level 'ward'"),
        ("zones", "", "say by which level"),
        ("zones", "district,tract", "divides an axis twice"),
        ("trips", "district,zone:tract", "divides an axis twice"),
        ("zones", 3, "name a level instead, such as tract"),
    ],
)
def test_what_divides_no_map_is_refused(kind: str, by: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_people_by_box({"x": [0.5], "y": [0.5], "who": ["a"]}, DOMAINS[kind], by, user="who")


def test_too_many_areas_are_refused() -> None:
    names = Names.of({"kind": [f"k{n}" for n in range(200)]})
    domain = Domain((Axis.named("kind", names), Axis.named("other", names)))
    with pytest.raises(InputError, match="40,000 areas, but at most 32,768"):
        read_people_by_box({"kind": ["k1"], "other": ["k2"], "who": [1]}, domain, "kind,other", user="who")  # fmt: skip


def test_a_table_of_another_layer_does_not_fit() -> None:
    table = measure_distinct(PeopleByBox("district", [[5, 6, 7]]), 1, noise="seeded:1")
    table.check_map(DOMAINS["zones"])
    table.check_fits(Protection("person", max_records=3))
    with pytest.raises(InputError, match=r"3 areas by district, but by district this map has 4"):
        table.check_map(WITH_REST)
    with pytest.raises(InputError, match="no level 'district'"):
        table.check_map(DOMAINS["map"])
