"""The map of a release: exact rasters, blank noise, and words that cannot be missed."""

from __future__ import annotations

import io
import math
import sys
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from htf import FrequencyMatrix, Release, publish
from htf.errors import InputError, MissingExtraError
from htf.frame.crs import CRS84
from htf.frame.domain import Axis, Domain, FloatArray, IntArray
from htf.frame.tree import RegionTree
from htf.maps import draw
from htf.maps.kinds import Grid
from htf.maps.picture import layout, round_length
from htf.maps.scale import short_number
from htf.maps.steps import panel_ranges
from htf.maps.views import rasterise, view
from htf.privacy.protection import Protection
from htf.release.release import MeasurementTable
from support import city_matrix

pytest.importorskip("matplotlib")

BANNER = "NOT PRIVATE – seeded or scripted noise"


Leaves = tuple[RegionTree, IntArray]


@cache
def plain_release() -> Release:
    """One leaf, with noise of its own."""
    domain = Domain((Axis("x", 0, 2, 2), Axis("y", 0, 2, 2)))
    matrix = FrequencyMatrix.from_dense(domain, np.full((2, 2), 9))
    return publish(matrix, "0.375", "singular", noise="seeded:1")


def release_of(
    domain: Domain, leaves: Leaves, estimates: FloatArray, scale: float = 1.0, **changes: Any
) -> Release:
    """A release with these leaves, each with noise of its own."""
    tree, chosen = leaves
    content = {
        "mechanism": "made-up",
        "private": True,
        "tree": tree,
        "leaves": chosen,
        "estimates": estimates,
        "scales": np.full(len(chosen), float(scale)),
        "measurements": MeasurementTable.from_parts([]),
    }
    return replace(plain_release(), domain=domain, **{**content, **changes})


def random_leaves(shape: tuple[int, ...], number: int, seed: int) -> Leaves:
    """Cut a random box in two, again and again; old boxes are cut more often, so sizes differ."""
    generator = np.random.default_rng(seed)
    tree, boxes = RegionTree(shape), [0]
    while len(boxes) < number:
        index = int(generator.integers(len(boxes)))
        low, high = tree.low[boxes[index]], tree.high[boxes[index]]
        axis = int(generator.integers(len(shape)))
        if high[axis] - low[axis] < 2:
            continue
        cut = int(generator.integers(low[axis] + 1, high[axis]))
        parts = tree.split(*(np.array([one]) for one in (boxes[index], axis, cut)))
        boxes[index], upper = parts[0].tolist()
        boxes.append(upper)
    return tree, np.array(boxes)


def random_boxes(shape: tuple[int, ...], number: int, seed: int) -> tuple[IntArray, IntArray]:
    return edges_of(random_leaves(shape, number, seed))


def edges_of(leaves: Leaves) -> tuple[IntArray, IntArray]:
    tree, chosen = leaves
    return tree.low[chosen], tree.high[chosen]


def cells_of(domain: Domain) -> Leaves:
    """Every cell as a leaf, the last axis fastest."""
    tree, regions = RegionTree(domain.shape), np.array([0])
    for axis, cells in enumerate(domain.shape):
        if cells > 1:
            number = len(regions)
            cuts = np.tile(np.arange(1, cells), number)
            regions = tree.cut(regions, np.full(number, axis), cuts, np.full(number, cells - 1))
    return tree, regions


