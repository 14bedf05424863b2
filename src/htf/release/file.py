"""The file of a release: GeoParquet 1.1, one row for each leaf.

GIS tools open it as polygons with a `count`. The regions of the tree and the raw measurements are stored
in two list columns, with some of them in each row, so that the file stays one flat table whose `count`
adds up. A prior, if there is one, is stored in the same way, and so is a layer of zones
(htf.release.named_columns). The rest is JSON under the key `htf` of the file's metadata, with a digest of everything.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from htf.errors import HtfError, InputError, MissingExtraError, OutputError, ReleaseFileError
from htf.estimation.background import Background
from htf.estimation.noise_law import noise_deviations
from htf.estimation.prior import Prior
from htf.files import Budget, is_file, write_whole
from htf.frame.axis import MOST_CELLS_PER_AXIS
from htf.frame.crs import CRS84, check_crs, to_projjson
from htf.frame.domain import Domain, IntArray
from htf.frame.ground import ground_of
from htf.frame.nesting import Nesting
from htf.frame.tree import RegionTree
from htf.privacy.epsilon import LARGEST_EPSILON, UNITS_PER_EPSILON, Epsilon
from htf.privacy.ledger import LedgerLine
from htf.privacy.protection import OF_RECORDS, Protection
from htf.privacy.purchases import MEASURED, Bought
from htf.privacy.statement import WORDING
from htf.privacy.zones_bought import ZonesBought
from htf.release.header import (
    FORMAT,
    LONGEST_ENTRY,
    LONGEST_HEADER,
    MOST_LINES,
    OtherFormatError,
    read_header,
    read_json,
)
from htf.release.kinds import KINDS
from htf.release.named_columns import (
    ZONES,
    content_of_zones,
    label_columns,
    spread,
    with_outlines,
    zone_lists,
    zone_type,
)
from htf.release.parquet_pages import PageError, column_size
from htf.release.release import MeasurementTable, Release

KEY, GEO = b"htf", b"geo"
NO_LINE = MOST_LINES  # of the ledger: after all of them
BACKGROUND = "background"  # the column, and the member of the header, of what earlier releases of a series count
# The fields of a release that the header has under their own names.
AS_THEY_ARE = ("mechanism", "parameters", "facts", "estimator", "noise", "private")
# The header of a map inside zones, and the column that has their file.
INSIDE, INNER = "inside_zones", "inner"
LONGEST_FOOTER = 4 * LONGEST_HEADER  # bytes; pyarrow writes the header twice
# What the columns may come to in memory: a release of any size is below 30 times its file.
SMALL, MOST_TIMES = 2**26, 128  # bytes; times the size of the file
BYTES_OF_A_VALUE = 12  # with its place in a list
OUTLINE = 93  # bytes of a rectangle
# Bytes: what is larger, glibc gives back to the system at once, whatever was freed before.
MOST_KEPT = 2**25 - 2**13
SUFFIXES = (".parquet", ".geoparquet", ".pq")


def save(
    release: Release, path: Path, *, overwrite: bool = False, budget: Budget | None = None
) -> None:
    """Write the file, whole or not at all. `budget` knows which older release may be written over."""
    check_release_name(path)
    table = _to_table(release)

    def write(unfinished: Path) -> None:
        # Of a file that it opened itself pyarrow prints a traceback where the disk stays full.
        with pa.OSFile(str(unfinished), "wb") as sink:
            _write(table, sink)

    write_whole(path, write, overwrite=overwrite, by_release=True, budget=budget)


def _write(table: pa.Table, sink: pa.NativeFile) -> None:
    # Texts and outlines may be long: a list of different ones would only be in the way of reading them.
    short = [name for name, kind in _stored_columns(table.schema) if not _is_long(kind)]
    options = {"compression": "zstd", "write_page_checksum": True, "use_dictionary": short}
    pq.write_table(table, sink, write_statistics=short, **options)


def check_release_name(path: Path) -> None:
    """Refuse an ending that promises another format."""
    if path.suffix.lower() not in SUFFIXES and not os.path.isdir(path):
        raise OutputError(
            f"a release is a Parquet file: the name must end in {', '.join(SUFFIXES)}, got {path.name!r}"
        )


def load(path: Path) -> Release:
    """Read a release, and refuse a file that is damaged, foreign, changed or from the future."""
    _keep_memory()
    return read(path).release


def _keep_memory() -> None:
    """Have the C library keep what arrays leave free, in large pages. It keeps as much as was freed at once so far, and
    NumPy asks for large pages for what is large. Page by page, memory takes a fifth of the time of a first answer."""
    np.empty(MOST_KEPT, np.uint8)
    _ = np.empty(MOST_KEPT - 2**13, np.uint8), np.empty(MOST_KEPT - 2**21, np.uint8)


@dataclass(frozen=True)
class Contents:
    """A release and its stored file, which `htf verify` compares."""

    release: Release
    header: dict[str, Any]
    columns: pa.Table
    metadata: dict[bytes, bytes]


def read(path: Path) -> Contents:
    """A release with its file."""
    return _read(_opened(path), path)


def _read(opened: AbstractContextManager[_File], path: Path) -> Contents:
    with opened as file:
        metadata = file.metadata
        if KEY not in metadata:
            raise ReleaseFileError(f"{path} is a Parquet file, but not a release of htf")
        with _said_of(path):
            header = read_header(metadata[KEY], path)
            domain = Domain.from_dict(header["domain"])
            _check_known_crs(domain.crs)
            names = _check_columns(file, header, domain)
            packed = _check_sizes(file, names)
        table = file.read(names, packed)
    with _said_of(path):
        if domain.outlined:
            domain = with_outlines(domain, _flat(table[ZONES]))
        else:
            table = _plain_outlines(table)
        zones = None
        if INSIDE in header:
            content = b"".join(table[INNER].to_pylist())
            zones = _read(_opened(path, content), path).release
        release = _from_table(table, header, domain, zones)
        found, geo = digests(release), metadata.get(GEO)
        drawn = _digest_of_columns(table, geo, domain)
    if (header["digest"], header["columns_digest"]) != (found, drawn):
        raise ReleaseFileError(
            f"{path} was changed after it was written: its digest does not match"
        )
    return Contents(release, header, table, metadata)


@contextmanager
def _said_of(path: Path) -> Iterator[None]:
    """What is wrong with the content of a file, with its name. The types of the header and of the columns
    are checked before anything is made of them; the longer list is a net for what that forgets."""
    try:
        yield
    except OtherFormatError:
        raise
    except HtfError as error:
        raise ReleaseFileError(f"{path} is damaged: {error}") from None
    except PageError as error:
        raise ReleaseFileError(f"{path} is damaged: it has {error}") from None
    except MemoryError:
        raise ReleaseFileError(f"{path} does not fit into memory") from None
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
        raise ReleaseFileError(f"{path} is damaged") from None


def is_release(path: Path) -> bool:
    """Whether the file claims to be a release; `load` finds out whether it is a valid one."""
    try:
        return KEY in _read_metadata(path)
    except ReleaseFileError:
        return False


def charged_entry(path: Path) -> str | None:
    """The entry of a budget file to which the release in this file was charged; None if there is no
    such release.

    It reads only this field of the header, so that it works for newer formats too. A damaged file is no
    error, because any file that is about to be overwritten is checked.
    """
    try:
        header = read_json(_read_metadata(path).get(KEY, b"null"))
    except ReleaseFileError:
        return None
    found = header.get("budget_entry") if isinstance(header, dict) else None
    return found[:LONGEST_ENTRY] if isinstance(found, str) else None


def is_worded_here(header: dict[str, Any]) -> bool:
    """Whether this code worded the privacy statement."""
    return bool(header["software"] == _software())


@dataclass(frozen=True)
class _File:
    """An open Parquet file: its bytes, and pyarrow's view of them."""

    source: pa.NativeFile
    reader: pq.ParquetFile

    @property
    def metadata(self) -> dict[bytes, bytes]:
        return self.reader.schema_arrow.metadata or {}

    def read(self, names: list[str], packed: list[str]) -> pa.Table:
        """These columns, whose size was checked. Those that are packed stay so for now."""
        reader = self.reader
        if packed:
            options = {"page_checksum_verification": True, "read_dictionary": packed}
            reader = pq.ParquetFile(self.source, **options)
        return reader.read(columns=names, use_threads=False)  # threads cost more than they save


