"""What other packages offer through entry points. It is found by name, and loaded only when it is asked for."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from functools import cache
from glob import escape, iglob
from pathlib import Path
from typing import TYPE_CHECKING, Any

from htf.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

MECHANISMS, COMMANDS = "htf.mechanisms", "htf.commands"
KINDS = {MECHANISMS: "mechanism", COMMANDS: "command"}
# The names that our own bench has, for whoever asks for one without it.
BENCH, BENCH_EXTRA = "htf-dp-bench", "bench"
OF_THE_BENCH = {
    COMMANDS: {"evaluate", "paper"},
    MECHANISMS: {
        "ag", "dawa", "dpcube", "hb", "hdmm", "kdtree", "kdtree-cell", "privlet", "privtree",
        "quadtree", "singular", "ug", "uniform",
    },
}  # fmt: skip


@cache
def offers(group: str) -> dict[str, list[EntryPoint]]:
    """What is offered, by name. Nothing is loaded yet."""
    from importlib.metadata import entry_points  # slow to load

    found: dict[str, list[EntryPoint]] = defaultdict(list)
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        found[point.name].append(point)
    return dict(found)


def is_named(group: str, name: str) -> bool:
    """Whether a package beside ours may offer something under this name. It takes a tenth of the time of `offers`."""
    line = re.compile(rf"^\s*{re.escape(name)}\s*=", re.MULTILINE)
    for folder in sys.path:
        for path in iglob(f"{escape(folder or '.')}/*-info/entry_points.txt"):
            text = Path(path).read_text("utf-8", "replace")
            if line.search(text.partition(f"[{group}]")[2].partition("\n[")[0]):
                return True
    return False


def load(group: str, name: str, *, is_ours: bool) -> tuple[Any, str]:
    """What a package offers under this name, and where that is from, in words.

    Which code runs under a name must never depend on what is found first, so a name that two have is refused.
    Whatever a package raises is its own failure, not ours.
    """
    points, kind = offers(group)[name], KINDS[group]
    others = ["htf-dp itself"] * is_ours + sorted(map(_package, points))
    if len(others) > 1:
        raise InputError(
            f"{' and '.join(others)} have a {kind} of this name. Uninstall one of them, or rename its {kind}"
        )
    point = points[0]
    try:
        found = point.load()
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{_package(point)} could not load it from {point.value} ({type(error).__name__}: {error!s:.200}). "
            f"Repair or uninstall that package; all other {kind}s work"
        ) from error
    return found, f"{point.value} of {_package(point)}"


def missing(group: str, name: str) -> MissingExtraError | None:
    """How to get what the bench has, if it is not installed."""
    if name not in OF_THE_BENCH[group] or name in offers(group):
        return None
    return MissingExtraError(BENCH, BENCH_EXTRA, f"The {KINDS[group]} {name!r}")


def _package(point: EntryPoint) -> str:
    return "an unknown package" if point.dist is None else f"the package {point.dist.name!r}"
