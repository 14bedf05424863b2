"""Layers of a map: the leaves of a release as polygons with their counts.

A layer is a GeoDataFrame, wherever it comes from; `htf.export.vector` writes any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from htf.errors import InputError, MissingExtraError
from htf.frame.areas import square_kilometres
from htf.query.columns import COUNTED, OF_LEAVES, describe_columns
from htf.release.release import Release, check_release

if TYPE_CHECKING:
    import geopandas

LEAVES = "leaves"  # the name of the layer
ZONES = "zones"


def leaves_rule(quantity: str) -> str:
    """How the layer of leaves was computed, for its provenance."""
    return (
        "One row per leaf of the release, with what the release answers for it. "
        f"{describe_columns(quantity, OF_LEAVES)} density: {quantity} per square kilometre."
    )


def zones_rule(quantity: str) -> str:
    """How a layer of zones was computed, for its provenance."""
    return (
        "One row per zone, cut off at the edge of the map, with what the release answers for it. "
        f"{describe_columns(quantity)}"
    )


def leaf_columns(release: Release) -> dict[str, Any]:
    """The answer of the release for each of its leaves, their edges along every axis, and last what
    is counted."""
    domain = check_release(release).domain
    bounds = {
        f"{axis.name}_{side}": axis.from_cells(cells[:, number])
        for number, axis in enumerate(domain.axes)
        for side, cells in (("low", release.low), ("high", release.high))
    }
    boxes = [bounds[f"{name}_{side}"] for side in ("low", "high") for name in domain.names]
    answers = release.count(np.column_stack(boxes)).to_labelled_columns(of_leaves=True)
    label = {COUNTED: answers.pop(COUNTED)}
    area = square_kilometres(domain, release.low, release.high)
    density = {} if area is None else {"density": answers["count"] / area}
    return {**answers, **density, **bounds, **label}


def leaf_layer(release: Release) -> geopandas.GeoDataFrame:
    """The leaves as polygons in the first two axes, in the release's reference system."""
    if not check_release(release).domain.has_map:
        zones = "write its zones with `htf query RELEASE -o zones.gpkg`"
        remedy = zones if release.domain.zoned else "export it as .csv"
        raise InputError(
            f"a map needs axes x and y, but this release has {', '.join(release.domain.names)}: {remedy}"
        )
    try:
        import geopandas
        import shapely
    except ImportError as error:
        raise MissingExtraError(str(error.name), "geo", "Making a layer of polygons") from None
    columns = leaf_columns(release)
    x, y = release.domain.names[:2]
    edges = [columns[f"{name}_{side}"] for side in ("low", "high") for name in (x, y)]
    return geopandas.GeoDataFrame(columns, geometry=shapely.box(*edges), crs=release.domain.crs)
