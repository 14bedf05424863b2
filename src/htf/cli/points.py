"""Options that several commands share: how text files are written, what records mean, and recipes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from htf.base.options import READ
from htf.cli.declared import option_of, options_of, take, take_typed
from htf.ingest.reading import Reading, Written
from htf.recipes.files import SUFFIX, read_fields
from htf.recipes.recipe import Recipe

F = TypeVar("F", bound=Callable[..., Any])


def written_options(command: F) -> F:
    """A decorator: the options that say how text files are written."""
    return options_of(Written)(command)


def take_written(given: dict[str, Any]) -> Written:
    """Remove those options from what the command line gave."""
    return Written(**take(Written, {READ.key: given.pop(READ.key)}))


def reading_option(name: str, **changes: Any) -> Callable[[F], F]:
    """A decorator: one option of `htf release` that says what its records mean, for a command without records."""
    return option_of(Reading, name, **changes)


def name_of_points(source: str) -> str:
    """For progress bars. An address may hold a password, so none of it is shown."""
    return "the database" if "://" in source else Path(source).name


def read_made_up(count: str | None, per: str | None, max_records: int | str | None) -> Reading:
    """What is counted of made-up people, by the rules of `htf release`."""
    return Reading(user="person", time="time", count=count, per=per, max_records=max_records)


def is_recipe(points: str) -> bool:
    """Whether a command is given a recipe in place of points."""
    return points.lower().endswith(SUFFIX)


def fill_recipe(points: str, given: dict[str, Any], **usual: Any) -> Recipe:
    """The recipe of the options; or that of a file, with the options that were given in place of what it says."""
    if not is_recipe(points):
        return Recipe(**{"source": points, **usual, **take(Recipe, given)})
    found = {"source": None, **usual, **read_fields(Path(points)), **take_typed(Recipe, given)}
    return Recipe(**found)