@contextmanager
def _opened(path: Path, content: bytes | None = None) -> Iterator[_File]:
    """A Parquet file, or the one whose content is stored in it. Whatever goes wrong while it is read is about the file: a single bit may make
    pyarrow raise nearly anything, such as a UnicodeDecodeError for the name of a column."""
    if not is_file(path):
        raise ReleaseFileError(f"there is no file {path}")
    try:
        with pa.OSFile(str(path)) if content is None else pa.BufferReader(content) as source:
            _check_footer(source)
            yield _File(source, pq.ParquetFile(source, page_checksum_verification=True))
    except HtfError:
        raise
    except PermissionError:
        raise ReleaseFileError(f"{path} cannot be read: permission denied") from None
    except MemoryError:
        raise ReleaseFileError(f"{path} does not fit into memory") from None
    except Exception:
        raise ReleaseFileError(f"{path} is not a sound Parquet file: damaged or foreign") from None


def _check_footer(source: pa.NativeFile) -> None:
    """Refuse a footer that no release has, before pyarrow makes objects of all that it lists."""
    size = source.size()
    if size < 12 or int.from_bytes(source.read_at(4, size - 8), "little") > LONGEST_FOOTER:
        raise ValueError("no footer of a release")


def _read_metadata(path: Path) -> dict[bytes, bytes]:
    with _opened(path) as file:
        return file.metadata


