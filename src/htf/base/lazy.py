"""Names of a package that are loaded when they are first used, from the list in its stub."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pkgutil import get_data
from typing import Any

STUB = "__init__.pyi"


def loader(
    package: str, distribution: str
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """The `__all__`, `__getattr__` and `__dir__` of a package whose stub imports its public names."""
    homes = _homes(package)

    def load(name: str) -> Any:
        if name == "__version__":
            from importlib.metadata import version

            return version(distribution)
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return sorted(homes), load, lambda: sorted([*homes, "__version__"])


def _homes(package: str) -> dict[str, str]:
    """Where each public name is defined."""
    stub = ast.parse(get_data(package, STUB) or b"")
    found = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in found for alias in node.names}
