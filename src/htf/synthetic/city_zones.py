"""Made-up zones over the made-up city: tracts inside districts, for trying releases of zones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from htf.base import arguments
from htf.base.extras import need
from htf.errors import InputError
from htf.frame.crs import CRS84
from htf.frame.domain import FloatArray
from htf.synthetic.city import synthetic_city

if TYPE_CHECKING:
    import geopandas

MOST_TRACTS = 20_000
POINTS = 20_000  # of the city, from which the middles of tracts are drawn
SHIFT = 0.02  # of the map's side: so far is a tract's middle from the point that it was drawn from
SYLLABLES = ("Al", "Ber", "Cor", "Dun", "El", "Fen", "Gar", "Hol", "Iv", "Kir", "Lin", "Mar")
ENDINGS = ("bridge", "field", "ford", "ham", "mouth", "stead", "ton", "wood")


def synthetic_zones(tracts: int = 120, districts: int = 8, seed: int = 1) -> geopandas.GeoDataFrame:
    """Make up zones that cover the map of `synthetic_city`, small where many people are. Needs GeoPandas.

    A tract is all that is nearest to its middle (a Voronoi cell), and belongs to the district whose middle is
    nearest.

    Parameters
    ----------
    tracts, districts : int
        How many there are.
    seed : int
        The same seed gives the same zones.

    Returns
    -------
    geopandas.GeoDataFrame
        One row for each tract, with the columns `tract`, `district` and `dwellings`.

    Raises
    ------
    InputError
        If there are fewer tracts than districts, or too many.

    Examples
    --------
    >>> import htf
    >>> zones = htf.synthetic_zones(tracts=30, districts=4)
    >>> zones["district"].nunique()
    4
    """
    geopandas = need("Making up zones", "geopandas", "shapely")
    import shapely

    tracts = arguments.whole(tracts, "the number of tracts", 1)
    districts = arguments.whole(districts, "the number of districts", 1)
    if not districts <= min(tracts, len(SYLLABLES) * len(ENDINGS)) or tracts > MOST_TRACTS:
        raise InputError(
            f"there are up to {MOST_TRACTS:,} tracts, in up to {len(SYLLABLES) * len(ENDINGS)} districts but no more than "
            f"tracts, got {tracts:,} and {districts:,}"
        )
    random = np.random.default_rng(arguments.seed(seed, "the seed"))
    middles, frame = _middles(tracts, random)
    cells = shapely.get_parts(
        shapely.voronoi_polygons(shapely.multipoints(middles), extend_to=frame, ordered=True)
    )
    district = _nearest(middles, middles[random.choice(tracts, districts, replace=False)])
    names = _names(districts, random)
    columns: dict[str, Any] = {
        "tract": [f"{number:05d}" for number in range(1, tracts + 1)],
        "district": [names[number] for number in district.tolist()],
        "dwellings": random.integers(200, 3000, tracts),
    }
    shapes = shapely.intersection(cells, frame)
    return geopandas.GeoDataFrame(columns, geometry=shapes, crs=CRS84)


def _middles(number: int, random: np.random.Generator) -> tuple[FloatArray, Any]:
    """Middles of tracts near points of the city, all different, and the outline of the map."""
    import shapely

    city = synthetic_city(POINTS)
    west, south, east, north = city.domain_bounds
    sides = np.array([east - west, north - south])
    drawn = random.choice(len(city.x), number, replace=False)
    near = np.column_stack([city.x[drawn], city.y[drawn]])
    near = near + random.normal(0, SHIFT, near.shape) * sides
    inside = np.clip(near, [west, south] + 1e-3 * sides, [east, north] - 1e-3 * sides)
    return inside + random.uniform(-1e-4, 1e-4, inside.shape) * sides, shapely.box(
        west, south, east, north
    )


def _nearest(places: FloatArray, middles: FloatArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    distances = np.sum((places[:, None] - middles[None]) ** 2, axis=2)
    return np.asarray(np.argmin(distances, axis=1))


def _names(number: int, random: np.random.Generator) -> list[str]:
    every = [start + end for start in SYLLABLES for end in ENDINGS]
    return [every[place] for place in random.choice(len(every), number, replace=False).tolist()]