def _check_columns(file: _File, header: dict[str, Any], domain: Domain) -> list[str]:
    """The names of the columns, which must be those of a release, with their types, and no others."""
    found = file.reader.schema_arrow
    wanted = _schema(domain, "priors" in header, INSIDE in header, BACKGROUND in header)
    for name in found.names:
        if name not in wanted.names:
            raise ReleaseFileError(f"it has a column {name!r:.100}, which no release has")
    if found.names != wanted.names:
        raise ReleaseFileError("its columns are not those of a release")
    for name, had, needed in zip(wanted.names, found.types, wanted.types, strict=True):
        if not _same_type(had, needed):
            raise ReleaseFileError(f"its column {name!r} is of the type {had!s:.100}, not {needed}")
    return list(wanted.names)


def _schema(domain: Domain, with_prior: bool, with_inner: bool, with_background: bool) -> pa.Schema:
    """The columns of a release."""
    edges = [f"{name}_{side}" for name in domain.names for side in ("low", "high")]
    numbers = [*(f.name for f in fields(MeasurementTable))]
    columns = [("geometry", pa.binary())] if domain.has_shapes else []
    columns += [(name, pa.string()) for name in label_columns(domain)]
    columns += [(name, pa.float64()) for name in ("count", "std_error", "noise_scale", *edges)]
    columns += [("region", pa.int64())]
    for name, inner in (("regions", ["id", "parent", *edges]), ("measurements", ["row", *numbers])):
        columns.append((name, pa.list_(pa.struct([(one, pa.int64()) for one in inner]))))
    if with_prior:
        columns.append(("prior", pa.list_(pa.uint32())))
    if with_background:
        columns.append((BACKGROUND, pa.list_(pa.float64())))
    if domain.outlined:
        columns.append((ZONES, zone_type()))
    if with_inner:
        columns.append((INNER, pa.binary()))
    return pa.schema(columns)


def _drawn_columns(domain: Domain) -> list[str]:
    """Columns from which nothing is read: they are for other tools, and follow from the others."""
    edges = [f"{name}_{side}" for name in domain.names for side in ("low", "high")]
    geometry = ["geometry"] if domain.has_shapes else []
    return [*geometry, *label_columns(domain), "std_error", *edges]


def _stored_columns(schema: pa.Schema) -> Iterator[tuple[str, pa.DataType]]:
    """Columns as Parquet has them, where those in lists have longer names, and their types."""
    for field in schema:
        inner = field.type.value_type if pa.types.is_list(field.type) else None
        if inner is None:
            yield field.name, field.type
        elif pa.types.is_struct(inner):
            yield from ((f"{field.name}.list.element.{one.name}", one.type) for one in inner)
        else:
            yield f"{field.name}.list.element", inner


def _is_long(kind: pa.DataType) -> bool:
    """Whether it is one of texts or outlines."""
    return bool(pa.types.is_binary(kind) or pa.types.is_string(kind))


