"""`htf compare`: what changed from one release to another."""

from __future__ import annotations

from pathlib import Path

import htf
from htf.base.options import argument
from htf.cli import declared
from htf.cli.questions import Asking, ask

SQUARES = 8  # along the longer side of the map, where nothing is asked for in particular


@declared.command()
def compare(
    before: Path = argument("BEFORE"),
    after: Path = argument("AFTER"),
    asking: Asking = declared.record_of(Asking),
) -> None:
    """Show what changed from the release BEFORE to the release AFTER, and what of it is more than noise.

    Without boxes, polygons or zones, the map that both cover is divided into squares. The change is the difference of
    the two counts. Its interval comes from the raw noisy counts of both, whose noise was drawn apart.

    A change is marked as more than noise so that the chance of even one false mark in the whole table is at most 5 %.
    """
    from htf.query.change import check_comparable

    asking.check((before, after))
    old, new = (htf.Release.load(one) for one in (before, after))
    check_comparable(new, old)
    if asking.is_of_nothing and new.domain.has_map:
        question = _squares(asking, new, old)
    else:
        question = asking.question(new.domain)
    changes = ask("comparing", lambda: new.ask(question).minus(old.ask(question)))
    asking.give_out(changes, [])


def _squares(asking: Asking, new: htf.Release, old: htf.Release) -> htf.Question:
    """Squares of what both maps cover."""
    import numpy as np

    from htf.maps.window import Window

    windows = [Window.of(one.domain, ("x", "y"), asking.where) for one in (new, old)]
    shared = windows[0].shared(windows[1])
    widths = np.ptp(shared.ranges, axis=1)[list(shared.drawn)]
    columns, rows = np.maximum(np.rint(SQUARES * widths / widths.max()), 1).astype(int).tolist()
    return htf.Question.boxes(windows[0].rows(shared.grid((columns, rows))))
