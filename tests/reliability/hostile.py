"""Releases that somebody made to do harm: a catalogue, for the tests and as seeds of the fuzzer.

Each is a file that claims something no release has, or that differs from what was released. Wherever that
is possible its digests are made to match again (`sealed`), as whoever wrote it would do: then the digest
alone finds nothing. All commands must come to an end with each of them, in little time and memory. They
refuse what no release can be; what could be one is refused by `htf verify`, which computes it again.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from htf import Domain, FrequencyMatrix, Release, publish
from htf.frame import tree as tree_module
from htf.frame.domain import Axis
from htf.frame.tree import RegionTree
from htf.mechanisms import registry
from htf.privacy.epsilon import Epsilon
from htf.privacy.protection import Protection
from htf.release import file as release_file
from htf.release.header import FORMAT
from htf.release.release import MeasurementTable

HTF, GEO = b"htf", b"geo"
OWN_FORMAT = f'"format": {FORMAT}'
OPTIONS = {"compression": "zstd", "write_page_checksum": True}


@dataclass(frozen=True)
class Opened:
    """What a file holds, to be changed at will."""

    table: pa.Table
    header: dict[str, Any]
    others: dict[bytes, bytes]  # of the metadata

    @classmethod
    def read(cls, path: Path) -> Opened:
        table = pq.read_table(path)
        metadata = dict(table.schema.metadata)
        return cls(table.replace_schema_metadata(None), json.loads(metadata.pop(HTF)), metadata)

    @classmethod
    def of(cls, release: Release) -> Opened:
        table = release_file._to_table(release)
        metadata = dict(table.schema.metadata)
        return cls(table.replace_schema_metadata(None), json.loads(metadata.pop(HTF)), metadata)

    def with_column(self, name: str, values: Any) -> Opened:
        place = self.table.schema.get_field_index(name)
        return replace(self, table=self.table.set_column(place, name, pa.array(values)))

    def with_header(self, **changes: Any) -> Opened:
        return replace(self, header={**self.header, **changes})

    def sealed(self) -> Opened:
        """With digests that match, made without the reader's checks: else a check could be taken out, and
        the digest alone would refuse the file. Where nothing can be computed, the old ones stay."""
        header = dict(self.header)
        with suppress(Exception):
            header["digest"] = [_digest_of_header(header), header["digest"][1]]
        with suppress(Exception):
            names = [axis["name"] for axis in header["domain"]["axes"]]
            header["digest"] = [header["digest"][0], _digest_of_rows(self.table, names)]
            like_a_domain: Any = SimpleNamespace(names=names, dimensions=len(names))
            header["columns_digest"] = release_file._digest_of_columns(
                self.table, self.others.get(GEO), like_a_domain
            )
        with suppress(Exception):
            domain = Domain.from_dict(header["domain"])
            release = release_file._from_table(self.table, header, domain)
            header["statement"] = release.statement
        return replace(self, header=header)

    def write(self, path: Path, text: str | None = None, **options: Any) -> Path:
        """`text` stands for the header, where it cannot be made from Python's values."""
        header = json.dumps(self.header) if text is None else text
        metadata = {**self.others, HTF: header.encode("utf-8", "surrogatepass")}
        pq.write_table(self.table.replace_schema_metadata(metadata), path, **{**OPTIONS, **options})
        return path


def _digest_of_header(header: dict[str, Any]) -> str:
    unsaid = ("format", "software", "statement", "digest", "columns_digest")
    said = {name: header[name] for name in header if name not in unsaid}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _digest_of_rows(table: pa.Table, names: list[str]) -> str:
    """What `release_file` computes of a release, computed of the columns."""
    regions, measured = (
        _in_order(table[name].combine_chunks().flatten()) for name in ("regions", "measurements")
    )
    edges = [np.stack([regions[f"{name}_{side}"] for name in names], 1) for side in ("low", "high")]
    plain = [table[name].combine_chunks().to_numpy() for name in ("region", "count", "noise_scale")]
    del measured["row"]
    digest = hashlib.sha256()
    for array in (regions["parent"], *edges, *plain, *measured.values()):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _in_order(flat: pa.Array) -> dict[str, Any]:
    """Columns within a list, sorted by the first of them."""
    columns = {field.name: flat.field(n).to_numpy() for n, field in enumerate(flat.type)}
    order = np.argsort(next(iter(columns.values())))
    return {name: column[order] for name, column in columns.items()}


