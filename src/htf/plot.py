"""A map of a release, drawn with matplotlib.

Only public values are drawn: the boxes of a release, their noisy estimates and the scale of their
noise. What cannot be told from noise is left blank, so that an empty map looks empty.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from htf.domain import CRS84, KM_PER_DEGREE, Domain, FloatArray, IntArray
from htf.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from htf.protection import Protection
    from htf.release import Parts

BLANK = "#e9edf2"  # calm, and found nowhere in the colour map
COLOURS, PALEST, DARKEST = "magma_r", 0.03, 0.93  # short of black, which hides the centre
GREY = "#4a545e"
WARNING = "#c40018"
NOT_PRIVATE = "NOT PRIVATE – seeded or scripted noise"
MOST_DECADES = 4.0
LONG_SIDE_INCHES = 6.4
THINNEST = 0.11  # a map thinner than this, as a share of its length, would be a mere line


class Plottable(Protocol):
    """What a map needs of a release."""

    @property
    def domain(self) -> Domain: ...
    @property
    def low(self) -> IntArray: ...
    @property
    def high(self) -> IntArray: ...
    @property
    def parts(self) -> Parts: ...
    @property
    def epsilon(self) -> object: ...
    @property
    def protection(self) -> Protection: ...
    @property
    def private(self) -> bool: ...
    @property
    def mechanism(self) -> str: ...


def plot_release(
    release: Plottable, *, ax: Axes | None = None, boxes: bool = False, pixels: int = 700
) -> Figure:
    """Draw the density of a release on a map; needs no display.

    Axes beyond the first two are summed out. `boxes` adds the outlines of the leaves. Save the
    figure with its `savefig`.
    """
    domain = release.domain
    if domain.dimensions < 2:
        raise InputError(f"a map needs two axes, and this release has only {domain.names[0]!r}")
    if pixels < 1:
        raise InputError(f"a map needs at least one pixel a side, got pixels={pixels}")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot", "Drawing a map") from error
    target = _new_axes(domain) if ax is None else ax
    _draw_density(target, domain, visible_density(release, pixels))
    if boxes:
        _draw_boxes(target, domain, release.low, release.high)
    _draw_frame(target, release)
    _write_footer(target, release, is_own_figure=ax is None)
    if not release.private:
        _draw_warning(target)
    return target.figure.figure  # of axes on a part of a figure, the whole


def visible_density(release: Plottable, pixels: int) -> FloatArray:
    """Density per pixel, as rows from south to north; NaN where it cannot be told from noise."""
    cells = (release.domain.shape[0], release.domain.shape[1])
    shape = (min(pixels, cells[0]), min(pixels, cells[1]))
    parts = release.parts
    masses = rasterise(parts.low, parts.high, parts.estimates, cells, shape)
    squares = 2 * np.square(parts.scales)
    variances = rasterise(parts.low, parts.high, squares, cells, shape, power=2)
    # The running sums leave rounding errors where the mass is exactly nil.
    rounding = 1e-12 * np.abs(parts.estimates).sum()
    noise = parts.clear_deviations * np.sqrt(np.maximum(variances, 0)) + rounding
    density = (masses / _pixel_areas(release.domain, shape)).T
    return np.where(masses.T > noise.T, density, np.nan)


def _pixel_areas(domain: Domain, shape: tuple[int, int]) -> FloatArray:
    """In square kilometres for degrees, else in cells; one value per row of pixels."""
    x, y = domain.axes[:2]
    if domain.crs != CRS84:
        return np.full(shape[1], x.cells / shape[0] * (y.cells / shape[1]))
    latitudes = y.low + (np.arange(shape[1]) + 0.5) * (y.high - y.low) / shape[1]
    width = (x.high - x.low) / shape[0] * np.cos(np.radians(latitudes))
    return np.asarray(KM_PER_DEGREE**2 * width * (y.high - y.low) / shape[1])


def rasterise(
    low: IntArray,
    high: IntArray,
    masses: FloatArray,
    cells: tuple[int, int],
    shape: tuple[int, int],
    *,
    power: int = 1,
) -> FloatArray:
    """Spread the mass of each box evenly over its area, and sum it in each of `shape` pixels.

    With `power` 2 each mass counts by the square of the share that falls in a pixel, as variances
    do. The share is a product of one profile per axis, and a profile is constant but at its ends:
    so its differences are four numbers, those of a box sixteen, and two running sums undo the
    differences, at a cost of boxes plus pixels, however fine the grid.
    """
    (columns, column_steps), (rows, row_steps) = (
        _profile_steps(low[:, axis], high[:, axis], cells[axis], shape[axis], power)
        for axis in (0, 1)
    )
    width, height = shape[0] + 1, shape[1] + 1  # room for the step down after the last pixel
    steps = np.zeros(width * height)
    for column, column_step in zip(columns, column_steps, strict=True):
        for row, row_step in zip(rows, row_steps, strict=True):
            weights = masses * column_step * row_step
            steps += np.bincount(column * height + row, weights, width * height)
    raster = steps.reshape(width, height).cumsum(axis=0).cumsum(axis=1)
    return np.asarray(raster[:-1, :-1])


def _profile_steps(
    low: IntArray, high: IntArray, cells: int, pixels: int, power: int
) -> tuple[list[IntArray], list[FloatArray]]:
    """Where, and by how much, the share of a range that falls in each pixel changes.

    In units of which a pixel has `cells` and a cell has `pixels`, all edges are whole numbers:
    nothing is lost, however small a leaf is beside a pixel.
    """
    start, stop = low * pixels, high * pixels
    first, last = start // cells, (stop - 1) // cells
    length = stop - start
    head = ((np.minimum(stop, (first + 1) * cells) - start) / length) ** power
    tail = ((stop - np.maximum(start, last * cells)) / length) ** power
    # Within a single pixel there is no middle part to step up to.
    middle = np.where(first == last, head, (cells / length) ** power)
    steps = [head, middle - head, tail - middle, -tail]
    return [first, first + 1, last, last + 1], steps


def _new_axes(domain: Domain) -> Axes:
    """Axes on a figure that knows nothing of pyplot, so that no window is ever opened."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    height_to_width = _shown_ratio(domain)
    width = LONG_SIDE_INCHES * min(1.0, 1 / height_to_width)
    height = LONG_SIDE_INCHES * min(1.0, height_to_width)
    # Room for the words around the map: below a wide map also for the colour bar.
    below = 2.1 if _is_wide(domain) else 1.25
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08, compress=True)
    figure = Figure((max(width + 1.9, 5.2), height + below), dpi=150, layout=layout)
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def _true_ratio(domain: Domain) -> float:
    """Height to width on the ground; in map units where the ground is not known."""
    x, y = domain.axes[:2]
    shrinking = math.cos(math.radians((y.low + y.high) / 2)) if domain.crs == CRS84 else 1.0
    return (y.high - y.low) / ((x.high - x.low) * shrinking)


