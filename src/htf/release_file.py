"""The file of a release: GeoParquet 1.1, one row for each box.

GIS tools open it as polygons with a `count`. The regions of the tree and the raw measurements travel
in two list columns, each row carrying some of them, so that the file stays one flat table whose
`count` adds up; so does a prior, where there is one. The rest is JSON under the key `htf` of the file's metadata, with a digest of all.
"""

from __future__ import annotations

import hashlib
import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from htf.curator.ledger import LedgerLine
from htf.domain import CRS84, Domain, IntArray
from htf.epsilon import Epsilon
from htf.errors import HtfError, InputError, MissingExtraError, OutputError, ReleaseFileError
from htf.files import Budget, write_whole
from htf.prior import Prior
from htf.protection import OF_RECORDS, Protection, Suggestion
from htf.query.leaf_noise import noise_variances
from htf.release import MeasurementTable, Release
from htf.tree import RegionTree

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 3  # the newest that is read; files are written in the oldest that can hold them
WITH_PRIOR, PLAIN = 2, 1
KEY = b"htf"
SUFFIXES = (".parquet", ".geoparquet", ".pq")


def save(
    release: Release, path: Path, *, overwrite: bool = False, budget: Budget | None = None
) -> None:
    """Write the file, whole or not at all. `budget` knows which older release may be written over."""
    import pyarrow.parquet as pq

    check_release_name(path)
    table = _to_table(release)
    options = {"compression": "zstd", "write_page_checksum": True}
    write_whole(
        path,
        lambda unfinished: pq.write_table(table, unfinished, **options),
        overwrite=overwrite,
        by_release=True,
        budget=budget,
    )


def check_release_name(path: Path) -> None:
    """Refuse an ending that promises another format."""
    if path.suffix.lower() not in SUFFIXES and not os.path.isdir(path):
        raise OutputError(
            f"a release is a Parquet file: the name must end in {', '.join(SUFFIXES)}, got {path.name!r}"
        )


def load(path: Path) -> Release:
    """Read a release, and refuse a file that is damaged, foreign, changed or from the future."""
    table = _read_table(path)
    header = _read_header(table.schema.metadata or {}, path)
    try:
        release = _from_table(table, header)
        found = digests(release)
    except (HtfError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        reason = f": {error}" if isinstance(error, HtfError) else ""
        raise ReleaseFileError(f"{path} is damaged{reason}") from None
    if header.get("digest") != found:
        raise ReleaseFileError(
            f"{path} was changed after it was written: its digest does not match"
        )
    return release


def is_release(path: Path) -> bool:
    """Whether the file says of itself that it is a release; `load` finds out whether it is a sound one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return KEY in (pq.read_schema(path).metadata or {})
    except (pa.ArrowException, OSError):
        return False


def charged_entry(path: Path) -> str | None:
    """The entry of a budget file that the release in this file was charged to; None where there is no
    such release.

    It looks at the header only. A damaged file is no error: this is asked of any file that is about to
    be written over.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        header = _read_header(pq.read_schema(path).metadata or {}, path)
    except (pa.ArrowException, OSError, ReleaseFileError):
        return None
    found = header.get("budget_entry")
    return found if isinstance(found, str) else None


def stored_statement(path: Path) -> tuple[str, bool]:
    """The privacy statement as the file has it, and whether this version worded it."""
    header = _read_header(_read_table(path, columns=[]).schema.metadata or {}, path)
    return str(header.get("statement")), header.get("software") == _software()


def _read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise ReleaseFileError(f"there is no file {path}")
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            return file.read(columns=columns)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, PermissionError):
            raise ReleaseFileError(f"{path} may not be read: permission denied") from None
        raise ReleaseFileError(f"{path} is not a sound Parquet file: damaged or foreign") from None


def _read_header(metadata: dict[bytes, bytes], path: Path) -> dict[str, Any]:
    if KEY not in metadata:
        raise ReleaseFileError(f"{path} is a Parquet file, but not a release of htf")
    try:
        header: dict[str, Any] = json.loads(metadata[KEY])
        number = int(header["format"])
    except (ValueError, KeyError, TypeError):
        raise ReleaseFileError(f"{path} is damaged: its header cannot be read") from None
    if number > FORMAT:
        raise ReleaseFileError(
            f"{path} has format {number}, made by a newer version ({header.get('software')}); "
            f"this one reads up to format {FORMAT}: upgrade htf-dp"
        )
    return header


