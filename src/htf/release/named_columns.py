"""What the file of a release has of axes with names: columns of labels, and the layer of zones.

The outlines of rows follow from the layer (htf.frame.ground), which is stored once, in a list column: one entry for each
zone, spread evenly over the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from htf.errors import ReleaseFileError
from htf.frame.domain import Domain
from htf.frame.names import Outlines
from htf.frame.well_known import is_sound

if TYPE_CHECKING:
    import pyarrow as pa

    from htf.release.release import Release

ZONES = "zones"  # the column of the layer
OWN = ("geometry", "count", "std_error", "noise_scale", "region", "regions", "measurements", "prior", "background", ZONES)  # fmt: skip
LONGEST_ATTRIBUTES = 2**20  # bytes of JSON, of one zone


def label_columns(domain: Domain) -> dict[str, tuple[int, int]]:
    """The names of the columns of labels, with the axis and the level of each.

    A column has the name of its level, or of the axis too if that is taken. It has no dots, which mean something else in
    names of columns of Parquet.
    """
    edges = [f"{name}_{side}" for name in domain.names for side in ("low", "high")]
    taken, found = {*OWN, *edges}, {}
    for number, axis in enumerate(domain.axes):
        for level, one in enumerate(axis.levels):
            plain = one.name.replace(".", "_")
            name = plain if plain not in taken else f"{axis.name} {plain}"
            while name in taken:
                name = f"{name}_"
            found[name] = (number, level)
            taken.add(name)
    return found


def zone_type() -> pa.DataType:
    import pyarrow as pa

    fields = [("axis", pa.int64()), ("cell", pa.int64()), ("shape", pa.binary())]
    return pa.list_(pa.struct([*fields, ("attributes", pa.string())]))


def zone_lists(release: Release) -> pa.Array:
    """The layers, zone by zone."""
    import pyarrow as pa

    columns = layer_columns(release.domain)
    types = zone_type().value_type
    arrays = [pa.array(columns[field.name], field.type) for field in types]
    return spread(release, pa.StructArray.from_arrays(arrays, [field.name for field in types]))


def spread(release: Release, values: pa.Array) -> pa.ListArray:
    """The values in order, spread over the rows so that their numbers differ by at most one."""
    import pyarrow as pa

    offsets = np.arange(len(release) + 1) * len(values) // len(release)
    return pa.ListArray.from_arrays(pa.array(offsets, type=pa.int32()), values)


def layer_columns(domain: Domain) -> dict[str, list[Any]]:
    """The layers, a row for each zone."""
    columns: dict[str, list[Any]] = {"axis": [], "cell": [], "shape": [], "attributes": []}
    for place in domain.outlined:
        outlines = _outlines(domain, place)
        columns["axis"] += [place] * len(outlines.shapes)
        columns["cell"] += range(len(outlines.shapes))
        columns["shape"] += outlines.shapes
        columns["attributes"] += _attribute_texts(outlines)
    return columns


def with_outlines(domain: Domain, flat: pa.StructArray) -> Domain:
    """The map with the outlines that `zone_lists` wrote."""
    if flat.null_count or any(column.null_count for column in flat.flatten()):
        raise ReleaseFileError("values are missing")
    rows = {field.name: flat.field(number).to_pylist() for number, field in enumerate(flat.type)}
    wanted = [
        (place, cell) for place in domain.outlined for cell in range(domain.axes[place].cells)
    ]
    if list(zip(rows["axis"], rows["cell"], strict=True)) != wanted:
        raise ReleaseFileError("zones are missing")
    found, start = {}, 0
    for place in domain.outlined:
        axis = domain.axes[place]
        end = start + axis.cells
        texts = rows["attributes"][start:end]
        found[axis.name] = Outlines(tuple(rows["shape"][start:end]), _read_attributes(texts))
        for shape in rows["shape"][start:end]:
            if not is_sound(shape):
                raise ReleaseFileError("its zones have outlines that are not polygons")
        start = end
    return Domain.from_dict(domain.to_dict(), found)


def content_of_zones(domain: Domain) -> Iterator[bytes]:
    """Everything in the layers, for a digest."""
    for place in domain.outlined:
        outlines = _outlines(domain, place)
        for shape, text in zip(outlines.shapes, _attribute_texts(outlines), strict=True):
            yield len(shape).to_bytes(8, "little") + shape + text.encode() + b"\0"


def _outlines(domain: Domain, place: int) -> Outlines:
    outlines = domain.axes[place].outlines
    assert outlines is not None
    return outlines


def _attribute_texts(outlines: Outlines) -> list[str]:
    names = [name for name, _ in outlines.attributes]
    rows = zip(*(values for _, values in outlines.attributes), strict=True)
    texts = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    return texts or ["{}"] * len(outlines.shapes)


def _read_attributes(texts: list[str]) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Columns from rows, which must all have the same names and plain values."""
    rows = [_read_plain(text) for text in texts]
    names = list(rows[0]) if rows else []
    if any(list(row) != names for row in rows):
        raise ReleaseFileError("its zones have attributes that differ")
    return tuple((name, tuple(row[name] for row in rows)) for name in names)


def _read_plain(text: str) -> dict[str, Any]:
    if len(text) > LONGEST_ATTRIBUTES:
        raise ReleaseFileError("its zones have attributes of more than a megabyte")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    plain = (str, int, float, bool, type(None))
    if not isinstance(found, dict) or not all(isinstance(one, plain) for one in found.values()):
        raise ReleaseFileError("its zones have attributes that cannot be read")
    return found
