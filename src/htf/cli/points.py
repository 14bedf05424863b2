"""What several commands do with points: how these are named on a screen, and recipes in place of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from htf.cli.declared import take, take_typed
from htf.recipes.files import SUFFIX, read_fields
from htf.recipes.recipe import Recipe


def name_of_points(source: str) -> str:
    """For progress bars. An address may hold a password, so none of it is shown."""
    return "the database" if "://" in source else Path(source).name


def is_recipe(points: str) -> bool:
    """Whether a command is given a recipe in place of points."""
    return points.lower().endswith(SUFFIX)


def fill_recipe(points: str, given: dict[str, Any], **usual: Any) -> Recipe:
    """The recipe of the options; or that of a file, with the options that were given in place of what it says."""
    if not is_recipe(points):
        return Recipe(**{"source": points, **usual, **take(Recipe, given)})
    found = {"source": None, **usual, **read_fields(Path(points)), **take_typed(Recipe, given)}
    return Recipe(**found)