def _to_table(release: Release) -> pa.Table:
    import pyarrow as pa

    domain = release.domain
    columns: dict[str, Any] = {}
    if domain.dimensions > 1:
        columns["geometry"] = _rectangles(release)
    columns["count"] = release.estimates
    columns["std_error"] = np.sqrt(noise_variances(release.scales))
    columns["noise_scale"] = release.scales
    for number, axis in enumerate(domain.axes):
        columns[f"{axis.name}_low"] = axis.from_cells(release.low[:, number])
        columns[f"{axis.name}_high"] = axis.from_cells(release.high[:, number])
    columns["region"] = release.leaves
    columns["regions"] = _region_lists(release)
    columns["measurements"] = _measurement_lists(release)
    if release.prior is not None:
        columns["prior"] = _prior_lists(release, release.prior.weights)
    header = {**_header(release), "statement": release.statement}
    header["digest"] = digests(release)
    metadata = {KEY: json.dumps(header).encode()}
    if domain.dimensions > 1:
        metadata[b"geo"] = json.dumps(_geo_metadata(domain)).encode()
    return pa.table(columns).replace_schema_metadata(metadata)


def _from_table(table: pa.Table, header: dict[str, Any]) -> Release:
    domain = Domain.from_dict(header["domain"])
    regions = _flat_rows(table["regions"])
    order = np.argsort(regions["id"])
    if not np.array_equal(regions["id"][order], np.arange(len(order))):
        raise ReleaseFileError("regions are missing")
    box = {
        side: np.stack([regions[f"{name}_{side}"][order] for name in domain.names], axis=1)
        for side in ("low", "high")
    }
    tree = RegionTree.from_arrays(domain.shape, regions["parent"][order], **box)
    measured = _flat_rows(table["measurements"])
    order = np.argsort(measured.pop("row"))
    prior = None
    if "prior" in header:
        weights = _numbers(_flat(table["prior"]), np.int64)
        prior = Prior.from_dict(header["prior"], domain, weights)
    return Release(
        domain=domain,
        epsilon=Epsilon.of(header["epsilon"]),
        mechanism=header["mechanism"],
        parameters=header["parameters"],
        facts=header["facts"],
        estimator=header["estimator"],
        noise=header["noise"],
        private=header["private"],
        tree=tree,
        leaves=_numbers(table["region"].combine_chunks(), np.int64),
        estimates=_numbers(table["count"].combine_chunks(), np.float64),
        scales=_numbers(table["noise_scale"].combine_chunks(), np.float64),
        measurements=MeasurementTable(**{name: v[order] for name, v in measured.items()}),
        ledger=tuple(LedgerLine.from_dict(line) for line in header["ledger"]),
        prior=prior,
        **_guarantee_from(header),
    )


def _guarantee_from(header: dict[str, Any]) -> dict[str, Any]:
    """What `_guarantee` wrote."""
    readers = {"protection": Protection.from_dict, "suggestion": Suggestion.from_dict}
    return {name: read(header[name]) for name, read in readers.items() if name in header}


def _guarantee(release: Release) -> dict[str, Any]:
    """For whom the epsilon is, where it is not for one record as it was read."""
    found: dict[str, Any] = {}
    if release.protection != OF_RECORDS:
        found["protection"] = release.protection.to_dict()
    if release.suggestion is not None:
        found["suggestion"] = release.suggestion.to_dict()
    return found


def _header(release: Release) -> dict[str, Any]:
    prior = {} if release.prior is None else {"prior": release.prior.to_dict()}
    guarantee = _guarantee(release)
    return {
        "format": FORMAT if guarantee else WITH_PRIOR if prior else PLAIN,
        "software": _software(),
        "domain": release.domain.to_dict(),
        "epsilon": str(release.epsilon),
        "mechanism": release.mechanism,
        "parameters": release.parameters,
        "facts": release.facts,
        "estimator": release.estimator,
        "noise": release.noise,
        "private": release.private,
        "ledger": [line.to_dict() for line in release.ledger],
        **prior,
        **guarantee,
    }


def _software() -> str:
    return f"htf-dp {version('htf-dp')}"


def digests(release: Release) -> list[str]:
    """SHA-256 of what the header says and of the rows, as the file has them."""
    return [_digest(_header(release)), _digest_of_rows(release)]


