"""Draws layers: `draw` into a picture or a page for a browser, `plot_release` as a figure of one release.

Which layers are given decides how they are arranged: alone, side by side, or as steps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from htf.base import arguments, figures
from htf.errors import InputError
from htf.files import write_text, write_whole
from htf.maps.kinds import check_layers, releases_of
from htf.maps.layer import Layer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from htf.release.release import Release

PAGE = ".html"
KINDS = (PAGE, *figures.PICTURES)


def draw(
    layers: Sequence[Layer],
    output: str | Path,
    *,
    boxes: bool = False,
    title: str | None = None,
    basemap: bool | str | Path = True,
    style: str | None = None,
    overwrite: bool = False,
) -> None:
    """Draw layers into a file: a picture, which needs matplotlib, or a map for a browser that works offline.

    One layer is drawn alone, and two side by side with the same colours. Layers that are steps in time or along an axis
    become small multiples in a picture, and a slider through them on a page.

    Parameters
    ----------
    layers : sequence of Layer
        What to draw, made with `Layer.of`, `Layer.distinct` or `Layer.periods`, and with `by` and `minus` of a layer.
    output : str or Path
        The file, ending in .html, .png, .svg or .pdf.
    boxes : bool
        Whether to add the outlines of the leaves.
    title : str, optional
        A title above the map.
    basemap : bool, str or Path
        Whether to add water, borders and names of places. For a page also a .pmtiles file of vector tiles.
    style : str, optional
        For a page, the web address of a base map, which the page then downloads.
    overwrite : bool
        Whether an existing file may be replaced.

    Raises
    ------
    InputError
        If the layers cannot be drawn together, or not like this.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> matrix = htf.FrequencyMatrix.from_dense(domain, [[500, 20], [0, 30]])
    >>> release = htf.publish(matrix, 1)
    >>> htf.draw([htf.Layer.of(release, "city")], "city.png", boxes=True)
    """
    given = check_layers(layers)
    basemap = Path(basemap) if isinstance(basemap, str) else basemap
    path = check_looks(output, style, basemap)
    arguments.flag(boxes, "boxes")
    if title is not None:
        arguments.text(title, "the title")
    arguments.flag(overwrite, "overwrite")
    if path.suffix.lower() == PAGE:
        from htf.maps.browser.page import page_of

        text = page_of(given, boxes=boxes, title=title, basemap=basemap, style=style)
        write_text(path, text, overwrite=overwrite)
        return
    from htf.maps.picture import figure_of

    figure = figure_of(given, boxes=boxes, basemap=basemap is not False)
    figures.add_title(figure, title)
    releases = releases_of(given)
    name = title or "; ".join(map(repr, releases))
    words = "\n".join(dict.fromkeys(one.statement for one in releases))
    kind = path.suffix.lower().removeprefix(".")
    write = partial(figures.save_picture, figure, kind=kind, title=name, words=words)
    write_whole(path, write, overwrite=overwrite)


def check_looks(output: str | Path, style: str | None, basemap: object) -> Path:
    """The file to write. Refuses an ending or a base map that cannot be drawn, before anything is read."""
    path = arguments.path(output, "output")
    if path.suffix.lower() not in KINDS:
        raise InputError(f"a map is a {' or '.join(KINDS)} file, got {path.name!r}")
    if style is not None and not re.match(r"https?://\S+$", arguments.text(style, "style")):
        raise InputError(
            f"--style takes the web address of a MapLibre style, or of tiles with {{z}}/{{x}}/{{y}}, got {style!r}"
        )
    is_page = path.suffix.lower() == PAGE
    if style is not None and not is_page:
        raise InputError("--style is for maps in a browser: write .html")
    if isinstance(basemap, Path):
        if style is not None:
            raise InputError("--basemap and --style exclude each other: leave one out")
        if not is_page:
            raise InputError("--basemap is for maps in a browser: write .html, or leave it out")
        from htf.maps.browser.street_tiles import Archive

        Archive(basemap).close()
    else:
        arguments.flag(basemap, "basemap")
    return path


def plot_release(
    release: Release,
    *,
    ax: Axes | None = None,
    boxes: bool = False,
    pixels: int = 700,
    by: str | None = None,
    title: str | None = None,
    basemap: bool = False,
    **options: Any,
) -> Figure:
    """The figure of one release. Other options are those of `Layer.of`."""
    from htf.maps.picture import figure_of

    layer = Layer.of(release, **options)
    arguments.flag(boxes, "boxes")
    if ax is not None:
        from matplotlib.axes import Axes

        arguments.instance(ax, Axes, "ax", "those of a figure of matplotlib")
        if title is not None:
            raise InputError("a title stands above a whole figure: leave out title, or ax")
    layers = [layer] if by is None else layer.by(by)
    size = arguments.whole(pixels, "pixels")
    arguments.flag(basemap, "basemap")
    figure = figure_of(layers, ax=ax, boxes=boxes, pixels=size, basemap=basemap)
    figures.add_title(figure, title)
    return figure