def make_seeds(folder: Path, every_mechanism: bool = False) -> dict[str, Path]:
    """Sound releases of several kinds, small enough that thousands can be read."""
    generator = np.random.default_rng(7)
    cells = np.minimum(generator.geometric(0.15, (2, 2000)) - 1, 15)
    plane = Domain.from_bounds(-30.2, 39.9, -29.8, 40.1, cells=16)
    hours = Domain((*plane.axes, Axis("hour", 0, 24, 8)), plane.crs)
    metres = Domain.from_bounds(4e5, 5e6, 4.1e5, 5.01e6, 16, crs="EPSG:32632")
    line = Domain((Axis("x", 0, 64, 64),))
    with_hours = np.vstack([cells, generator.integers(0, 8, cells.shape[1])])
    on_plane = FrequencyMatrix.from_cells(plane, cells)
    matrices = {
        "plane": (on_plane, "htf"),
        "hours": (FrequencyMatrix.from_cells(hours, with_hours), "htf"),
        "metres": (FrequencyMatrix.from_cells(metres, cells), "hdmm"),
        "line": (FrequencyMatrix.from_cells(line, cells[:1]), "htf"),
        **({name: (on_plane, name) for name in registry()} if every_mechanism else {}),
    }
    made = {}
    for name, (matrix, mechanism) in matrices.items():
        made[name] = folder / f"{name}.parquet"
        publish(matrix, "0.5", mechanism, noise="seeded:7").save(made[name], overwrite=True)
    return made


Maker = Callable[[dict[str, Path], Path], Path]


@dataclass(frozen=True)
class Hostile:
    """One file, and how to make it from sound ones."""

    name: str
    make: Maker


def changed(change: Callable[[Opened], Opened], of: str = "plane", seal: bool = True) -> Maker:
    def make(seeds: dict[str, Path], path: Path) -> Path:
        file = change(Opened.read(seeds[of]))
        return (file.sealed() if seal else file).write(path)

    return make


def header(*, seal: bool = True, of: str = "plane", **changes: Any) -> Maker:
    """Other values in the header, with digests that match."""
    return changed(lambda file: file.with_header(**changes), of, seal)


def domain(of: str = "plane", **changes: Any) -> Maker:
    return changed(lambda file: file.with_header(domain={**file.header["domain"], **changes}), of)


def text(old: str, new: str) -> Maker:
    """Other text in the header: what no Python value would be written as."""

    def make(seeds: dict[str, Path], path: Path) -> Path:
        file = Opened.read(seeds["plane"])
        whole = json.dumps(file.header)
        assert old in whole
        whole = whole.replace(old, new, 1)
        with suppress(Exception):
            digest = _digest_of_header(json.loads(whole))
            whole = whole.replace(file.header["digest"][0], digest)
        return file.write(path, whole)

    return make


def line(**changes: Any) -> Maker:
    """Other values in the first line of the ledger."""

    def change(file: Opened) -> Opened:
        first, *rest = file.header["ledger"]
        return file.with_header(ledger=[{**first, **changes}, *rest])

    return changed(change)


def axis(**changes: Any) -> Maker:
    def change(file: Opened) -> Opened:
        domain = file.header["domain"]
        first, *rest = domain["axes"]
        return file.with_header(domain={**domain, "axes": [{**first, **changes}, *rest]})

    return changed(change)


def column(name: str, change: Callable[[Any], Any], of: str = "plane", seal: bool = True) -> Maker:
    def make(file: Opened) -> Opened:
        return file.with_column(name, change(file.table[name].to_numpy(zero_copy_only=False)))

    return changed(make, of, seal)


def inner(name: str, part: str, change: Callable[[Any], Any]) -> Maker:
    """Other values within the lists of a column."""

    def make(file: Opened) -> Opened:
        lists = file.table[name].combine_chunks()
        flat = lists.flatten()
        parts = {field.name: flat.field(place) for place, field in enumerate(flat.type)}
        parts[part] = pa.array(change(parts[part].to_numpy()), flat.type.field(part).type)
        structs = pa.StructArray.from_arrays(list(parts.values()), list(parts))
        place = file.table.schema.get_field_index(name)
        again = pa.ListArray.from_arrays(lists.offsets, structs)
        return replace(file, table=file.table.set_column(place, name, again))

    return changed(make)