def _shown_ratio(domain: Domain) -> float:
    return min(max(_true_ratio(domain), THINNEST), 1 / THINNEST)


def _is_wide(domain: Domain) -> bool:
    return _shown_ratio(domain) < 0.55


def _draw_density(ax: Axes, domain: Domain, density: FloatArray) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, LogNorm

    x, y = domain.axes[:2]
    least, most = _colour_limits(density)
    colours = ListedColormap(colormaps[COLOURS](np.linspace(PALEST, DARKEST, 256)))
    image = ax.imshow(
        # Clipped, because below the least colour comes the blank one.
        np.clip(density, least, most),
        cmap=colours.with_extremes(bad=BLANK, under=BLANK),
        norm=LogNorm(least, most),
        extent=(x.low, x.high, y.low, y.high),
        origin="lower",
        interpolation="nearest",
        aspect=_shown_ratio(domain) * (x.high - x.low) / (y.high - y.low),
    )
    if np.isfinite(density).any():
        _draw_colour_bar(ax, image, domain)
    else:
        words = "nothing rises above the noise"
        ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", va="center", color=GREY)


def _colour_limits(density: FloatArray) -> tuple[float, float]:
    """Of the visible values but the few most extreme; between one decade and four.

    A narrow range is widened upwards: values that barely pass the noise stay pale.
    """
    visible = density[np.isfinite(density)]
    if visible.size == 0:
        return 1.0, 10.0
    least, most = (float(limit) for limit in np.percentile(visible, [1.0, 99.7]))
    return max(least, most / 10**MOST_DECADES), max(most, 10 * least)


def _draw_colour_bar(ax: Axes, image: Any, domain: Domain) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator

    is_wide = _is_wide(domain)
    bar = ax.figure.colorbar(
        image,
        ax=ax,
        location="bottom" if is_wide else "right",
        extend="min",
        extendrect=True,
        extendfrac=0.06,
        shrink=0.9,
        aspect=28,
        pad=min(0.03 * max(1.0, _shown_ratio(domain)), 0.3),  # a share of the map's width
    )
    bar.set_label("points per km²" if domain.crs == CRS84 else "points per cell")
    decades = math.log10(image.norm.vmax / image.norm.vmin)
    bar.locator = LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2.5 else (1.0,))
    bar.formatter = FuncFormatter(lambda value, _: short_number(value))
    bar.minorticks_off()
    bar.update_ticks()
    x, y, words = (
        (-0.06, 1.2, "no more than noise") if is_wide else (1.4, -0.03, "no more\nthan noise")
    )
    bar.ax.text(
        x,
        y,
        words,
        transform=bar.ax.transAxes,
        va="bottom" if is_wide else "center",
        fontsize=8,
    )


def short_number(value: float) -> str:
    """1500 as 1.5 k, 2000000 as 2 M."""
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= unit * (1 - 1e-9):
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"


