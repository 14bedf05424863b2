"""The registry: every mechanism by name, those of this folder and those of other packages.

Adding a mechanism here is adding a file; nothing else changes. Another package offers one through the
entry point group `htf.mechanisms`, whose entry has the name of the mechanism and leads to its class.

Whoever writes a mechanism needs only the names that this module gives. A mechanism from elsewhere keeps
to the same contract: it asks through a Window and never holds data.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from htf.base import arguments
from htf.curator.window import Steps, Window
from htf.errors import InputError
from htf.mechanisms.base import (
    Histogram,
    Mechanism,
    parameter,
    read_epsilon,
    read_integer,
    read_number,
    read_optional_integer,
    read_share,
    read_text,
)

__all__ = [
    "Histogram",
    "Mechanism",
    "Steps",
    "Window",
    "find_mechanism",
    "make_mechanism",
    "parameter",
    "read_epsilon",
    "read_integer",
    "read_number",
    "read_optional_integer",
    "read_share",
    "read_text",
    "refused",
    "registry",
]

GROUP = "htf.mechanisms"


def registry() -> dict[str, type[Mechanism]]:
    """All mechanisms that can be used, by name. Every package that offers one is loaded."""
    offered = {name: _offered(name) for name in _offers()}
    return {**_own(), **{name: found for name, found in offered.items() if isinstance(found, type)}}


def refused() -> dict[str, str]:
    """Why mechanisms of other packages cannot be used, by the name that they offer.

    One that is broken, or that has the name of another, leaves the others as they are. Whoever asks for
    it by name is told.
    """
    offered = {name: _offered(name) for name in _offers()}
    return {name: reason for name, reason in offered.items() if isinstance(reason, str)}


def find_mechanism(name: str) -> type[Mechanism] | None:
    """The mechanism of this name, if it can be used. No package is loaded but the one that offers it."""
    found = _own().get(name) or (_offered(name) if name in _offers() else None)
    return found if isinstance(found, type) else None


def make_mechanism(name: str, settings: Mapping[str, Any] | None = None) -> Mechanism:
    """Make the mechanism of this name, with `settings` in place of its defaults.

    Parameters
    ----------
    name : str
        The name. `htf mechanisms` lists them.
    settings : mapping, optional
        Parameters by name, as values or as text.

    Returns
    -------
    Mechanism
        The mechanism.

    Raises
    ------
    InputError
        If the name or a parameter is unknown, a value is not allowed, or the package that offers the
        mechanism is broken.

    Examples
    --------
    >>> import htf
    >>> htf.make_mechanism("singular", {"most_cells": 4096}).parameters()
    {'most_cells': 4096}
    """
    arguments.text(name, "the name of a mechanism")
    reason = _offered(name) if name in _offers() else None
    if isinstance(reason, str):
        raise InputError(f"the mechanism {name!r:.100} cannot be used: {reason}")
    found = find_mechanism(name)
    if found is None:
        raise InputError(f"there is no mechanism {name!r:.100}; there are {', '.join(registry())}")
    return found.from_settings({} if settings is None else settings)


@cache
def _own() -> dict[str, type[Mechanism]]:
    """Those of this folder."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    ours = [cls for cls in _below(Mechanism) if cls.__module__.startswith(f"{__name__}.")]
    return dict(sorted((cls.name, cls) for cls in ours if "name" in vars(cls)))


def _below(cls: Any) -> list[type[Mechanism]]:
    """All subclasses; one without a name of its own is what others have in common."""
    return [found for child in cls.__subclasses__() for found in (child, *_below(child))]


@cache
def _offers() -> dict[str, list[EntryPoint]]:
    """What other packages offer, by name. Nothing is loaded yet."""
    offers: dict[str, list[EntryPoint]] = defaultdict(list)
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        offers[point.name].append(point)
    return dict(offers)


@cache
def _offered(name: str) -> type[Mechanism] | str:
    """The mechanism that another package offers under this name, or why it was refused."""
    points = _offers()[name]
    try:
        _check_alone(name, points)
        return _load(points[0])
    except InputError as error:
        return str(error)


def _check_alone(name: str, points: list[EntryPoint]) -> None:
    """Which code runs under a name must never depend on what is found first."""
    others = ["htf-dp itself"] if name in _own() else []
    others += sorted(map(_package, points))
    if len(others) > 1:
        raise InputError(
            f"{' and '.join(others)} have a mechanism of this name. Uninstall one of them, or rename its mechanism"
        )


def _load(point: EntryPoint) -> type[Mechanism]:
    """The class behind an entry point. Whatever its package raises is its own failure, not ours."""
    try:
        cls = point.load()
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{_package(point)} could not load it from {point.value} ({type(error).__name__}: {error!s:.200}). "
            "Repair or uninstall that package; all other mechanisms work"
        ) from error
    if not (isinstance(cls, type) and issubclass(cls, Mechanism)) or inspect.isabstract(cls):
        raise InputError(
            f"{point.value} of {_package(point)} must be a subclass of htf.Mechanism with a `build`"
        )
    said = getattr(cls, "citation", None) and (cls.__doc__ or "").strip()
    if getattr(cls, "name", None) != point.name or not said:
        raise InputError(
            f"{point.value} of {_package(point)} needs a docstring, a citation, and the name {point.name!r:.100} of "
            "its entry point"
        )
    return cls


def _package(point: EntryPoint) -> str:
    return "an unknown package" if point.dist is None else f"the package {point.dist.name!r}"
