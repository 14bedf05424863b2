"""The names that we promise: those of `htf`, and the types that the page on Python names with their modules."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs/reference/python.md"


def on_page() -> list[str]:
    """What the page explains, as it is written there."""
    return re.findall(r"^::: (htf[\w.]+)$", PAGE.read_text(), re.M)


def promised() -> dict[str, Any]:
    """The objects by their last names, of which no two are the same."""
    paths = [name.rpartition(".") for name in on_page()]
    found = {name: getattr(import_module(module), name) for module, _, name in paths}
    assert len(found) == len(paths)
    return found