def _same_type(found: pa.DataType, wanted: pa.DataType) -> bool:
    """What the entries of a list are called depends on the version of pyarrow."""
    if pa.types.is_list(found) and pa.types.is_list(wanted):
        found, wanted = found.value_type, wanted.value_type
    return bool(found.equals(wanted))


def _check_sizes(file: _File, names: list[str]) -> list[str]:
    """Refuse columns that would come to far more in memory than a release of that size does.

    Returns those of bytes that are stored as places in a list of different ones: how long these are is
    not known yet, and a long one may be meant by every row.
    """
    footer, total, packed = file.reader.metadata, 0, set()
    most = SMALL + MOST_TIMES * file.source.size()
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        for place in range(group.num_columns):
            chunk = group.column(place)
            name = chunk.path_in_schema.split(".")[0]
            if name not in names:
                continue
            if chunk.num_values > most // BYTES_OF_A_VALUE or (
                "." not in chunk.path_in_schema and chunk.num_values != group.num_rows
            ):
                raise ReleaseFileError(f"its column {name!r} has a number of values that cannot be")
            size = column_size(file.source, chunk)
            if size.has_dictionary and chunk.physical_type == "BYTE_ARRAY":
                if name != "geometry" or ZONES in names:
                    raise ReleaseFileError(f"its column {name!r} is packed as in no release")
                packed.add(name)
            total += size.page_bytes + size.values * BYTES_OF_A_VALUE
            if total > most:
                raise ReleaseFileError(
                    f"its columns would come to more than {most:,} bytes, {MOST_TIMES} times its size"
                )
    return sorted(packed)


def _plain_outlines(table: pa.Table) -> pa.Table:
    """The table with every outline in its row, each of which must have the 93 bytes of a rectangle's."""
    if "geometry" not in table.column_names:
        return table
    chunks = []
    for chunk in table["geometry"].chunks:
        packed = pa.types.is_dictionary(chunk.type)
        outlines = chunk.dictionary if packed else chunk
        if chunk.null_count or outlines.null_count:
            raise ReleaseFileError("values are missing")
        if np.any(np.diff(_ends_of(outlines)) != OUTLINE):
            raise ReleaseFileError("its outlines are not those of boxes")
        chunks.append(chunk.dictionary_decode() if packed else chunk)
    place = table.column_names.index("geometry")
    return table.set_column(place, "geometry", pa.chunked_array(chunks, pa.binary()))


def _ends_of(outlines: pa.Array) -> NDArray[np.int32]:
    """The positions in the bytes where each value begins, and where the last one ends."""
    ends = np.frombuffer(outlines.buffers()[1], dtype=np.int32)
    return ends[outlines.offset : outlines.offset + len(outlines) + 1]


def _to_table(release: Release) -> pa.Table:
    columns = table_of_columns(release)
    made = {"format": FORMAT, "software": _software(), "statement": release.statement}
    header = {**made, **_header(release)}
    header["digest"] = digests(release)
    metadata = {}
    if release.domain.has_shapes:
        metadata[GEO] = json.dumps(geo_metadata(release.domain)).encode()
    header["columns_digest"] = _digest_of_columns(columns, metadata.get(GEO), release.domain)
    metadata[KEY] = json.dumps(header).encode()
    return columns.replace_schema_metadata(metadata)


def table_of_columns(release: Release) -> pa.Table:
    """Every column of the file."""
    domain = release.domain
    columns: dict[str, Any] = {}
    if domain.has_shapes:
        columns["geometry"] = ground_of(domain).binary(release.low, release.high)
    columns.update(_labels(release))
    columns["count"] = release.estimates
    columns["std_error"] = noise_deviations(release.scales)
    columns["noise_scale"] = release.scales
    for number, axis in enumerate(domain.axes):
        columns[f"{axis.name}_low"] = axis.from_cells(release.low[:, number])
        columns[f"{axis.name}_high"] = axis.from_cells(release.high[:, number])
    columns["region"] = release.leaves
    columns["regions"] = _region_lists(release)
    columns["measurements"] = _measurement_lists(release)
    if release.priors:
        weights = np.concatenate([prior.weights.ravel() for prior in release.priors])
        columns["prior"] = spread(release, pa.array(weights))
    if release.background is not None:
        both = np.concatenate([release.background.values, release.background.variances])
        columns[BACKGROUND] = spread(release, pa.array(both))
    if domain.outlined:
        columns[ZONES] = zone_lists(release)
    if release.zones is not None:
        columns[INNER] = _inner_pieces(release, release.zones)
    return pa.table(columns)