def halves_of(domain: Domain) -> Leaves:
    """The western and the eastern half."""
    tree = RegionTree(domain.shape)
    return tree, tree.split(*(np.array([one]) for one in (0, 0, domain.shape[0] // 2)))[0]


def whole_of(domain: Domain) -> Leaves:
    return RegionTree(domain.shape), np.array([0])


def frame(cells: tuple[int, int]) -> IntArray:
    return np.array([(0, 0), cells])


def naive_raster(
    low: IntArray,
    high: IntArray,
    masses: FloatArray,
    cells: tuple[int, int],
    shape: tuple[int, int],
    *,
    power: int = 1,
) -> FloatArray:
    """The share of every box in every pixel, written out in full."""
    shares = []
    for axis in (0, 1):
        edges = np.arange(shape[axis] + 1) * cells[axis] / shape[axis]
        upper = np.minimum(high[:, axis, None], edges[None, 1:])
        lower = np.maximum(low[:, axis, None], edges[None, :-1])
        lengths = (high - low)[:, axis, None]
        shares.append((np.maximum(upper - lower, 0) / lengths) ** power)
    return np.asarray(np.einsum("n,nx,ny->xy", masses, shares[0], shares[1]))


def leaf_release(estimates: list[float], scale: float, **changes: Any) -> Release:
    """Leaves of one cell side by side, ten kilometres on a side at the equator."""
    degrees, number = 10 / 111.32, len(estimates)
    domain = Domain.from_bounds(0, -degrees / 2, degrees * number, degrees / 2, (number, 1))
    return release_of(domain, cells_of(domain), np.array(estimates), scale, **changes)


def city_release(domain: Domain, **changes: Any) -> Release:
    estimates = np.random.default_rng(4).lognormal(5, 2, 60)
    return release_of(domain, random_leaves(domain.shape, 60, seed=3), estimates, **changes)


def plot_release(release: Any, **options: Any) -> Any:
    return draw.plot_release(release, **options)


def visible_density(release: Any, pixels: int = 700) -> FloatArray:
    """Density per pixel, as rows from south to north; NaN where counts are no more than noise."""
    values = Grid(release, "made-up").values(pixels)
    return np.where(values.is_clear, values.density, np.nan)


def words(figure: Any) -> str:
    from matplotlib.text import Text

    return "\n".join(text.get_text() for text in figure.findobj(Text))


def rendered(figure: Any) -> Any:
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize(
    ("cells", "shape", "leaves"),
    [
        ((12, 10), (12, 10), 40),  # a pixel is a cell
        ((12, 10), (5, 7), 60),  # edges of pixels cut through cells
        ((1000, 7), (30, 7), 300),
        ((2**20, 2**20), (37, 41), 4000),  # most leaves far smaller than a pixel
        ((2**31 - 1, 3), (50, 2), 200),
        ((5, 5), (1, 1), 9),
    ],
)
def test_raster_equals_the_naive_one(
    cells: tuple[int, int], shape: tuple[int, int], leaves: int, power: int
) -> None:
    low, high = random_boxes(cells, leaves, seed=leaves)
    masses = np.random.default_rng(1).normal(10, 100, leaves)
    raster = rasterise(low, high, masses, frame(cells), shape, power=power)
    assert raster.shape == shape
    np.testing.assert_allclose(
        raster, naive_raster(low, high, masses, cells, shape, power=power), rtol=1e-7, atol=1e-7
    )
    if power == 1:
        assert raster.sum() == pytest.approx(masses.sum(), rel=1e-12)


def test_a_tiny_leaf_gives_its_whole_mass_to_one_pixel_and_leaves_no_trail() -> None:
    cells = (2**20, 2**20)
    low = np.array([[700_001, 300_001], [5, 5]])
    raster = rasterise(low, low + 1, np.array([1e9, 1.0]), frame(cells), (64, 64))
    assert raster[700_001 * 64 // 2**20, 300_001 * 64 // 2**20] == 1e9
    assert raster[0, 0] == 1
    assert np.count_nonzero(raster) == 2


def test_fifty_thousand_leaves_on_a_fine_grid_keep_their_mass() -> None:
    side = 224
    edges = np.linspace(0, 2**20, side + 1).astype(np.int64)
    first, second = (index.ravel() for index in np.indices((side, side)))
    low = np.stack([edges[first], edges[second]], axis=1)
    high = np.stack([edges[first + 1], edges[second + 1]], axis=1)
    masses = np.random.default_rng(0).normal(0, 100, len(low))
    raster = rasterise(low, high, masses, frame((2**20, 2**20)), (700, 700))
    assert raster.sum() == pytest.approx(masses.sum(), rel=1e-9)
    whole = rasterise(low, high, masses, frame((2**20, 2**20)), (1, 1))
    assert whole[0, 0] == pytest.approx(masses.sum(), rel=1e-9)


def on_the_ground(west: float, south: float, east: float, north: float) -> float:
    """Square kilometres of a box in degrees, by geodesics; corners along the parallels bend them."""
    pyproj = pytest.importorskip("pyproj")
    along = np.linspace(west, east, 50)
    longitudes = [*along, *along[::-1]]
    latitudes = [*np.full(50, south), *np.full(50, north)]
    return float(pyproj.Geod(ellps="WGS84").polygon_area_perimeter(longitudes, latitudes)[0]) / 1e6


def test_density_is_per_square_kilometre() -> None:
    release = leaf_release([100.0, 2500.0], 1)
    density = visible_density(release, 700)
    x, y = release.domain.axes
    area = on_the_ground(x.low, y.low, x.low + x.cell_width, y.high)
    np.testing.assert_allclose(density, [[100 / area, 2500 / area]], rtol=1e-5)


def test_density_of_a_map_in_metres() -> None:
    """Also per square kilometre, so that maps of other grids can be compared."""
    for cells in (4, 8):
        domain = Domain.from_bounds(0, 0, 8000, 4000, (cells, 2), crs="EPSG:27700")
        release = release_of(domain, whole_of(domain), np.array([64.0]))
        np.testing.assert_allclose(visible_density(release, 700), 2.0)
        assert "records per km²" in words(plot_release(release))


def test_density_follows_the_narrowing_of_degrees() -> None:
    """As many points per degree are twice as dense at 60 degrees north as at the equator."""
    domain = Domain.from_bounds(0, -1, 1, 61, (1, 62))
    release = release_of(domain, cells_of(domain), np.full(62, 1000.0))
    density = visible_density(release, 700)[:, 0]
    ratio = on_the_ground(0, -1, 1, 0) / on_the_ground(0, 60, 1, 61)
    assert density[-1] / density[0] == pytest.approx(ratio, rel=1e-5)


def test_density_is_per_cell_without_degrees() -> None:
    domain = Domain.from_bounds(0, 0, 5000, 5000, 8, crs=None)
    release = release_of(domain, halves_of(domain), np.array([64.0, 320.0]))
    np.testing.assert_allclose(visible_density(release, 4), [[2, 2, 10, 10]] * 4)


def test_what_is_no_more_than_noise_is_blank() -> None:
    deviation = math.sqrt(2) * 10
    estimates = [-500.0, 0.0, 1.9 * deviation, 2.4 * deviation, 500.0]
    density = visible_density(leaf_release(estimates, 10), 700)
    assert np.isnan(density).tolist() == [[True, True, True, False, False]]


def test_many_leaves_in_a_pixel_rise_above_the_noise_together() -> None:
    """Each of 100 leaves is within its noise; their sum is ten deviations of its own."""
    release = leaf_release([10.0] * 100, 7)
    assert np.isnan(visible_density(release, 100)).all()
    assert np.isfinite(visible_density(release, 1)).all()


def test_a_leaf_over_many_pixels_is_judged_as_a_whole() -> None:
    """Its noise is one draw: it does not average out over the pixels, nor grow with them."""
    domain = Domain.from_bounds(0, 0, 1, 1, 64)
    deviation = math.sqrt(2) * 10
    estimates = np.array([1.9, 2.4]) * deviation
    density = visible_density(release_of(domain, halves_of(domain), estimates, 10), 50)
    assert np.isnan(density[:, :25]).all()
    assert np.isfinite(density[:, 25:]).all()


def test_exact_nothing_is_blank_when_there_is_no_noise_at_all() -> None:
    domain = Domain.from_bounds(0, 0, 1, 1, 1000)
    leaves = random_leaves(domain.shape, 400, seed=5)
    estimates = np.where(np.arange(400) % 3 == 0, 1e6 / 7, 0.0)
    release = release_of(domain, leaves, estimates, 0)
    expected = naive_raster(*edges_of(leaves), estimates, (1000, 1000), (90, 90)).T > 0
    np.testing.assert_array_equal(np.isfinite(visible_density(release, 90)), expected)


def test_further_axes_are_summed_out() -> None:
    axes = (Axis("x", 0, 1, 6), Axis("y", 0, 1, 6), Axis("hour", 0, 24, 24))
    leaves = random_leaves((6, 6, 24), 50, seed=9)
    (low, high), masses = edges_of(leaves), np.full(50, 100.0)
    release = release_of(Domain(axes), leaves, masses)
    expected = naive_raster(low[:, :2], high[:, :2], masses, (6, 6), (6, 6))
    np.testing.assert_allclose(visible_density(release, 700), expected.T)
    outlines = plot_release(release, boxes=True).axes[0].collections[0].get_paths()
    distinct = {(*a, *b) for a, b in zip(low[:, :2].tolist(), high[:, :2].tolist(), strict=True)}
    assert len(outlines) == len(distinct) < 50


def cube_release(**changes: Any) -> Release:
    """A city by the hour, at the equator, busiest from 6 to 12."""
    axes = (Axis("x", 0, 1, 6), Axis("y", -0.3, 0.3, 6), Axis("hour", 0, 24, 24))
    domain = Domain(axes, CRS84)
    column, _, hour = (index.ravel() for index in np.indices(domain.shape))
    busy = (hour >= 6) & (hour < 12)
    estimates = np.where(busy, 1000.0, 100.0) * (1 + column)
    return release_of(domain, cells_of(domain), **{"estimates": estimates, **changes})


def test_a_range_of_a_further_axis_is_drawn_and_said() -> None:
    whole, morning = (plot_release(cube_release(), where=w) for w in (None, {"hour": (7, 10)}))
    assert "all of hour" in words(whole)
    assert "hour 7 to 10" in words(morning)
    image = morning.axes[0].images[0].get_array()
    assert image is not None
    per_pixel = on_the_ground(0, 0, 1 / 6, 0.1)
    assert float(image[3, 2]) == pytest.approx(3 * 3000 / per_pixel, rel=1e-3)


def test_other_axes_may_be_drawn() -> None:
    figure = plot_release(cube_release(), axes=("hour", "x"), boxes=True)
    ax: Any = figure.axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("hour", "x")
    assert ax.images[0].get_extent() == [0, 24, 0, 1]
    assert "records per cell" in words(figure)
    assert "stretched" not in words(figure)
    assert len(ax.collections[0].get_paths()) == 6 * 24
    names = ("x", "y", "dest_x", "dest_y")
    domain = Domain(tuple(Axis(name, 0, 1, 4) for name in names), CRS84)
    trips = release_of(domain, random_leaves(domain.shape, 30, seed=2), np.full(30, 1e4))
    said = words(plot_release(trips, axes=("dest_x", "dest_y")))
    for word in ("longitude of the destination (°)", "records per km²", "all of x, y"):
        assert word in said


def test_panels_share_their_colours_and_name_their_hours() -> None:
    figure = plot_release(cube_release(), by="hour")
    panels: list[Any] = [ax for ax in figure.axes if ax.images]
    assert [ax.get_title() for ax in panels] == [f"hour {h} to {h + 1}" for h in range(24)]
    assert len({(ax.images[0].norm.vmin, ax.images[0].norm.vmax) for ax in panels}) == 1
    levels = [float(ax.images[0].get_array().mean()) for ax in panels]
    assert min(levels[6:12]) > 5 * max(levels[:6] + levels[12:])
    assert len(figure.axes) == 25  # with one colour bar
    assert words(figure).count("records per km²") == 1
    assert "made-up,  ε = 0.375" in words(figure)
    assert "ε-DP per record" in words(figure)


@pytest.mark.parametrize(
    ("where", "cells", "panels"),
    [
        (None, 96, 24),  # four cells each
        (None, 29, 12),  # a prime number: equal ranges cut through cells
        (None, 5, 5),
        (None, 100, 20),
        ({"hour": (6, 12)}, 24, 6),
        ({"hour": (20, 99)}, 24, 4),  # clipped at midnight
    ],
)
def test_panels_cover_equal_ranges(where: Any, cells: int, panels: int) -> None:
    domain = Domain((Axis("x", 0, 1, 2), Axis("y", 0, 1, 2), Axis("hour", 0, 24, cells)))
    ranges = np.array(panel_ranges(domain, "hour", where))
    assert len(ranges) == panels
    np.testing.assert_allclose(np.diff(ranges), np.diff(ranges)[0, 0])
    np.testing.assert_array_equal(ranges[1:, 0], ranges[:-1, 1])
    low, high = (where or {"hour": (0, 24)})["hour"]
    assert (ranges[0, 0], ranges[-1, 1]) == (low, min(high, 24))


def test_a_day_fills_whole_rows_and_no_number_of_panels_is_a_mere_strip() -> None:
    for ratio in (0.4, 0.6, 1.0, 1.6):
        rows, columns = layout(24, ratio)
        assert rows * columns == 24
        for panels in range(5, 24):
            rows, columns = layout(panels, ratio)
            assert panels <= rows * columns < 1.5 * panels
            assert 0.4 < columns / (rows * ratio) < 6


@pytest.mark.parametrize("private", [True, False])
def test_no_words_of_panels_are_cut_off_and_the_warning_is_wide(private: bool) -> None:
    figure = plot_release(cube_release(private=private), by="hour", where={"hour": (5, 11)})
    picture = rendered(figure)
    drawn, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert min(drawn.x0, drawn.y0, width - drawn.x1, height - drawn.y1) >= 0
    is_red = np.abs(picture - [0xC4, 0x00, 0x18]).max(axis=2) < 8
    share = is_red.sum(axis=1).max() / picture.shape[1]
    assert (0.6 < share < 1) if not private else (share == 0)
    assert (BANNER in words(figure)) is not private


def test_panels_of_nothing_say_so() -> None:
    nothing = cube_release(estimates=np.zeros(6 * 6 * 24))
    assert "nothing rises\nabove the noise" in words(plot_release(nothing, by="hour"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"by": "x"}, "'x' is: give another"),
        ({"by": "day"}, "no axis 'day'"),
        ({"by": "hour", "boxes": True}, "cannot show outlines"),
        ({"where": {"hour": (22, 4)}}, "22 to 24 and 0 to 4"),
    ],
    ids=str,
)
def test_mistakes_about_axes_are_named(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        plot_release(cube_release(), **options)


def test_refuses_a_single_axis_and_no_pixels() -> None:
    domain = Domain((Axis("hour", 0, 24, 24),))
    line = release_of(domain, whole_of(domain), np.array([5.0]))
    with pytest.raises(InputError, match="two axes"):
        plot_release(line)
    with pytest.raises(InputError, match="one pixel a side, got 0 x 0"):
        plot_release(leaf_release([1.0], 1), pixels=0)


def test_says_which_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"Drawing a map needs .*htf-dp\[plot\]"):
        plot_release(leaf_release([1.0], 1))


def test_leaves_pyplot_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    plot_release(leaf_release([100.0], 1, private=False), boxes=True)
    assert "matplotlib.pyplot" not in sys.modules


@pytest.mark.parametrize("estimates", [[500.0, 4000.0], [-3.0, 1.0]])
def test_names_mechanism_and_epsilon_and_does_not_cry_wolf(estimates: list[float]) -> None:
    said = words(plot_release(leaf_release(estimates, 5)))
    assert "made-up,  ε = 0.375" in said
    assert "Differentially private counts of records: ε-DP per record, ε = 0.375" in said
    assert "longitude" in said
    assert "5 km" in said
    assert "noise" in said
    assert "NOT PRIVATE" not in said
    assert ("records per km²" in said) == (max(estimates) > 100)
    assert ("nothing rises above the noise" in said) == (max(estimates) < 100)
    people = leaf_release(estimates, 5, protection=Protection("person", 3))
    assert "ε-DP per person, ε = 0.375" in words(plot_release(people))
    assert "Counted: records, at most 3 per person." in words(plot_release(people))


def test_a_map_of_people_says_people() -> None:
    """And one of split person-days does not promise to protect a whole person."""
    days = Protection("person", count="people", shares=256, per="day")
    for protection, quantity, unit in (
        (replace(days, per=None), "split people", "person"),
        (days, "split person-days", "person in one day"),
    ):
        said = words(plot_release(leaf_release([900.0, 900.0], 5, protection=protection)))
        assert f"{quantity} per km²" in said
        assert f"private counts of {quantity}: ε-DP per {unit}, ε = 0.375" in said
        assert " records: ε-DP" not in said
        assert "records per" not in said


def test_a_release_that_is_not_private_says_so_in_red_across_the_map() -> None:
    domain = Domain.square(52, 5, 20, 64)
    honest, unsafe = (
        plot_release(city_release(domain, private=private)) for private in (True, False)
    )
    assert BANNER in words(unsafe)
    assert "Differentially private" not in words(unsafe)

    def red_width(figure: Any) -> float:
        """The widest run of rows of warning red, as a share of the width of the map."""
        picture = rendered(figure)
        is_red = np.abs(picture - [0xC4, 0x00, 0x18]).max(axis=2) < 8
        return float(is_red.sum(axis=1).max() / figure.axes[0].get_window_extent().width)

    assert red_width(honest) == 0
    assert 0.8 < red_width(unsafe) <= 1


def test_draws_on_the_axes_of_the_caller() -> None:
    from matplotlib.figure import Figure

    figure = Figure((10, 5))
    left, right = figure.subplots(1, 2)
    assert plot_release(leaf_release([500.0], 1, private=False), ax=right) is figure
    assert not left.images
    assert len(right.images) == 1
    assert BANNER in words(right)
    assert "ε = 0.375" in right.get_xlabel()  # the footer


DOMAINS = {
    "square": Domain.square(52, 5, 30, 64),
    "half": Domain.from_bounds(0, 60, 1, 61, 64),
    "wide": Domain.from_bounds(-10, 40, 10, 40.6, 64),
    "tall": Domain.from_bounds(5.0, 40, 5.1, 50, 64),
    "tiny": Domain.from_bounds(4, 52, 5, 52.6, 8),
    "metres": Domain.from_bounds(500_000, 4_000_000, 530_000, 4_030_000, 64, crs="EPSG:32631"),
    "unrelated": Domain.from_bounds(0, 0, 1, 1e6, 64, crs=None),
}


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("name", DOMAINS)
def test_no_words_are_cut_off(name: str, private: bool) -> None:
    figure = plot_release(city_release(DOMAINS[name], private=private))
    figure.draw_without_rendering()
    drawn, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert min(drawn.x0, drawn.y0, width - drawn.x1, height - drawn.y1) >= 0


@pytest.mark.parametrize(("name", "ratio"), [("square", 1.0), ("half", 2.03), ("metres", 1.0)])
def test_a_kilometre_is_as_long_north_as_east(name: str, ratio: float) -> None:
    figure = plot_release(city_release(DOMAINS[name]))
    figure.draw_without_rendering()
    extent = figure.axes[0].get_window_extent()
    assert extent.height / extent.width == pytest.approx(ratio, rel=0.01)
    assert "stretched" not in words(figure)


def test_a_map_too_thin_to_see_is_stretched_and_says_so() -> None:
    figure = plot_release(city_release(DOMAINS["wide"]))
    figure.draw_without_rendering()
    extent = figure.axes[0].get_window_extent()
    assert extent.height / extent.width > 0.1
    assert "stretched" in words(figure)


def test_one_hotspot_does_not_wash_out_the_rest() -> None:
    side = 50
    estimates = np.random.default_rng(2).uniform(1e3, 1e4, side * side)
    estimates[0] = 1e12
    domain = Domain.square(0, 0, 10, side)
    release = release_of(domain, cells_of(domain), estimates)
    norm: Any = plot_release(release).axes[0].images[0].norm
    assert 5 < norm.vmax / norm.vmin < 20


def test_noise_that_barely_shows_stays_pale() -> None:
    release = leaf_release([35.0, 1.0, 32.0, -20.0], 10)
    norm: Any = plot_release(release).axes[0].images[0].norm
    assert norm(35.0 / 100) < 0.1


def test_saves_a_picture() -> None:
    file = io.BytesIO()
    plot_release(city_release(DOMAINS["tiny"]), boxes=True).savefig(file)
    assert file.getvalue().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("value", "name"),
    [(0.05, "0.05"), (1, "1"), (200, "200"), (1e3, "1 k"), (5e4, "50 k"), (2e6, "2 M")],
)
def test_short_number(value: float, name: str) -> None:
    assert short_number(value) == name


@pytest.mark.parametrize(
    ("most", "length"), [(7.4, 5), (5, 5), (1.9, 1), (0.04, 0.02), (999.9999999999999, 500)]
)
def test_round_length(most: float, length: float) -> None:
    assert round_length(most) == pytest.approx(length)


def test_too_few_to_tell_has_a_colour_and_a_word() -> None:
    release = publish(city_matrix(), "0.3", noise="seeded:1")
    for drawn in (release, with_wide_map(release)):
        figure = plot_release(drawn)
        assert any("too few" in text.get_text() for ax in figure.axes for text in ax.texts)
        marked: Any = figure.axes[0].images[1].get_array()
        seen = view(drawn)
        assert seen.is_unsure is not None
        assert marked.count() == seen.is_unsure.sum() > 0
    full = FrequencyMatrix.from_dense(city_matrix().domain, np.full((64, 64), 1000))
    figure = plot_release(publish(full, 1, "singular", noise="seeded:1"))
    assert len(figure.axes[0].images) == 1


def with_wide_map(release: Release) -> Release:
    """The same on a map that is three times as wide, whose colour bar lies below it."""
    domain = Domain((Axis("x", 0, 192, 64), Axis("y", 0, 64, 64)))
    city = city_matrix()
    matrix = FrequencyMatrix(domain, city.exact_coordinates, city.exact_counts)
    return publish(matrix, release.epsilon, noise="seeded:1")
