"""Layers of a map: the leaves of a release as polygons with their counts.

A layer is a GeoDataFrame, wherever it comes from; `htf.export.vector` writes any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from htf.base.extras import need
from htf.errors import InputError
from htf.frame.areas import square_kilometres
from htf.frame.domain import FloatArray
from htf.frame.grids import rows_of
from htf.frame.ground import ground_of
from htf.query.columns import COUNTED, OF_LEAVES, describe_columns
from htf.query.frames import as_layer, join_columns
from htf.query.named import as_column, names_of_cells

if TYPE_CHECKING:
    import geopandas

    from htf.release.release import Release

LEAVES = "leaves"  # the name of the layer


def leaves_rule(quantity: str) -> str:
    """How the layer of leaves was computed, for its provenance."""
    return (
        "One row per leaf of the release, with what the release answers for it. "
        f"{describe_columns(quantity, OF_LEAVES)} density: {quantity} per square kilometre."
    )


def leaf_columns(release: Release) -> dict[str, Any]:
    """What each leaf is called along axes with names, the answer of the release for it, its edges along every axis,
    and last what is counted."""
    domain = release.domain
    bounds = {
        f"{axis.name}_{side}": axis.from_cells(cells[:, number])
        for number, axis in enumerate(domain.axes)
        for side, cells in (("low", release.low), ("high", release.high))
    }
    answers = release.count(_rows(release)).to_labelled_columns(of_leaves=True)
    label = {COUNTED: answers.pop(COUNTED)}
    area = square_kilometres(domain, release.low, release.high)
    density = {} if area is None else {"density": answers["count"] / area}
    columns = {**answers, **density, **bounds, **label}
    if not any(axis.levels for axis in domain.axes):
        return columns
    names = names_of_cells(domain, release.low, release.high)
    given = {name: as_column(values) for name, values in names.items()}
    table = join_columns({}, given, columns)
    return {name: table[name] for name in table.column_names if name not in columns} | columns


def leaf_layer(release: Release) -> geopandas.GeoDataFrame:
    """The leaves as polygons in the first two axes, or as the zones or trips that they are, in the release's
    reference system."""
    domain = release.domain
    if not domain.has_shapes:
        raise InputError(
            f"a map needs axes x and y, but this release has {', '.join(domain.names)}: export it as .csv"
        )
    need("Making a layer of polygons", "geopandas")
    import pyarrow as pa

    return as_layer(
        pa.table(leaf_columns(release)), ground_of(domain).shapes(_rows(release)), domain.crs
    )


def _rows(release: Release) -> FloatArray:
    """The leaves as boxes."""
    return rows_of(release.domain.axes, release.low, release.high)
