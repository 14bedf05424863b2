"""The view of a release in a notebook: a small picture, the facts, and the statement folded away."""

from __future__ import annotations

import base64
import io
from html import escape

from htf.base.figures import new_figure
from htf.errors import InputError
from htf.estimation.level import LEVEL_TEXT
from htf.maps.picture import NOT_PRIVATE, unit_of
from htf.query.answer_texts import show_count, show_interval
from htf.release.release import Release

PIXELS = 200  # per side; the picture is made whenever a notebook cell shows a release
INCHES = 3.2


def release_html(release: Release) -> str:
    """HTML without scripts, styled by the notebook itself; without matplotlib there is no picture."""
    unit = unit_of(release.protection)
    total, quantity = release.count().to_dicts()[0], release.quantity
    interval = show_interval(total, quantity)
    rows = {
        "mechanism": release.mechanism,
        "privacy": f"ε = {release.epsilon} for each {unit}" if release.private else NOT_PRIVATE,
        release.counted: f"{show_count(total['count'], quantity)} ({LEVEL_TEXT}: {interval})",
        "leaves": f"{len(release):,}",
        "axes": "; ".join(map(str, release.domain.axes)),
        "reference system": release.domain.crs or "none",
    }
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in rows.items()
    )
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:16px;align-items:flex-start">'
        f'{_picture(release)}<div style="flex:1;min-width:280px"><table><tbody>{cells}</tbody></table>'
        f"<details><summary>What is guaranteed</summary><p style='max-width:80ch'>{escape(release.statement)}</p>"
        "</details></div></div>"
    )


def _picture(release: Release) -> str:
    """The map alone, without text around it; of trips, where they start."""
    if not release.domain.has_shapes:
        return ""
    try:
        png = _thumbnail(release)
    except (ImportError, InputError):  # zones may have no outlines
        return ""
    data = base64.b64encode(png).decode()
    return f'<img alt="A map of the release" width="260" src="data:image/png;base64,{data}">'


def _thumbnail(release: Release) -> bytes:
    from htf.maps.kinds import Areas, Drawn, Grid
    from htf.maps.paint import paint, scale_of

    names = release.domain.names
    layer: Drawn = (
        Areas(release, release.mechanism)
        if release.domain.outlined
        else Grid(release, release.mechanism, (names[0], names[1]))
    )
    values = layer.values(PIXELS)
    figure = new_figure((INCHES, INCHES * min(layer.frame.ratio, 2.0)), dpi=100)
    ax = figure.add_axes((0, 0, 1, 1))
    paint(ax, layer, values, scale_of([layer], [values]))
    ax.set_axis_off()
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()