def _inner_pieces(release: Release, zones: Release) -> pa.Array:
    """The whole file of the zones, in pieces of about the same size, one in each row."""
    sink = pa.BufferOutputStream()
    _write(_to_table(zones), sink)
    content = sink.getvalue().to_pybytes()
    ends = (np.arange(len(release) + 1) * len(content) // len(release)).tolist()
    return pa.array([content[a:b] for a, b in pairwise(ends)], pa.binary())


def _labels(release: Release) -> dict[str, pa.Array]:
    """The names of each leaf along axes that have names, on each level."""
    found = {}
    for name, (place, level) in label_columns(release.domain).items():
        axis = release.domain.axes[place]
        texts = axis.labels(release.low[:, place], release.high[:, place], level)
        found[name] = pa.array(texts, pa.string())
    return found


def _from_table(
    table: pa.Table, header: dict[str, Any], domain: Domain, zones: Release | None = None
) -> Release:
    regions = _flat_rows(table["regions"])
    order = _order(regions.pop("id"))
    box = {
        side: np.stack([regions[f"{name}_{side}"][order] for name in domain.names], axis=1)
        for side in ("low", "high")
    }
    tree = RegionTree.from_arrays(domain.shape, regions["parent"][order], **box)
    measurements = _measurements_from(table, domain)
    tree.check_regions(measurements.region)
    _check_agreeing(tree, measurements)
    _check_looks(measurements)
    return Release(
        domain=domain,
        epsilon=Epsilon.of(header["epsilon"]),
        **{name: header[name] for name in AS_THEY_ARE},
        tree=tree,
        leaves=_numbers(table["region"].combine_chunks()),
        estimates=_numbers(table["count"].combine_chunks()),
        scales=_numbers(table["noise_scale"].combine_chunks()),
        measurements=measurements,
        ledger=tuple(LedgerLine.from_dict(line) for line in header["ledger"]),
        priors=_priors_from(table, header, domain),
        background=_background_from(table, header),
        bought=_bought_from(header, zones),
        budget_entry=header.get("budget_entry"),
        protection=Protection.from_dict(header["protection"])
        if "protection" in header
        else OF_RECORDS,
        factor=float(header.get("factor", 1.0)),
    )


def _priors_from(table: pa.Table, header: dict[str, Any], domain: Domain) -> tuple[Prior, ...]:
    """The priors, whose weights stand one after the other in one column."""
    found: list[Prior] = []
    if said := header.get("priors"):
        weights = _numbers(_flat(table["prior"]))
        ends = np.cumsum([math.prod(one["cells"]) for one in said])
        if ends[-1] != len(weights):
            raise ReleaseFileError("the weights of its priors do not fit their cells")
        for one, some in zip(said, np.split(weights, ends[:-1]), strict=True):
            found.append(Prior.from_dict(one, domain, some))
    return tuple(found)


def _background_from(table: pa.Table, header: dict[str, Any]) -> Background | None:
    """All values stand before all variances."""
    if BACKGROUND not in header:
        return None
    both = _numbers(_flat(table[BACKGROUND]))
    if len(both) % 2:
        raise ReleaseFileError("its background is incomplete")
    values, variances = np.split(both, 2)
    return Background(values, variances, header[BACKGROUND]["periods"])


def _measurements_from(table: pa.Table, domain: Domain) -> MeasurementTable:
    """The measurements in order. Places are within what they are places of, and sums fit 64 bits."""
    found = _flat_rows(table["measurements"])
    order = _order(found.pop("row"))
    ranges = {
        "line": (0, MOST_LINES - 1),
        "kind": (0, len(KINDS) - 1),
        "axis": (-1, domain.dimensions - 1),
        "cut": (-1, MOST_CELLS_PER_AXIS),
        "epsilon": (0, LARGEST_EPSILON * UNITS_PER_EPSILON),
        "value": (-(2**62), 2**62),
    }
    for name, (least, most) in ranges.items():
        if len(order) and (found[name].min() < least or found[name].max() > most):
            raise ReleaseFileError(f"its measurements have values of {name!r} that cannot be")
    return MeasurementTable(**{name: column[order] for name, column in found.items()})


def _check_agreeing(tree: RegionTree, measurements: MeasurementTable) -> None:
    """Counts that were drawn together are of regions that make up each other."""
    table = measurements.of_kind("agreeing")
    for line in sorted(set(table.line.tolist())):
        regions = table.region[table.line == line]
        try:
            Nesting.of(tree, regions)
        except InputError as error:
            raise ReleaseFileError(f"its measurements cannot be: {error}") from None


def _check_looks(measurements: MeasurementTable) -> None:
    """A region is looked at before its count is refined, once each."""
    looks, refined = measurements.of_kind("look"), measurements.of_kind("refined")
    size = measurements.region.max(initial=0) + 1
    looked = np.full(size, NO_LINE)
    looked[looks.region] = looks.line
    once = all(np.bincount(one.region).max(initial=0) <= 1 for one in (looks, refined))
    if not (once and np.all(looked[refined.region] < refined.line)):
        raise ReleaseFileError(
            "its measurements cannot be: a count was refined of what was not looked at once"
        )


def _order(numbers: IntArray) -> IntArray:
    """The permutation that sorts rows numbered from 0 on."""
    order = np.full(len(numbers), -1)
    if len(numbers) and numbers.min() >= 0 and numbers.max() < len(numbers):
        order[numbers] = np.arange(len(numbers))
    if np.any(order < 0):
        raise ReleaseFileError("regions or measurements are missing")
    return order


def _bought_from(header: dict[str, Any], zones: Release | None) -> tuple[Bought, ...]:
    """What the header lists beside the map, and the zones that the file holds."""
    found = [kind.from_dict(header[kind.kind]) for kind in MEASURED if kind.kind in header]
    return (*found, *(() if zones is None else (ZonesBought(zones),)))


def _header(release: Release) -> dict[str, Any]:
    """What is not said of every release is written where there is something to say."""
    header: dict[str, Any] = {
        "domain": release.domain.to_dict(),
        "epsilon": str(release.epsilon),
        **{name: getattr(release, name) for name in AS_THEY_ARE},
        "ledger": [line.to_dict() for line in release.ledger],
    }
    if release.priors:
        header["priors"] = [prior.to_dict() for prior in release.priors]
    if release.background is not None:
        header[BACKGROUND] = {"periods": release.background.periods}
    if release.protection != OF_RECORDS:
        header["protection"] = release.protection.to_dict()
    if release.activity is not None:
        header["factor"] = release.factor
    if release.zones is not None:
        header[INSIDE] = digests(release.zones)
    measured = [one for one in release.bought if isinstance(one, MEASURED)]
    header.update({one.kind: one.to_dict() for one in measured})
    if release.budget_entry is not None:
        header["budget_entry"] = release.budget_entry
    return header


def _software() -> str:
    from importlib.metadata import version  # slow to load

    return f"htf-dp {version('htf-dp')}, wording {WORDING}"


def digests(release: Release) -> list[str]:
    """SHA-256 of what the header says, whatever version wrote it, and of the rows, as the file has them."""
    said = json.dumps(_header(release), sort_keys=True)
    return [hashlib.sha256(said.encode()).hexdigest(), _digest_of_rows(release)]


def _digest_of_rows(release: Release) -> str:
    tree, digest = release.tree, hashlib.sha256()
    arrays = [tree.parent, tree.low, tree.high, release.leaves, release.estimates, release.scales]
    priors = [prior.weights for prior in release.priors]
    known = release.background
    background = [] if known is None else [known.values, known.variances]
    for array in [*arrays, *release.measurements.columns().values(), *priors, *background]:
        digest.update(np.ascontiguousarray(array).data)
    for content in content_of_zones(release.domain):
        digest.update(content)
    return digest.hexdigest()


def _digest_of_columns(table: pa.Table, geo: bytes | None, domain: Domain) -> str:
    """SHA-256 of what `_digest_of_rows` leaves out, as the file has it: the columns that other tools draw
    and what they are told of them, and which row carries which region and measurement."""
    digest = hashlib.sha256(geo or b"")
    for name in _drawn_columns(domain):
        for chunk in table[name].chunks:
            if name != "geometry" or domain.outlined:  # else outlines have the same length
                digest.update(_lengths(chunk))
            digest.update(_stored_bytes(chunk))
    if INNER in table.column_names:
        for chunk in table[INNER].chunks:
            digest.update(_lengths(chunk))
    for name in ("regions", "measurements"):
        chunks = table[name].chunks
        for chunk in chunks:
            digest.update(np.diff(_numbers(chunk.offsets)))
        for chunk in chunks:
            digest.update(_numbers(_entries(chunk).field(0)))
    return digest.hexdigest()


def _lengths(chunk: pa.Array) -> bytes:
    """Those of texts and outlines, without which it would not be clear where one ends."""
    return np.diff(_ends_of(chunk)).tobytes() if _is_long(chunk.type) else b""


def _stored_bytes(chunk: pa.Array) -> Any:
    """Numbers, or texts or outlines one after the other."""
    if not _is_long(chunk.type):
        return _numbers(chunk)
    if chunk.null_count:
        raise ReleaseFileError("values are missing")
    ends = _ends_of(chunk)
    return memoryview(chunk.buffers()[2])[int(ends[0]) : int(ends[-1])]


def _region_lists(release: Release) -> pa.Array:
    tree = release.tree
    columns = {"id": np.arange(len(tree)), "parent": tree.parent}
    for number, name in enumerate(release.domain.names):
        columns[f"{name}_low"], columns[f"{name}_high"] = tree.low[:, number], tree.high[:, number]
    return _lists(release, columns["id"], columns)


def _measurement_lists(release: Release) -> pa.Array:
    table = release.measurements
    columns = {"row": np.arange(len(table)), **table.columns()}
    return _lists(release, table.region, columns)


def _lists(release: Release, regions: IntArray, columns: dict[str, IntArray]) -> pa.Array:
    """One list of structs for each leaf: those about the leaf, or about a region that ends before
    the next one. Which row carries which struct is only a matter of storage."""
    ranks = release.tree.preorder()
    rows = np.searchsorted(ranks[release.leaves], ranks[regions])
    rows = np.minimum(rows, len(release) - 1)
    order = np.argsort(rows, kind="stable")
    structs = pa.StructArray.from_arrays(
        [pa.array(values[order]) for values in columns.values()], list(columns)
    )
    offsets = np.searchsorted(rows[order], np.arange(len(release) + 1))
    return pa.ListArray.from_arrays(pa.array(offsets, type=pa.int32()), structs)


def _flat(column: pa.ChunkedArray) -> pa.Array:
    if column.null_count:
        raise ReleaseFileError("values are missing")
    found = pa.chunked_array([_entries(chunk) for chunk in column.chunks], column.type.value_type)
    return found.combine_chunks() if found.num_chunks != 1 else found.chunk(0)


def _entries(lists: pa.ListArray) -> pa.Array:
    """Those of all lists. (Flattening them loads much of pyarrow.)"""
    ends = _numbers(lists.offsets)
    return lists.values[int(ends[0]) : int(ends[-1])]


def _flat_rows(column: pa.ChunkedArray) -> dict[str, IntArray]:
    flat = _flat(column)
    if flat.null_count:
        raise ReleaseFileError("values are missing")
    return {field.name: _numbers(flat.field(number)) for number, field in enumerate(flat.type)}


def _numbers(array: pa.Array) -> Any:
    """Read-only, of the type that the column has. (What pyarrow has for this loads pandas.)"""
    if array.null_count:
        raise ReleaseFileError("values are missing")
    kind = array.type.to_pandas_dtype()
    if len(array) == 0:
        return np.empty(0, kind)
    return np.frombuffer(array.buffers()[1], kind)[array.offset : array.offset + len(array)]


def geo_metadata(domain: Domain) -> dict[str, Any]:
    ground = ground_of(domain)
    column: dict[str, Any] = {"encoding": "WKB", **ground.header, "edges": "planar"}
    column["bbox"] = [*ground.bounds()]
    if domain.crs != CRS84:  # which is GeoParquet's default
        column["crs"] = to_projjson(domain.crs)
    return {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}


def _check_known_crs(crs: str | None) -> None:
    """Refuse a reference system that does not exist, as far as that can be told: without pyproj nothing
    that would need one can be done."""
    with suppress(MissingExtraError):
        check_crs(crs)