def _digest(header: dict[str, Any]) -> str:
    """Of what the header says, whatever version wrote it."""
    said = {name: value for name, value in header.items() if name not in ("format", "software")}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _digest_of_rows(release: Release) -> str:
    tree, digest = release.tree, hashlib.sha256()
    arrays = [tree.parent, tree.low, tree.high, release.leaves, release.estimates, release.scales]
    prior = [] if release.prior is None else [release.prior.weights]
    for array in [*arrays, *release.measurements.columns().values(), *prior]:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


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
    """One list of structs for each box: those about the box, or about a region that ends before
    the next one. Which row carries what is only a matter of storage."""
    import pyarrow as pa

    ranks = release.tree.preorder()
    rows = np.searchsorted(ranks[release.leaves], ranks[regions])
    rows = np.minimum(rows, len(release) - 1)
    order = np.argsort(rows, kind="stable")
    structs = pa.StructArray.from_arrays(
        [pa.array(values[order]) for values in columns.values()], list(columns)
    )
    offsets = np.searchsorted(rows[order], np.arange(len(release) + 1))
    return pa.ListArray.from_arrays(pa.array(offsets, type=pa.int32()), structs)


def _prior_lists(release: Release, weights: NDArray[np.uint32]) -> pa.Array:
    """The weights in order, as many in each row as in any other, or one more."""
    import pyarrow as pa

    offsets = np.arange(len(release) + 1) * weights.size // len(release)
    return pa.ListArray.from_arrays(pa.array(offsets, type=pa.int32()), pa.array(weights.ravel()))


def _flat(column: pa.ChunkedArray) -> pa.Array:
    import pyarrow as pa

    found = pa.chunked_array([chunk.flatten() for chunk in column.chunks])
    return found.combine_chunks() if found.num_chunks != 1 else found.chunk(0)


def _flat_rows(column: pa.ChunkedArray) -> dict[str, IntArray]:
    flat = _flat(column)
    return {
        field.name: _numbers(flat.field(number), np.int64) for number, field in enumerate(flat.type)
    }


def _numbers(array: Any, kind: Any) -> Any:
    return np.array(array.to_numpy(zero_copy_only=False), dtype=kind)


def _rectangles(release: Release) -> pa.Array:
    """The boxes' outlines in the first two axes, as well-known binary of 93 bytes each."""
    import pyarrow as pa

    x, y = release.domain.axes[:2]
    west, east = x.from_cells(release.low[:, 0]), x.from_cells(release.high[:, 0])
    south, north = y.from_cells(release.low[:, 1]), y.from_cells(release.high[:, 1])
    layout = [("order", "u1"), ("kind", "<u4"), ("rings", "<u4"), ("points", "<u4")]
    outlines = np.zeros(len(release), dtype=np.dtype([*layout, ("ring", "<f8", (5, 2))]))
    outlines["order"], outlines["kind"], outlines["rings"], outlines["points"] = 1, 3, 1, 5
    corners = [(west, south), (east, south), (east, north), (west, north), (west, south)]
    for number, (along, across) in enumerate(corners):
        outlines["ring"][:, number, 0], outlines["ring"][:, number, 1] = along, across
    ends = np.arange(len(release) + 1, dtype=np.int32) * outlines.itemsize
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(outlines.tobytes())]
    return pa.Array.from_buffers(pa.binary(), len(release), buffers)


def _geo_metadata(domain: Domain) -> dict[str, Any]:
    x, y = domain.axes[:2]
    column = {
        "encoding": "WKB",
        "geometry_types": ["Polygon"],
        "orientation": "counterclockwise",
        "edges": "planar",
        "bbox": [x.low, y.low, x.high, y.high],
    }
    if domain.crs != CRS84:  # which is GeoParquet's default
        column["crs"] = _projjson(domain.crs)
    return {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}


def check_crs(crs: str | None) -> None:
    """Refuse a reference system that no release could be written in, before any budget is spent."""
    if crs != CRS84:
        _projjson(crs)


def _projjson(crs: str | None) -> Any:
    if crs is None:
        return None
    try:
        import pyproj
    except ImportError:
        raise MissingExtraError("pyproj", "geo", f"Writing the CRS {crs}") from None
    try:
        return pyproj.CRS.from_user_input(crs).to_json_dict()
    except pyproj.exceptions.CRSError:
        raise InputError(
            f"there is no reference system {crs!r:.100}: write it like EPSG:27700"
        ) from None