def geo(change: Callable[[dict[str, Any]], Any], of: str = "plane") -> Maker:
    def make(file: Opened) -> Opened:
        found = json.loads(file.others[GEO])
        found = change(found) or found
        return replace(file, others={**file.others, GEO: json.dumps(found).encode()})

    return changed(make, of)


def _set(place: list[Any], name: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(found: Any) -> None:
        for step in place:
            found = found[step]
        found[name] = value

    return change


def _packed_zeros(size: int) -> bytes:
    """As zlib packs them, of a block that is packed once: to pack gigabytes takes seconds."""
    packing = zlib.compressobj(9)
    start = packing.compress(b"\0" * 2**20) + packing.flush(zlib.Z_FULL_FLUSH)
    block = packing.compress(b"\0" * 2**20) + packing.flush(zlib.Z_FULL_FLUSH)
    last = zlib.compressobj(9).flush()[2:-4]  # an empty block that ends the stream
    checksum = (size % 65521 << 16) + 1  # Adler-32 of zeros
    return start + block * ((size >> 20) - 1) + last + checksum.to_bytes(4, "big")


def _bomb(size: int) -> Maker:
    """A strategy of HDMM that unpacks to gigabytes."""

    def change(file: Opened) -> Opened:
        facts = file.header["facts"]
        cells, total, _ = facts["strategies"][0].split(":")
        told = base64.b64encode(_packed_zeros(size)).decode()
        strategies = [f"{cells}:{total}:{told}", *facts["strategies"][1:]]
        return file.with_header(facts={**facts, "strategies": strategies})

    return changed(change, "metres")


def _lists(number: int, entries: int) -> Maker:
    """Columns that no release has, in which a few kilobytes stand for gigabytes."""

    def change(file: Opened) -> Opened:
        table = file.table
        lists = [[0] * entries] + [[]] * (len(table) - 1)
        for place in range(number):
            table = table.append_column(f"more{place}", pa.array(lists, pa.list_(pa.int64())))
        return replace(file, table=table)

    return changed(change)


def _long_list(name: str, entries: int, **options: Any) -> Maker:
    """A known column with very many entries, all alike."""

    def make(seeds: dict[str, Path], path: Path) -> Path:
        file = Opened.read(seeds["plane"])
        lists = file.table[name].combine_chunks()
        offsets = np.full(len(lists) + 1, entries, dtype=np.int32)
        offsets[0] = 0
        zeros = pa.array(np.zeros(entries, dtype=np.int64))
        kind = lists.type.value_type
        structs = pa.StructArray.from_arrays([zeros] * kind.num_fields, [one.name for one in kind])
        place = file.table.schema.get_field_index(name)
        again = pa.ListArray.from_arrays(pa.array(offsets), structs)
        return replace(file, table=file.table.set_column(place, name, again)).write(path, **options)

    return make


def _long_outlines(size: int, **options: Any) -> Maker:
    """Outlines of many bytes, all alike, so that a file holds one of them."""

    def make(seeds: dict[str, Path], path: Path) -> Path:
        file = Opened.read(seeds["plane"])
        return file.with_column("geometry", [b"\0" * size] * len(file.table)).write(path, **options)

    return make


def _axes(number: int) -> Maker:
    def make(_: dict[str, Path], path: Path) -> Path:
        file = Opened.of(_one_box(Domain((Axis("x", 0, 2, 2), Axis("y", 0, 2, 2)))))
        axes = [{"name": f"a{one}", "low": 0.0, "high": 2.0, "cells": 2} for one in range(number)]
        table = file.table.drop_columns(["x_low", "x_high", "y_low", "y_high"])
        kept = {name: table[name] for name in table.column_names}
        edges = {
            f"a{one}_{side}": pa.array([value])
            for one in range(number)
            for side, value in (("low", 0.0), ("high", 2.0))
        }
        ends = {
            f"a{one}_{side}": v for one in range(number) for side, v in (("low", 0), ("high", 2))
        }
        kept["regions"] = pa.array([[{"id": 0, "parent": -1, **ends}]])
        order = ["geometry", "count", "std_error", "noise_scale"]
        columns = {name: kept.pop(name) for name in order} | edges | kept
        made = replace(file, table=pa.table(columns))
        return made.with_header(domain={"axes": axes, "crs": None}).sealed().write(path)

    return make


def _one_box(domain: Domain) -> Release:
    return publish(
        FrequencyMatrix.from_cells(domain, np.zeros((2, 5), int)), 1, "uniform", noise="seeded:1"
    )


def chain(regions: int, lines: int = 1) -> Release:
    """A release whose regions lie in one another, as deep as there are regions, with many lines."""
    steps = np.arange(1, regions + 1)
    parent = np.concatenate([[-1], np.repeat(np.concatenate([[0], 2 * steps[:-1]]), 2)])
    domain = Domain((Axis("x", 0.0, regions + 1.0, regions + 1),))
    low = np.zeros((2 * regions + 1, 1), dtype=np.int64)
    high = np.full((2 * regions + 1, 1), regions + 1, dtype=np.int64)
    high[1::2, 0], low[1::2, 0], low[2::2, 0] = steps, steps - 1, steps
    deepest, tree_module.MOST_LAYERS = tree_module.MOST_LAYERS, 2**62
    try:
        tree = RegionTree.from_arrays(domain.shape, parent, low, high)
    finally:
        tree_module.MOST_LAYERS = deepest
    leaves = np.append(np.arange(1, 2 * regions, 2), 2 * regions)
    few, price = leaves[: max(lines, 1)], 10**6
    rows = np.resize(few, lines)
    table = MeasurementTable(
        line=np.arange(lines), kind=np.zeros(lines, np.int64), region=rows,
        axis=np.full(lines, -1), cut=np.full(lines, -1),
        epsilon=np.full(lines, price), value=np.zeros(lines, np.int64),
    )  # fmt: skip
    plain = _one_box(Domain((Axis("x", 0, 2, 2), Axis("y", 0, 2, 2))))
    first, spent = plain.ledger[0], Epsilon(price)
    ledger = tuple(
        replace(first, answers=1, smallest_epsilon=spent, largest_epsilon=spent, spent_after=spent)
        for _ in range(lines)
    )
    return Release(
        domain=domain, epsilon=plain.epsilon, mechanism="singular", parameters={}, facts={},
        estimator="last-count", noise=plain.noise, private=False, tree=tree, leaves=leaves,
        estimates=np.zeros(len(leaves)), scales=np.ones(len(leaves)), measurements=table, ledger=ledger,
    )  # fmt: skip


def wide(regions: int, lines: int) -> Release:
    """As many regions as fit a small file, cut in one go, with many lines."""
    deep = chain(1, lines)
    domain = Domain((Axis("x", 0.0, float(regions), regions),))
    tree = RegionTree(domain.shape)
    cuts = np.arange(1, regions)
    leaves = tree.cut(np.array([0]), np.array([0]), cuts, np.array([len(cuts)]))
    flat = np.zeros(len(leaves))
    return replace(deep, domain=domain, tree=tree, leaves=leaves, estimates=flat, scales=flat + 1)


def _full_grid(axes: int, cells: int) -> Release:
    domain = Domain(tuple(Axis(f"a{one}", 0.0, float(cells), cells) for one in range(axes)))
    records = np.random.default_rng(1).integers(0, cells, (axes, 200_000))
    return publish(FrequencyMatrix.from_cells(domain, records), 50, "ug", noise="seeded:1")


def _of(make: Callable[[], Release]) -> Maker:
    return lambda _, path: Opened.of(make()).write(path)


def _huge_grid(seeds: dict[str, Path], path: Path) -> Path:
    """The boxes of a small release on a grid of 2**60 cells, with counts that ask for the finest parts."""
    file = Opened.read(seeds["plane"])
    times = 2**26
    axes = [{**one, "cells": one["cells"] * times} for one in file.header["domain"]["axes"]]
    regions = file.table["regions"].to_pylist()
    for region in (one for some in regions for one in some):
        for name in ("x_low", "x_high", "y_low", "y_high"):
            region[name] *= times
    kind = file.table.schema.field("regions").type
    made = file.with_column("regions", pa.array(regions, kind)).with_column(
        "count", np.full(len(file.table), 1e15)
    )
    return made.with_header(domain={**file.header["domain"], "axes": axes}).sealed().write(path)


def _total(value: float) -> Maker:
    return column("count", lambda counts: np.full(len(counts), value / len(counts)))


def _flip_in_footer(word: bytes) -> Maker:
    """One bit of a column's name, so that it is no text any more."""

    def make(seeds: dict[str, Path], path: Path) -> Path:
        content = bytearray(seeds["plane"].read_bytes())
        content[content.rindex(word)] ^= 0x80
        path.write_bytes(content)
        return path

    return make


def _row_groups(seeds: dict[str, Path], path: Path) -> Path:
    """Thousands of groups without a row."""
    file = Opened.read(seeds["plane"])
    metadata = {**file.others, HTF: json.dumps(file.header).encode()}
    table = file.table.replace_schema_metadata(metadata)
    with pq.ParquetWriter(path, table.schema, **OPTIONS) as writer:
        for _ in range(400):
            writer.write_table(table.slice(0, 0))
        writer.write_table(table)
    return path


def _metadata_key(seeds: dict[str, Path], path: Path) -> Path:
    file = Opened.read(seeds["plane"])
    return replace(file, others={**file.others, b"licence": b"all yours"}).write(path)


def _long_metadata(seeds: dict[str, Path], path: Path) -> Path:
    file = Opened.read(seeds["plane"])
    return replace(file, others={**file.others, b"x": b"y" * 2**23}).write(path)


def _rotated(file: Opened) -> Opened:
    """The same rows in another order, which the header does not know of."""
    return replace(file, table=pa.concat_tables([file.table.slice(3), file.table.slice(0, 3)]))


def _without_a_digest(file: Opened) -> Opened:
    file = file.with_column("std_error", 0 * file.table["std_error"].to_numpy())
    rest = {name: value for name, value in file.header.items() if name != "columns_digest"}
    return replace(file, header=rest)


def _reversed_outlines(outlines: Any) -> list[bytes]:
    """Every ring the other way round."""
    found = []
    for outline in outlines:
        points = [outline[13 + 16 * one : 29 + 16 * one] for one in range(5)]
        found.append(outline[:13] + b"".join(reversed(points)))
    return found


def _nested(depth: int) -> str:
    return "[" * depth + "]" * depth


USUAL = Protection().to_dict()
ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"

# What was published, changed: above all the columns and metadata that GIS tools read.
DOCTORED = (
    Hostile("geometry: rings reversed", column("geometry", _reversed_outlines)),
    Hostile("geometry: outlines in another order", column("geometry", lambda g: g[::-1].tolist())),
    Hostile("std_error: zero", column("std_error", lambda v: 0 * v)),
    Hostile("std_error: a tenth", column("std_error", lambda v: v / 10)),
    Hostile("std_error: zero, without a digest", changed(_without_a_digest)),
    Hostile("x_low: moved", column("x_low", lambda v: v + 0.001)),
    Hostile("x_high and x_low swapped", column("x_low", lambda v: v[::-1])),
    Hostile("y_high: one edge", column("y_high", lambda v: np.append(v[:-1], v[-1] + 1e-9))),
    Hostile("hour_low of a third axis", column("hour_low", lambda v: v + 1, "hours")),
    Hostile("x_low of one axis alone", column("x_low", lambda v: v + 1, "line")),
    Hostile("geo: another reference system", geo(_set(["columns", "geometry"], "crs", {"id": {"authority": "EPSG", "code": 3857}}))),
    Hostile("geo: no reference system", geo(_set(["columns", "geometry"], "crs", None), "metres")),
    Hostile("geo: other bounds", geo(_set(["columns", "geometry"], "bbox", [0, 0, 1, 1]))),
    Hostile("geo: another column", geo(_set([], "primary_column", "count"))),
    Hostile("geo: nested without end", geo(_set([], "columns", json.loads(_nested(60))))),
    Hostile("geo: a covering", geo(_set(["columns", "geometry"], "covering", {"bbox": {"xmin": ["count"]}}))),
    Hostile("geo: a list", geo(lambda _: [1])),
    Hostile("another key of metadata", _metadata_key),
    Hostile("regions in other rows", changed(lambda file: file.with_column("regions", file.table["regions"].to_pylist()[::-1]))),
    Hostile("measurements in other rows", changed(lambda file: file.with_column("measurements", file.table["measurements"].to_pylist()[::-1]))),
    Hostile("count: one more", column("count", lambda v: np.append(v[:-1], v[-1] + 1))),
    Hostile("count: in another order", column("count", lambda v: v[::-1])),
    Hostile("noise_scale: half", column("noise_scale", lambda v: v / 2)),
    Hostile("region: in another order", column("region", lambda v: v[::-1])),
    Hostile("rows in another order", changed(_rotated)),
)  # fmt: skip

# What no release has: every command refuses it.
HOSTILE = (
    Hostile("HDMM: strategies of 1 GB", _bomb(2**30)),
    Hostile("four unknown columns of lists", _lists(4, 5_000_000)),
    Hostile("one unknown column", _lists(1, 1)),
    Hostile("22 axes", _axes(22)),
    Hostile("9 axes", _axes(9)),
    Hostile("a chain of 100,000 regions", _of(lambda: chain(100_000))),
    Hostile("a chain of 20,000 regions", _of(lambda: chain(20_000))),
    Hostile("footer: a column name that is no text", _flip_in_footer(b"std_error")),
    Hostile("footer: the name in a list is no text", _flip_in_footer(b"x_low")),
    Hostile("footer: 8 MB of metadata", _long_metadata),
    *(
        Hostile(f"measurements: 10 million, {kind}", _long_list("measurements", 10_000_000, compression=kind))
        for kind in ("none", "snappy", "gzip", "zstd")
    ),
    Hostile("regions: 10 million", _long_list("regions", 10_000_000)),
    Hostile("regions: 5 million in pages of version 2", _long_list("regions", 5_000_000, data_page_version="2.0")),
    Hostile("regions: 5 million, as differences", _long_list("regions", 5_000_000, use_dictionary=False, column_encoding={"regions.list.element.id": "DELTA_BINARY_PACKED"})),
    Hostile("regions: 5 million in small pages", _long_list("regions", 5_000_000, data_page_size=64)),
    *(
        Hostile(f"outlines of 4 MB, {kind}", _long_outlines(4 * 2**20, compression=kind))
        for kind in ("snappy", "gzip", "zstd", "brotli")
    ),
    Hostile("outlines of 4 MB, each in its row", _long_outlines(4 * 2**20, use_dictionary=False)),
    Hostile("outlines of 94 bytes", _long_outlines(94)),
    Hostile("header: nested 100,000 deep", text('"facts": {', f'"facts": {{"a": {_nested(100_000)}, ')),
    Hostile("header: nested 100 deep", text('"facts": {', f'"facts": {{"a": {_nested(100)}, ')),
    Hostile("header: 2 MB", text('"facts": {', f'"facts": {{"a": "{"x" * 2**21}", ')),
    Hostile("header: format 1e400", text(OWN_FORMAT, '"format": 1e400')),
    Hostile("header: format NaN", text(OWN_FORMAT, '"format": NaN')),
    Hostile("header: its format with a point", text(OWN_FORMAT, f"{OWN_FORMAT}.0")),
    Hostile("header: format of 5,000 digits", text(OWN_FORMAT, f'"format": {"9" * 5000}')),
    Hostile("header: a number of 5,000 digits", text('"facts": {', f'"facts": {{"a": {"9" * 5000}, ')),
    Hostile("header: half of a character", text('"facts": {', '"facts": {"a": "\\ud800", ')),
    Hostile("header: half of a character in a name", text('"facts": {', '"facts": {"\\udfff": 1, ')),
    Hostile("header: a list", lambda seeds, path: Opened.read(seeds["plane"]).write(path, "[]")),
    Hostile("header: no text", lambda seeds, path: Opened.read(seeds["plane"]).write(path, "\ud800")),
    Hostile("header: unknown entry", header(more=1)),
    Hostile("epsilon: 1e1000000000", header(epsilon="1e1000000000")),
    Hostile("epsilon: 9 to the billion", header(epsilon="9" * 900)),
    Hostile("epsilon: a number", header(epsilon=0.5)),
    Hostile("epsilon: Arabic digits", header(epsilon="٠.٥")),
    Hostile("epsilon: 0", header(epsilon="0")),
    Hostile("epsilon of a line: 1e1000000000", line(largest_epsilon="1e1000000000")),
    Hostile("spent of a line: 1e1000000000", line(spent_after="1e1000000000")),
    Hostile("answers of a line: 1e400", line(answers=float("inf"))),
    Hostile("sensitivity of a line: 2**100", line(sensitivity=2**100)),
    Hostile("label of a line: 1 MB", line(label="x" * 900_000)),
    Hostile("ledger: 2,000 lines", changed(lambda file: file.with_header(ledger=file.header["ledger"][:1] * 2000))),
    Hostile("ledger: an object", header(ledger={})),
    Hostile("parameters: a list", header(parameters=[])),
    Hostile("parameters: a text", header(parameters="x")),
    Hostile("facts: a list", header(facts=[1])),
    Hostile("facts: null", header(facts=None)),
    Hostile("mechanism: a list", header(mechanism=["htf"])),
    Hostile("mechanism: null", header(mechanism=None)),
    Hostile("estimator: an object", header(estimator={})),
    Hostile("noise: a number", header(noise=1)),
    Hostile("private: 1", header(private=1)),
    Hostile("statement: an object", header(statement={}, seal=False)),
    Hostile("software: a list", header(software=[])),
    Hostile("digest: texts of another length", header(digest=["", ""], seal=False)),
    Hostile("domain: a list", header(domain=[])),
    Hostile("domain: no axes", header(domain={"axes": [], "crs": None})),
    Hostile("reference system: unknown", domain(crs="EPSG:999999")),
    Hostile("reference system: a number", domain(crs=4326)),
    Hostile("reference system: 100 kB", domain(crs="x" * 100_000)),
    Hostile("axis: 1e308 wide", axis(low=-1.7e308, high=1.7e308)),
    Hostile("axis: NaN", axis(low=float("nan"))),
    Hostile("axis: 2**31 cells", axis(cells=2**31)),
    Hostile("axis: half a cell", axis(cells=16.5)),
    Hostile("axis: another name", axis(name="x\x1b[2J")),
    Hostile("prior: said, and not there", header(prior={"name": "p", "sha256": "", "cells": [4, 4]})),
    Hostile("prior: 2**40 cells", header(prior={"name": "p", "sha256": "", "cells": [2**20, 2**20]})),
    Hostile("protection: 10**12 records", header(protection={**USUAL, "unit": "person", "max_records": 10**12})),
    Hostile("activity: of nobody, for nothing", header(activity={"people": [0] * 11, "most": 2**13, "epsilon": "0", "noise": "", "private": True, "decides": False, "per": None})),
    Hostile("activity: 10 marks", header(activity={"people": [1] * 10, "most": 2**13, "epsilon": "0.1", "noise": "", "private": True, "decides": False, "per": None})),
    Hostile("activity: 2**62 people at each mark", header(factor=2.0, activity={"people": [2**62] * 11, "most": 2**13, "epsilon": "0.1", "noise": "", "private": True, "decides": False, "per": None})),
    Hostile("weight: of people, but protecting records", header(protection={**USUAL, "unit": "record", "max_records": 1, "count": "people", "shares": 256, "weight": "w", "max_weight": 2})),
    Hostile("weight: a limit without a column", header(protection={**USUAL, "unit": "record", "max_records": 1, "max_weight": 2})),
    Hostile("weight: a name that moves the cursor", header(protection={**USUAL, "unit": "record", "max_records": 1, "weight": "x\x1b[2J", "max_weight": 2})),
    Hostile("weight: a name of 20 kB", header(protection={**USUAL, "unit": "record", "max_records": 1, "weight": "w" * 20_000, "max_weight": 2})),
    Hostile("weight: up to 2**62", header(protection={**USUAL, "unit": "record", "max_records": 1, "weight": "w", "max_weight": 2**62})),
    Hostile("weight: 2**20 of 2**20 records", header(protection={**USUAL, "unit": "person", "max_records": 2**20, "weight": "w", "max_weight": 2**20})),
    Hostile("clipped: without a weight", header(clipped={"within": 1, "above": 1, "protection": {**USUAL, "unit": "record", "max_records": 1}, "epsilon": "0.1", "noise": "", "private": True})),
    Hostile("clipped: of another weight", header(clipped={"within": 1, "above": 1, "protection": {**USUAL, "unit": "record", "max_records": 1, "weight": "w", "max_weight": 2}, "epsilon": "0.1", "noise": "", "private": True})),
    Hostile("clipped: 2**70 records", header(clipped={"within": 2**70, "above": 1, "protection": {**USUAL, "unit": "record", "max_records": 1, "weight": "w", "max_weight": 2}, "epsilon": "0.1", "noise": "", "private": True})),
    Hostile("clipped: for nothing", header(clipped={"within": 1, "above": 1, "protection": {**USUAL, "unit": "record", "max_records": 1, "weight": "w", "max_weight": 2}, "epsilon": "0", "noise": "", "private": True})),
    Hostile("factor: 1e308, without an activity", header(factor=1e308)),
    Hostile("factor: NaN", header(factor=float("nan"))),
    Hostile("noise_scale: 1e154", column("noise_scale", lambda v: np.full(len(v), 1e154))),
    Hostile("noise_scale: NaN", column("noise_scale", lambda v: np.full(len(v), np.nan))),
    Hostile("noise_scale: negative", column("noise_scale", lambda v: -v)),
    Hostile("count: infinite", column("count", lambda v: np.full(len(v), np.inf))),
    Hostile("count: 1e300", column("count", lambda v: np.full(len(v), 1e300))),
    Hostile("count: whole numbers", column("count", lambda v: v.astype(np.int64))),
    Hostile("count: missing values", changed(lambda file: file.with_column("count", [None] * len(file.table)))),
    Hostile("region: negative", column("region", lambda v: v - 3)),
    Hostile("region: twice the same", column("region", lambda v: np.full(len(v), v[0]))),
    Hostile("regions: negative parents", inner("regions", "parent", lambda v: np.where(v == 0, -1, v))),
    Hostile("regions: negative numbers", inner("regions", "id", lambda v: -v)),
    Hostile("regions: their own parents", inner("regions", "parent", lambda v: np.arange(len(v)))),
    Hostile("regions: edges of 2**62", inner("regions", "x_high", lambda v: v + 2**62)),
    Hostile("measurements: a region that is not there", inner("measurements", "region", lambda v: v + 10**6)),
    Hostile("measurements: a negative region", inner("measurements", "region", lambda v: v - 10)),
    Hostile("measurements: an unknown kind", inner("measurements", "kind", lambda v: v + 100)),
    Hostile("measurements: a line beyond the ledger", inner("measurements", "line", lambda v: v + 10**9)),
    Hostile("measurements: epsilons of 2**62", inner("measurements", "epsilon", lambda v: 0 * v + 2**62)),
    Hostile("measurements: values of 2**63", inner("measurements", "value", lambda v: np.full(len(v), -(2**63)))),
    Hostile("no rows", changed(lambda file: replace(file, table=file.table.slice(0, 0)))),
    Hostile("columns in another order", changed(lambda file: replace(file, table=file.table.select(file.table.column_names[::-1])))),
)  # fmt: skip

# What could be a release, as far as can be told without computing it again: `htf verify` refuses it.
UNFOUNDED = (
    Hostile("HDMM: strategies of 600 MB in 600 kB", _bomb(600 * 2**20)),
    Hostile("a total of 1e18", _total(1e18)),
    Hostile("a chain of 4,000 regions with 1,000 lines", _of(lambda: chain(4000, 1000))),
    Hostile("reference system: of another kind", domain(crs="EPSG:5703")),
    Hostile("mechanism: escape codes", header(mechanism=ESCAPE)),
    Hostile("estimator: escape codes", header(estimator=ESCAPE)),
    Hostile("label of a line: escape codes", line(label=ESCAPE, kind=ESCAPE)),
    Hostile("2**30 cells a side", _huge_grid),
)  # fmt: skip

# What changes nothing that is published. It may only not harm whoever looks.
ODD = (
    Hostile("8 axes", _axes(8)),
    Hostile("8 axes and 65,536 boxes", _of(lambda: _full_grid(8, 4))),
    Hostile("400 empty groups of rows", _row_groups),
    Hostile("facts: escape codes", header(facts={ESCAPE: ESCAPE})),
    Hostile("parameters: escape codes", header(parameters={ESCAPE: [ESCAPE]})),
    Hostile("software and noise: escape codes", header(software=ESCAPE, noise=ESCAPE)),
    Hostile("parameters: of the wrong kind", header(parameters={"most_cells": "many"})),
    Hostile("parameters: 200,000 of them", header(parameters={str(one): 0 for one in range(90_000)})),
)  # fmt: skip
