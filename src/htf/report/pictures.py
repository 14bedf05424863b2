"""The pictures of a report, as PNG inside the file: the map, and the sizes of its leaves. Public."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

from htf.errors import InputError, MissingExtraError
from htf.frame.domain import Domain
from htf.maps.layer import Layer
from htf.maps.picture import figure_of, new_figure
from htf.maps.window import Frame
from htf.release.release import Release
from htf.report.sizes import LeafSizes, size_raster
from htf.report.subject import Subject

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 140
SIZE_INCHES = 2.3
COLOURS = "viridis"


def map_picture(subject: Subject) -> str | None:
    """The address of the picture of the map, or of the latest maps of a series; None if there is nothing to draw."""
    release = subject.release
    if not release.domain.has_shapes:
        return None
    try:
        return _address(_figure(subject))
    except MissingExtraError:
        raise
    except InputError:  # zones may have no outlines
        return None


def _figure(subject: Subject) -> Figure:
    if subject.series is not None:
        figure = figure_of(Layer.periods(subject.series))
        figure.suptitle("")  # the page says it in words
    else:
        figure = subject.release.plot(pixels=500)
        figure.axes[0].set_title("")
    if not subject.release.domain.outlined:  # of zones, it says what is not drawn
        figure.supxlabel("")
    return figure


def size_picture(release: Release, sizes: LeafSizes) -> str:
    """The address of a small map of the sizes of leaves."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    frame = Frame(Domain(release.domain.axes[:2], release.domain.crs))
    ratio = min(max(frame.ratio, 0.5), 1.6)
    figure = new_figure((SIZE_INCHES + 0.6, SIZE_INCHES * ratio + 0.1))
    ax = figure.add_subplot()
    raster = size_raster(release, sizes)
    image = ax.imshow(raster, origin="lower", cmap=COLOURS, aspect="auto", interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    bar = figure.colorbar(image, ax=ax, shrink=0.96, aspect=22)
    bar.locator = MaxNLocator(4)
    bar.formatter = FuncFormatter(lambda value, _: sizes.told(10**value))
    bar.update_ticks()
    bar.ax.tick_params(labelsize=7)
    return _address(figure)


def _address(figure: Figure) -> str:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DPI, metadata={"Software": None})
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
