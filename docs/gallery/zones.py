"""Makes two releases of made-up zones: zones.parquet, and trips.parquet for trips between them.

Towns and their people are invented here. The noise is private, so pictures differ a little each time.
"""

import numpy as np
import shapely

import htf
from htf.frame.names import Outlines

TRACTS, WEST, SOUTH, WIDTH, HEIGHT = 150, -30.2, 39.9, 0.4, 0.3
CENTRES = np.array([[-30.08, 40.02], [-29.9, 40.11], [-29.95, 39.95]])
EAST, NORTH = WEST + WIDTH, SOUTH + HEIGHT


def layer(generator: np.random.Generator) -> tuple[htf.Names, np.ndarray]:
    """Tracts around random places, in six districts; and the middle of each tract."""
    places = generator.uniform((WEST, SOUTH), (EAST, NORTH), (TRACTS, 2))
    district = 2 * ((places[:, 0] - WEST) // (WIDTH / 3)) + (places[:, 1] > SOUTH + HEIGHT / 2)
    order = np.lexsort([places[:, 1], district])
    places, district = places[order], district[order].astype(int)
    frame = shapely.box(WEST, SOUTH, EAST, NORTH)
    cells = shapely.voronoi_polygons(shapely.MultiPoint(places), extend_to=frame, ordered=True)
    shapes = shapely.intersection(shapely.get_parts(cells), frame)
    columns = {
        "tract": [f"Tract {number + 1:03}" for number in range(TRACTS)],
        "district": [f"District {number + 1}" for number in district],
    }
    outlines = Outlines(tuple(shapely.to_wkb(shape, byte_order=1) for shape in shapes))
    return htf.Names.of(columns, outlines=outlines), places


def release(axes: tuple[htf.Axis, ...], counts: np.ndarray, name: str) -> None:
    matrix = htf.FrequencyMatrix.from_dense(htf.Domain(axes, "OGC:CRS84"), counts)
    htf.publish(matrix, 1, "hb").save(name, overwrite=True)


def main() -> None:
    generator = np.random.default_rng(7)
    names, places = layer(generator)
    away = np.linalg.norm(places[:, None] - CENTRES, axis=2)
    people = generator.poisson((np.exp(-away / 0.025) * [3000, 1500, 900]).sum(axis=1))
    release((htf.Axis.named("zone", names),), people, "zones.parquet")
    distance = np.linalg.norm(places[:, None] - places, axis=2)
    trips = np.outer(people, people) * np.exp(-distance / 0.2)
    trips = generator.gamma(0.6, 1 / 0.6, trips.shape) * trips
    trips = generator.poisson(60_000 * trips / trips.sum())
    ends = htf.Axis.named("zone", names), htf.Axis.named("dest_zone", names)
    release(ends, trips, "trips.parquet")


if __name__ == "__main__":
    main()