def _draw_boxes(ax: Axes, domain: Domain, low: IntArray, high: IntArray) -> None:
    from matplotlib.collections import PolyCollection

    # Leaves that differ only along a summed-out axis share one outline.
    west, south, east, north = np.unique(np.hstack([low[:, :2], high[:, :2]]), axis=0).T
    x, y = domain.axes[:2]
    columns = [x.from_cells(edge) for edge in (west, east, east, west)]
    rows = [y.from_cells(edge) for edge in (south, south, north, north)]
    outlines = np.stack([np.stack(columns, axis=1), np.stack(rows, axis=1)], axis=2)
    style: dict[str, Any] = {"facecolors": "none", "edgecolors": GREY, "linewidths": 0.25}
    ax.add_collection(PolyCollection(list(outlines), alpha=0.5, **style), autolim=False)


def _draw_frame(ax: Axes, release: Plottable) -> None:
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    domain = release.domain
    ax.set_title(f"{release.mechanism},  ε = {release.epsilon}", fontsize=13, pad=9)
    on_earth = domain.crs == CRS84
    ax.set_xlabel("longitude (°)" if on_earth else domain.names[0])
    ax.set_ylabel("latitude (°)" if on_earth else domain.names[1])
    width, height = _size_in_inches(ax)
    for axis, room in ((ax.xaxis, width / 0.9), (ax.yaxis, height / 0.5)):
        ticks = min(max(int(room), 2), 6)
        axis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 5, 10]))
        plain = ScalarFormatter(useOffset=False)
        plain.set_scientific(False)
        axis.set_major_formatter(plain)
    ax.tick_params(labelsize=9)
    ax.tick_params(axis="x", rotation=90 if width < 1.5 else 0)
    if on_earth:
        _draw_scale_bar(ax, domain)


def _draw_scale_bar(ax: Axes, domain: Domain) -> None:
    from matplotlib.offsetbox import AnchoredOffsetbox, AuxTransformBox, TextArea, VPacker
    from matplotlib.patches import Rectangle

    x, y = domain.axes[:2]
    km_per_unit = KM_PER_DEGREE * math.cos(math.radians((y.low + y.high) / 2))
    length = round_length((x.high - x.low) * km_per_unit / 4)
    label = f"{length * 1000:g} m" if length < 1 else f"{length:g} km"
    line = AuxTransformBox(ax.transData)
    line.add_artist(Rectangle((0, 0), length / km_per_unit, 0, edgecolor="black", linewidth=2))
    packed = VPacker(pad=0, sep=4, align="center", children=[line, TextArea(label)])
    anchored = AnchoredOffsetbox("lower left", child=packed, pad=0.5, borderpad=0.7)
    anchored.patch.set(facecolor="white", edgecolor="none", alpha=0.8)
    ax.add_artist(anchored)


def round_length(most: float) -> float:
    """The greatest of 1, 2 or 5 times a power of ten that is no more than `most`."""
    power = 10.0 ** math.floor(math.log10(most))
    # The half is for a logarithm that was rounded up to the next whole number.
    return next(step * power for step in (5, 2, 1, 0.5) if step * power <= most)


def _write_footer(ax: Axes, release: Plottable, *, is_own_figure: bool) -> None:
    unit = release.protection.unit
    words = f"Differentially private counts: ε-DP per {unit}, ε = {release.epsilon}"
    if not release.private:
        words = f"No privacy guarantee: the noise only imitates ε = {release.epsilon}"
    if _shown_ratio(release.domain) != _true_ratio(release.domain):
        words += "\nThe map is stretched: its sides are not to the same scale"
    if is_own_figure:
        ax.figure.supxlabel(words, fontsize=8, color=GREY)
    else:  # the rest of the figure is the caller's
        ax.set_xlabel(f"{ax.get_xlabel()}\n{words}", fontsize=8)


def _draw_warning(ax: Axes) -> None:
    width, height = _size_in_inches(ax, final=True)
    upright = height > 1.5 * width
    text = ax.text(
        0.5,
        0.5,
        NOT_PRIVATE,
        transform=ax.transAxes,
        ha="center",
        va="center",
        rotation=90 if upright else 0,
        color="white",
        fontsize=12,
        weight="bold",
        zorder=10,
        bbox={"facecolor": WARNING, "edgecolor": "none", "boxstyle": "square,pad=0.45"},
    )
    extent = text.get_window_extent()
    length = max(extent.width, extent.height) / ax.figure.dpi
    text.set_fontsize(12 * 0.92 * (height if upright else width) / length)


def _size_in_inches(ax: Axes, *, final: bool = False) -> tuple[float, float]:
    if final:
        ax.figure.figure.draw_without_rendering()  # settles the layout
    ax.apply_aspect()
    extent = ax.get_window_extent()
    return extent.width / ax.figure.dpi, extent.height / ax.figure.dpi
