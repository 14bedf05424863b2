"""Releases of zones in files: the layer travels with the release, and GIS tools see its outlines."""

from __future__ import annotations

import json
from pathlib import Path

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import htf
from htf import Axis, Names
from htf.errors import ReleaseFileError
from htf.frame.names import Outlines
from htf.release import file as release_file
from htf.release.named_columns import zone_type
from support_zones import DISTRICTS, TRACTS, zone_domain, zone_release, zones

HOURS = Axis("hour", 0, 24, 4)
KINDS = Axis.named("offence", Names.of({"offence": ["Assault", "Theft"]}, rest="other"))
DESTINATION = Axis.named("dest_zone", zones())


@pytest.mark.parametrize("mechanism", ["singular", "hb", "htf"])
@pytest.mark.parametrize("rest", [None, "elsewhere"])
@pytest.mark.parametrize("further", [(), (HOURS,), (KINDS,), (DESTINATION,), (DESTINATION, HOURS)])
def test_it_comes_back(
    mechanism: str, rest: str | None, further: tuple[Axis, ...], tmp_path: Path
) -> None:
    made = zone_release(zone_domain(*further, rest=rest), mechanism)
    made.save(tmp_path / "r.parquet")
    assert htf.Release.load(tmp_path / "r.parquet") == made
    assert all(check.passed for check in htf.verify(tmp_path / "r.parquet"))
    frame = geopandas.read_parquet(tmp_path / "r.parquet")
    assert frame["count"].sum() == pytest.approx(made.estimates.sum())
    kinds = {"LineString"} if DESTINATION in further else {"Polygon", "MultiPolygon"}
    assert set(frame.geom_type) <= kinds
    assert frame.crs == "OGC:CRS84"


