"""The file of a release: opens elsewhere as polygons, reads back identically, refuses what is wrong."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb
import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from htf import BudgetFile, Domain, Epsilon, FrequencyMatrix, InputError, Release, publish, verify
from htf.errors import ReleaseFileError
from htf.frame.domain import Axis
from htf.privacy import statement
from htf.privacy.purchases import PURCHASES
from htf.release.file import charged_entry
from htf.release.header import FORMAT
from htf.release.kinds import KINDS
from htf.release.release import MeasurementTable
from support import city_matrix, grid


@pytest.fixture(scope="module")
def release() -> Release:
    domain = Domain.square(34.05223, -118.24368, 70, 64)
    city = city_matrix()
    matrix = FrequencyMatrix.from_cells(domain, city.exact_coordinates, city.exact_counts)
    return publish(matrix, "0.5", "htf-paper", noise="seeded:3")


@pytest.fixture
def path(release: Release, tmp_path: Path) -> Path:
    release.save(tmp_path / "release.parquet")
    return tmp_path / "release.parquet"


def test_geopandas_opens_it_as_polygons_with_counts(release: Release, path: Path) -> None:
    frame = gpd.read_parquet(path)
    assert frame.crs == "OGC:CRS84"
    assert frame.geometry.is_valid.all()
    assert set(frame.geometry.geom_type) == {"Polygon"}
    assert frame.geometry.exterior.is_ccw.all()
    assert frame["count"].tolist() == release.estimates.tolist()
    x, y = release.domain.axes
    assert frame.total_bounds.tolist() == [x.low, y.low, x.high, y.high]
    map_area = (x.high - x.low) * (y.high - y.low)
    assert shapely.area(frame.geometry.values).sum() == pytest.approx(map_area, rel=1e-12)
    assert shapely.union_all(frame.geometry.values).area == pytest.approx(map_area, rel=1e-9)


def test_duckdb_opens_it(release: Release, path: Path) -> None:
    query = (
        """SELECT count(*), sum("count"), sum(len(measurements)), min(x_low) FROM read_parquet(?)"""
    )
    boxes, total, measurements, west = duckdb.execute(query, [str(path)]).fetchall()[0]
    assert (boxes, total) == (len(release), release.estimates.sum())
    assert measurements == len(release.measurements)
    assert west == release.domain.axes[0].low
    kind = duckdb.execute("SELECT typeof(geometry) FROM read_parquet(?) LIMIT 1", [str(path)])
    assert kind.fetchall()[0][0].startswith(("GEOMETRY", "BLOB"))


def test_the_geo_metadata_is_that_of_geoparquet(path: Path) -> None:
    geo = json.loads(pq.read_schema(path).metadata[b"geo"])
    assert geo["version"] == "1.1.0"
    assert geo["primary_column"] == "geometry"
    column = geo["columns"]["geometry"]
    assert column["encoding"] == "WKB"
    assert column["geometry_types"] == ["Polygon"]
    assert "crs" not in column  # which means longitude and latitude


def test_other_reference_systems(tmp_path: Path) -> None:
    axes = Axis("x", 0.0, 7e5, 8), Axis("y", 0.0, 1.3e6, 8)
    counts = np.full((8, 8), 50)
    for crs, expected in (("EPSG:27700", "EPSG:27700"), (None, None)):
        matrix = FrequencyMatrix.from_dense(Domain(axes, crs), counts)
        made = publish(matrix, 1, noise="seeded:1")
        made.save(tmp_path / "r.parquet", overwrite=True)
        assert gpd.read_parquet(tmp_path / "r.parquet").crs == expected
        assert Release.load(tmp_path / "r.parquet") == made


@pytest.mark.parametrize("shape", [(40,), (6, 5, 4), (4, 3, 3, 4)])
def test_other_numbers_of_axes(shape: tuple[int, ...], tmp_path: Path) -> None:
    made = publish(
        FrequencyMatrix.from_dense(grid(*shape), np.full(shape, 30)), 1, noise="seeded:1"
    )
    made.save(tmp_path / "r.parquet")
    assert Release.load(tmp_path / "r.parquet") == made
    columns = pq.read_schema(tmp_path / "r.parquet").names
    assert ("geometry" in columns) == (len(shape) > 1)
    assert all(f"{name}_low" in columns for name in made.domain.names)
    if len(shape) > 1:  # outlines in the first two axes, whatever the others are
        frame = gpd.read_parquet(tmp_path / "r.parquet")
        edges = frame[["x_low", "y_low", "x_high", "y_high"]].to_numpy()
        assert np.array_equal(shapely.bounds(frame.geometry.values), edges)


def test_it_reads_back_identically(release: Release, path: Path) -> None:
    again = Release.load(path)
    assert again == release
    assert again.summary() == release.summary()
    assert again.ledger == release.ledger
    box = [-118.3, 34.0, -118.2, 34.1]
    assert again.count(box).to_dicts() == release.count(box).to_dicts()


def rewrite(path: Path, change: Any) -> None:
    """Write the file again with a changed header or changed columns."""
    table = pq.read_table(path)
    metadata = dict(table.schema.metadata)
    header = json.loads(metadata[b"htf"])
    result = change(header, table)
    table = result if isinstance(result, pa.Table) else table
    metadata[b"htf"] = json.dumps(header).encode()
    pq.write_table(table.replace_schema_metadata(metadata), path)


def set_column(table: Any, name: str, values: Any) -> Any:
    return table.set_column(table.schema.get_field_index(name), name, pa.array(values))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda h, _: h.update(format=FORMAT + 1, software="htf-dp 9"),
            "newer version .htf-dp 9.*upgrade",
        ),
        (
            lambda h, _: h.update(format=FORMAT - 1, software="htf-dp 0"),
            "never released .htf-dp 0.*use that version",
        ),
        (lambda h, _: h.update(format="x"), "header cannot be read"),
        (lambda h, _: h.update(epsilon="0.1"), "was changed"),
        (lambda h, _: h.update(private=True), "was changed"),
        (lambda h, _: h["ledger"].pop(), "was changed"),
        (lambda h, _: h["ledger"][0].update(kind="free"), "was changed"),
        (lambda h, _: h.pop("domain"), "is damaged"),
        (lambda h, _: h["domain"]["axes"][0].update(cells=65), "is damaged"),
        (lambda h, _: h["domain"]["axes"][0].update(low=-119.0), "was changed"),
        (lambda _, t: set_column(t, "count", t["count"].to_numpy() + 1), "was changed"),
        (lambda _, t: set_column(t, "noise_scale", t["noise_scale"].to_numpy() / 2), "was changed"),
        (lambda _, t: set_column(t, "region", t["region"].to_numpy()[::-1]), "was changed"),
        (lambda _, t: t.slice(1), "is damaged"),
        (lambda _, t: t.drop_columns(["measurements"]), "is damaged"),
    ],
)
def test_changed_files_are_refused(path: Path, change: Any, says: str) -> None:
    rewrite(path, change)
    with pytest.raises(ReleaseFileError, match=says):
        Release.load(path)


def test_damaged_and_foreign_files_are_refused(path: Path, tmp_path: Path) -> None:
    content = bytearray(path.read_bytes())
    for broken in (b"", b"hello", bytes(content[:-100]), bytes(content[: len(content) // 2])):
        (tmp_path / "broken.parquet").write_bytes(broken)
        with pytest.raises(ReleaseFileError, match="not a sound Parquet file"):
            Release.load(tmp_path / "broken.parquet")
    pq.write_table(pa.table({"count": [1.0]}), tmp_path / "foreign.parquet")
    with pytest.raises(ReleaseFileError, match="not a release"):
        Release.load(tmp_path / "foreign.parquet")
    with pytest.raises(ReleaseFileError, match="there is no file"):
        Release.load(tmp_path / "none.parquet")


def test_flipped_bytes_are_noticed(release: Release, path: Path) -> None:
    """Wherever a byte changes, the file is refused or still says the same."""
    content = path.read_bytes()
    generator = np.random.default_rng(4)
    refused = 0
    for place in generator.integers(0, len(content), 60):
        changed = bytearray(content)
        changed[place] ^= 1 << int(generator.integers(8))
        path.write_bytes(changed)
        try:
            assert Release.load(path) == release
        except ReleaseFileError:
            refused += 1
    assert refused > 30


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    release: Release, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_bytes()

    def fail(_: Any, place: Any, **__: Any) -> None:
        place.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(InputError, match=r"cannot write .*No space left"):
        release.save(path, overwrite=True)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_impossible_places_are_named(release: Release, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no folder"):
        release.save(tmp_path / "no" / "r.parquet")
    with pytest.raises(InputError, match="it is a folder"):
        release.save(tmp_path)


def doctored(release: Release, **changes: Any) -> Release:
    content = {
        f: getattr(release, f) for f in release.__dataclass_fields__ if f not in ("low", "high")
    }
    return Release(**{**content, **changes})


def wrong(release: Release) -> list[str]:
    return [check.name for check in verify(release) if not check.passed]


def test_verify_finds_what_does_not_follow(release: Release, path: Path) -> None:
    table = release.measurements
    assert wrong(release) == []

    def changed(**columns: Any) -> Any:
        return type(table)(**{**table.columns(), **columns})

    cheaper = changed(epsilon=table.epsilon // 2)
    assert {"spend", "ledger", "sums"} <= set(wrong(doctored(release, measurements=cheaper)))
    wrapping = changed(epsilon=np.full(len(table), 971 * 10**15))
    assert "spend" in wrong(doctored(release, measurements=wrapping))
    dearer = changed(epsilon=table.epsilon * 2)
    assert "spend" in wrong(doctored(release, measurements=dearer))
    assert "sums" in wrong(doctored(release, estimates=release.estimates + 1))
    assert "sums" in wrong(doctored(release, scales=release.scales / 2))
    assert "sums" in wrong(doctored(release, measurements=changed(value=table.value + 1)))
    assert "ledger" in wrong(doctored(release, ledger=release.ledger[:-1]))
    assert "ledger" in wrong(doctored(release, measurements=changed(kind=1 - table.kind)))
    scored = np.flatnonzero(table.kind == 1)
    unpaid = table.epsilon.copy()
    unpaid[scored[1:]] = 0
    assert "ledger" in wrong(doctored(release, measurements=changed(epsilon=unpaid)))
    changes: list[dict[str, Any]] = [
        {"sensitivity": 0},
        {"spent_after": Epsilon(7)},
        {"kind": "linear"},
    ]
    for change in changes:
        lines = (replace(release.ledger[2], **change), *release.ledger[3:])
        assert "ledger" in wrong(doctored(release, ledger=(*release.ledger[:2], *lines)))
    assert wrong(doctored(release, private=True)) == ["noise"]
    assert "sums" in wrong(doctored(release, estimator="magic"))
    rewrite(path, lambda h, _: h.update(statement="Perfectly private."))
    assert [c.name for c in verify(path) if not c.passed] == ["statement"]
    wording = "NOT PRIVATE. 0.5-differentially private, in other words."
    rewrite(path, lambda h, _: h.update(statement=wording, software="htf-dp 0.0.1"))
    assert [c.name for c in verify(path) if not c.passed] == []
    rewrite(path, lambda h, _: h.update(statement=wording.replace("0.5", "0.1")))
    assert [c.name for c in verify(path) if not c.passed] == ["statement"]


def test_a_release_that_the_same_version_worded_otherwise_is_sound(
    release: Release, path: Path
) -> None:
    """Words may be mended between two versions: files that were written before must still pass."""
    mended = release.statement.replace("subtract", "take off")
    assert mended != release.statement
    rewrite(path, lambda h, _: h.update(statement=mended))
    assert [c.name for c in verify(path) if not c.passed] == ["statement"]
    rewrite(path, lambda h, _: h.update(software=f"htf-dp {version('htf-dp')}"))
    assert [c.name for c in verify(path) if not c.passed] == []


def test_the_mark_of_the_wording_covers_every_sentence() -> None:
    others = {"TYPE_CHECKING", "PEOPLE", "PERSON", "RECORD", "SENTENCES", "WORDING", "PURCHASES"}
    texts = [
        vars(statement)[name] for name in vars(statement) if name.isupper() and name not in others
    ]
    said = [kind.words for kind in PURCHASES]
    assert len(texts) + len(said) == len(statement.SENTENCES) >= 14
    assert all(text in statement.SENTENCES for text in [*texts, *said])


@pytest.mark.parametrize("kind", PURCHASES)
def test_the_words_of_a_purchase_are_all_its_sentences(kind: type) -> None:
    declared = vars(sys.modules[kind.__module__])
    sentences = {one for name, one in declared.items() if name.isupper() and str(one).endswith(".")}
    assert sentences == {one for one in kind.words if one.endswith(".")}  # type: ignore[attr-defined]


def test_a_release_must_tile_the_map(release: Release) -> None:
    with pytest.raises(InputError, match="cover the map"):
        doctored(release, leaves=release.leaves[1:], estimates=release.estimates[1:])
    with pytest.raises(InputError, match="one estimate"):
        doctored(release, estimates=release.estimates[1:].copy())


PLAIN = FrequencyMatrix.from_dense(grid(4, 4), np.full((4, 4), 17))


@pytest.fixture
def budget(tmp_path: Path) -> BudgetFile:
    return BudgetFile.create(tmp_path / "budget.sqlite", "pings", "1")


def test_a_release_knows_its_charge_after_it_was_saved(budget: BudgetFile, tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    release = publish(PLAIN, "0.4", "ug", budget=budget)
    release.save(path)  # as if the program had died before it could enter it
    again = Release.load(path)
    assert again == release
    assert again.budget_entry == release.budget_entry == charged_entry(path)
    assert budget.publish(str(again.budget_entry), path).state == "published"
    with pytest.raises(InputError, match="published already"):
        budget.save(again, tmp_path / "second.parquet")


def test_a_charged_release_of_a_newer_format_stays(budget: BudgetFile, tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    release = publish(PLAIN, "0.4", "ug", budget=budget)
    release.save(path)
    rewrite(path, lambda header, _: header.update(format=FORMAT + 1, more="of it"))
    assert charged_entry(path) == release.budget_entry
    content = path.read_bytes()
    with pytest.raises(InputError, match="was charged to a budget"):
        publish(PLAIN, 1, "ug", noise="seeded:1").save(path, overwrite=True)
    assert path.read_bytes() == content


def test_the_charge_of_any_file_can_be_asked_for(budget: BudgetFile, tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    publish(PLAIN, 1, "ug", noise="seeded:1").save(path)
    assert charged_entry(path) is None
    publish(PLAIN, "0.4", "ug", budget=budget).save(path, overwrite=True)
    content = path.read_bytes()
    assert charged_entry(path)
    for place in range(len(content) - 2000, len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        charged_entry(path)  # raises for nothing
    for foreign in (b"", b"PAR1", b"lon,lat\n1,2\n", content[:-100]):
        path.write_bytes(foreign)
        assert charged_entry(path) is None
    assert charged_entry(tmp_path) is charged_entry(tmp_path / "none") is None


def test_a_count_is_refined_after_one_look_at_its_region(tmp_path: Path) -> None:
    """Whatever rows of a file are changed, a refined count without a look before it is refused."""
    even = FrequencyMatrix.from_dense(grid(128, 128), np.ones((128, 128), dtype=np.int64))
    release = publish(even, "0.1", noise="seeded:1")
    table = release.measurements.columns()
    look, refined = KINDS.index("look"), KINDS.index("refined")
    assert {look, refined} <= set(table["kind"].tolist())
    for name, kind, value in (("kind", look, 0), ("kind", refined, look), ("region", look, 0)):
        changed = {key: column.copy() for key, column in table.items()}
        changed[name][table["kind"] == kind] = value
        path = tmp_path / f"{name}-{kind}-{value}.parquet"
        replace(release, measurements=MeasurementTable(**changed)).save(path)
        with pytest.raises(ReleaseFileError, match="not looked at once"):
            Release.load(path)
