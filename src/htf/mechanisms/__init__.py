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
from functools import cache
from typing import Any

from htf.base import arguments, plugins
from htf.curator.window import Steps, Window
from htf.errors import InputError
from htf.frame.tree import RegionTree
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
    "RegionTree",
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


def registry() -> dict[str, type[Mechanism]]:
    """All mechanisms that can be used, by name. Every package that offers one is loaded."""
    offered = {name: _offered(name) for name in plugins.offers(plugins.MECHANISMS)}
    return {**_own(), **{name: found for name, found in offered.items() if isinstance(found, type)}}


def refused() -> dict[str, str]:
    """Why mechanisms of other packages cannot be used, by the name that they offer.

    One that is broken, or that has the name of another, leaves the others as they are. Whoever asks for
    it by name is told.
    """
    offered = {name: _offered(name) for name in plugins.offers(plugins.MECHANISMS)}
    return {name: reason for name, reason in offered.items() if isinstance(reason, str)}


def find_mechanism(name: str) -> type[Mechanism] | None:
    """The mechanism of this name, if it can be used. No package is loaded but the one that offers it."""
    found = _own().get(name) or (_offered(name) if _is_offered(name) else None)
    return found if isinstance(found, type) else None


def make_mechanism(name: str, **settings: Any) -> Mechanism:
    """Make the mechanism of this name, with `settings` in place of its defaults.

    Parameters
    ----------
    name : str
        The name. `htf mechanisms` lists them.
    **settings
        Parameters, as values or as text.

    Returns
    -------
    Mechanism
        The mechanism.

    Raises
    ------
    MissingExtraError
        If the mechanism is one of the bench, which is not installed.
    InputError
        If the name or a parameter is unknown, a value is not allowed, or the package that offers the
        mechanism is broken.

    Examples
    --------
    >>> import htf
    >>> htf.make_mechanism("htf-paper", stop_count=50).parameters()["stop_count"]
    50
    """
    arguments.text(name, "the name of a mechanism")
    reason = _offered(name) if _is_offered(name) else None
    if isinstance(reason, str):
        raise InputError(f"the mechanism {name!r:.100} cannot be used: {reason}")
    found = find_mechanism(name)
    if found is None:
        unknown = InputError(
            f"there is no mechanism {name!r:.100}; there are {', '.join(registry())}"
        )
        raise plugins.missing(plugins.MECHANISMS, name) or unknown
    return found.from_settings(settings)


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


def _is_offered(name: str) -> bool:
    return name in plugins.offers(plugins.MECHANISMS)


@cache
def _offered(name: str) -> type[Mechanism] | str:
    """The mechanism that another package offers under this name, or why it was refused."""
    try:
        cls, where = plugins.load(plugins.MECHANISMS, name, is_ours=name in _own())
        _check(cls, where, name)
    except InputError as error:
        return str(error)
    return cls  # type: ignore[no-any-return]


def _check(cls: Any, where: str, name: str) -> None:
    """It is a mechanism, and says so under the name of its entry point."""
    if not (isinstance(cls, type) and issubclass(cls, Mechanism)) or inspect.isabstract(cls):
        raise InputError(f"{where} must be a subclass of htf.mechanisms.Mechanism with a `build`")
    said = getattr(cls, "citation", None) and (cls.__doc__ or "").strip()
    if getattr(cls, "name", None) != name or not said:
        raise InputError(
            f"{where} needs a docstring, a citation, and the name {name!r:.100} of its entry point"
        )