def test_rows_have_outlines_and_labels(tmp_path: Path) -> None:
    zone_release(zone_domain(HOURS)).save(tmp_path / "r.parquet")
    frame = geopandas.read_parquet(tmp_path / "r.parquet")
    assert sorted(frame["tract"]) == sorted(TRACTS * 4)
    for row in frame.itertuples():
        number = TRACTS.index(row.tract)
        assert row.district == DISTRICTS[number]
        assert row.geometry.equals(
            shapely.box(*[number % 3, number // 3], number % 3 + 1, number // 3 + 1)
        )


def test_a_leaf_of_several_zones_has_all_of_them(tmp_path: Path) -> None:
    made = zone_release(zone_domain(), "htf", epsilon="0.0001")  # too little to tell zones apart
    made.save(tmp_path / "r.parquet")
    frame = geopandas.read_parquet(tmp_path / "r.parquet")
    assert len(frame) < 9
    assert shapely.area(frame.geometry.to_numpy()).sum() == pytest.approx(9)
    assert any(" … " in label for label in frame["tract"])


def test_flows_go_from_middle_to_middle(tmp_path: Path) -> None:
    zone_release(zone_domain(DESTINATION)).save(tmp_path / "r.parquet")
    frame = geopandas.read_parquet(tmp_path / "r.parquet").set_index(["tract", "dest_zone tract"])
    line = frame.loc[("t0", "t5"), "geometry"]
    assert shapely.get_coordinates(line).tolist() == [[0.5, 0.5], [2.5, 1.5]]


def test_names_of_columns_that_are_taken() -> None:
    from htf.release.named_columns import label_columns

    names = Names.of({"count": ["a", "b"], "region": ["x", "x"], "kind": ["k", "k"]})
    domain = htf.Domain((Axis.named("kind", names), Axis.named("other", names)))
    assert list(label_columns(domain)) == [
        "kind count", "kind region", "kind", "other count", "other region", "other kind",
    ]  # fmt: skip
    made = zone_release(domain)
    assert set(release_file._to_table(made).column_names) >= set(label_columns(domain))
    dots = Names.of({"a.b": ["x", "y"], "a_b": ["z", "z"]})
    assert list(label_columns(htf.Domain((Axis.named("kind", dots),)))) == ["a_b", "kind a_b"]


def rewritten(path: Path, column: str, values: pa.Array, **options: object) -> None:
    table = pq.read_table(path)
    place = table.column_names.index(column)
    metadata = table.schema.metadata
    changed = table.set_column(place, column, values).replace_schema_metadata(metadata)
    options = {"use_dictionary": False, **options}
    pq.write_table(changed, path, write_page_checksum=True, **options)


def other_shapes(path: Path, shape: bytes) -> pa.Array:
    column = pq.read_table(path)["zones"].to_pylist()
    column[0][0]["shape"] = shape
    return pa.array(column, zone_type())


HOSTILE = {
    "no bytes of a polygon": b"\x01\x03\x00\x00\x00\x01",
    "a point": shapely.to_wkb(shapely.Point(1, 2), byte_order=1),
    "with heights": shapely.to_wkb(shapely.force_3d(shapely.box(0, 0, 1, 1)), byte_order=1),
    "big-endian": shapely.to_wkb(shapely.box(0, 0, 1, 1), byte_order=0),
    "more behind it": shapely.to_wkb(shapely.box(0, 0, 1, 1), byte_order=1) + b"\0",
    "a ring of 2**32 corners": b"\x01\x03\x00\x00\x00\x01\x00\x00\x00\xff\xff\xff\xff",
    "2**32 parts": b"\x01\x06\x00\x00\x00\xff\xff\xff\xff",
    "corners that are no numbers": shapely.to_wkb(shapely.box(0, 0, 1, 1), byte_order=1)[:13]
    + np.full(10, np.nan).tobytes(),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_outlines_that_are_none(name: str, tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    zone_release(zone_domain()).save(path)
    rewritten(path, "zones", other_shapes(path, HOSTILE[name]))
    with pytest.raises(ReleaseFileError, match="damaged: its zones have outlines"):
        htf.Release.load(path)


def test_another_outline_is_found_out(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    zone_release(zone_domain()).save(path)
    moved = shapely.to_wkb(shapely.box(5, 5, 6, 6), byte_order=1)
    rewritten(path, "zones", other_shapes(path, moved))
    with pytest.raises(ReleaseFileError, match="digest"):
        htf.Release.load(path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda zone: zone.update(attributes="[1]"), "attributes that cannot be read"),
        (lambda zone: zone.update(attributes='{"a": [1]}'), "attributes that cannot be read"),
        (lambda zone: zone.update(attributes='{"a": 1}'), "attributes that differ"),
        (lambda zone: zone.update(cell=7), "zones are missing"),
        (lambda zone: zone.update(axis=3), "zones are missing"),
    ],
)
def test_zones_that_cannot_be(change: object, says: str, tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    zone_release(zone_domain()).save(path)
    column = pq.read_table(path)["zones"].to_pylist()
    change(column[0][0])  # type: ignore[operator]
    rewritten(path, "zones", pa.array(column, zone_type()))
    with pytest.raises(ReleaseFileError, match=says):
        htf.Release.load(path)


def test_another_label_is_found_out(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    zone_release(zone_domain()).save(path)
    rewritten(path, "tract", pa.array(TRACTS[::-1]))
    with pytest.raises(ReleaseFileError, match="digest"):
        htf.Release.load(path)


def test_packed_texts_are_refused(tmp_path: Path) -> None:
    """One long text may be meant by every row: it would come to far more in memory."""
    path = tmp_path / "r.parquet"
    zone_release(zone_domain(HOURS)).save(path)
    labels = pq.read_table(path)["tract"].combine_chunks()
    rewritten(path, "tract", labels, use_dictionary=["tract"])
    with pytest.raises(ReleaseFileError, match="packed as in no release"):
        htf.Release.load(path)


def test_names_in_the_header_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    zone_release(zone_domain()).save(path)
    table = pq.read_table(path)
    metadata = dict(table.schema.metadata)
    header = json.loads(metadata[b"htf"])
    header["domain"]["axes"][0]["names"]["levels"][0]["starts"][1] = 0
    metadata[b"htf"] = json.dumps(header).encode()
    changed = table.replace_schema_metadata(metadata)
    pq.write_table(changed, path, use_dictionary=False, write_page_checksum=True)
    with pytest.raises(ReleaseFileError, match="must go up"):
        htf.Release.load(path)


def test_large_outlines_need_pages_of_few_values(tmp_path: Path) -> None:
    """A zone of 30,000 corners takes half a page."""
    angles = np.linspace(0, 2 * np.pi, 30_000)
    shapes = [
        shapely.to_wkb(shapely.Polygon(np.c_[n * 3 + np.cos(angles), np.sin(angles)]), byte_order=1)
        for n in range(40)
    ]
    names = Names.of({"zone": [f"z{n}" for n in range(40)]}, outlines=Outlines(tuple(shapes)))
    made = zone_release(htf.Domain((Axis.named("zone", names),), "OGC:CRS84"))
    made.save(tmp_path / "r.parquet")
    assert htf.Release.load(tmp_path / "r.parquet") == made
