"""The registry: every mechanism defined in a file of this folder, by name.

Adding a mechanism is adding a file; nothing else changes.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Any

from htf.base import arguments
from htf.errors import InputError
from htf.mechanisms.base import Mechanism


@cache
def registry() -> dict[str, type[Mechanism]]:
    """All mechanisms, by name."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    ours = [cls for cls in _below(Mechanism) if cls.__module__.startswith(__name__)]
    return dict(sorted((cls.name, cls) for cls in ours if "name" in vars(cls)))


def _below(cls: Any) -> list[type[Mechanism]]:
    """All subclasses; one without a name of its own is what others have in common."""
    return [found for child in cls.__subclasses__() for found in (child, *_below(child))]


def make_mechanism(name: str, settings: Mapping[str, Any] | None = None) -> Mechanism:
    """The mechanism called `name`, with `settings` in place of its defaults: `{"height": 12}`.

    Raises InputError for a name or a parameter that is not known, or a value that it cannot have.
    """
    if arguments.text(name, "the name of a mechanism") not in registry():
        raise InputError(f"there is no mechanism {name!r:.100}; there are {', '.join(registry())}")
    return registry()[name].from_settings({} if settings is None else settings)
