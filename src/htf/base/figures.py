"""Figures of matplotlib that open no window, and that a notebook shows at once. Needs matplotlib."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from htf.base import arguments
from htf.base.extras import need

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = (".png", ".svg", ".pdf")  # the endings that pictures may have
DOTS_PER_INCH = 150
TITLE_SIZE, TITLE_INCHES = 15, 0.4


def new_figure(size: tuple[float, float], **options: Any) -> Figure:
    """A figure made without pyplot, so that no window ever opens."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure: Figure = _kind()(size, **{"dpi": DOTS_PER_INCH, **options})
    FigureCanvasAgg(figure)
    return figure


@cache
def _kind() -> Any:
    """A figure that tells a notebook how it looks. Without pyplot, notebooks would print its name instead."""
    need("Drawing", "matplotlib", extra="plot")
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png")
            return buffer.getvalue()

    return ShownFigure


def add_title(figure: Figure, title: str | None) -> None:
    """Put a title of one's own above everything, if there is one."""
    if title is None:
        return
    below = figure.get_suptitle()
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + TITLE_INCHES)
    text = arguments.text(title, "the title").replace("$", r"\$")  # which would begin a formula
    figure.suptitle(f"{text}\n{below}" if below else text, fontsize=None if below else TITLE_SIZE)


def save_picture(figure: Figure, path: Path, kind: str, title: str, words: str) -> None:
    """Write a picture with words in its metadata. The same figure always gives the same file: there is no date in it, and
    internal names of an SVG are not random."""
    from matplotlib import rc_context

    metadata: dict[str, Any] = {"Title": title, "Description": words}
    if kind == "svg":
        metadata["Date"] = None
    if kind == "pdf":
        metadata = {"Title": title, "Subject": words, "CreationDate": None}
    with rc_context({"svg.hashsalt": "htf"}):
        figure.savefig(path, format=kind, dpi=DOTS_PER_INCH, metadata=metadata)
