"""Recipes as TOML files: the names of the fields with their values. What is as usual is left out.

Names of files in a recipe are relative to the current folder, as on the command line.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import fields
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from htf.errors import InputError
from htf.files import write_text
from htf.recipes.recipe import LISTS, Recipe, given_fields

SUFFIX = ".toml"
# A domain may hold a whole layer: the options say where that is. What a charge is called is for whoever makes the release.
NOT_IN_FILES = ("domain", "inside", "columns", "label")
NAMES = tuple(one.name for one in fields(Recipe) if one.name not in NOT_IN_FILES)


def read_fields(path: Path) -> dict[str, Any]:
    """What a recipe file gives, by the names of fields. Refuses names that are none."""
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # of TOML, of texts, of numbers, of nested lists
        raise InputError(f"{path} is no recipe: {str(error)[:200]}") from None
    if unknown := [name for name in found if name not in NAMES]:
        raise InputError(
            f"{path}: a recipe has no {', '.join(unknown)}. Its names are {', '.join(NAMES)}"
        )
    if not isinstance(found.get("source", ""), str):
        raise InputError(f"{path}: the source of a recipe file is the name of a file or an address")
    return {name: _of_times(value) for name, value in found.items()}


def load_recipe(path: Path) -> Recipe:
    """The recipe that a file describes."""
    return Recipe(**read_fields(path))


def save_recipe(recipe: Recipe, path: Path, *, overwrite: bool = False) -> None:
    """Write a recipe that `load_recipe` reads as the same."""
    write_text(path, to_toml(recipe), overwrite=overwrite)


def to_toml(recipe: Recipe) -> str:
    """A recipe as the text of a TOML file."""
    lines = []
    for name, value in given_fields(recipe).items():
        if name == "label":
            continue
        if name in NOT_IN_FILES:
            raise InputError(
                "a recipe with a domain cannot be a file: say where the map is by bounds, around or zones"
            )
        lines.append(f"{name} = {_as_toml(name, value)}")
    return "\n".join([*lines, ""])


def _as_toml(name: str, value: Any) -> str:
    if name in ("since", "until"):
        value = datetime.fromtimestamp(value, UTC).replace(tzinfo=None).isoformat()
    if isinstance(value, int):
        return json.dumps(value)
    if isinstance(value, (str, Path)):
        _check_no_password(name, str(value))
        return _text(str(value))
    if name in LISTS and all(isinstance(one, str) for one in value):
        return f"[{', '.join(map(_text, value))}]"
    raise InputError(
        f"the {name} of this recipe is an object of Python, which no file can hold: name a file, or leave it out"
    )


def _check_no_password(name: str, value: str) -> None:
    """Recipes are passed on."""
    if name == "source" and "://" in value and ":" in urlsplit(value).netloc.rpartition("@")[0]:
        raise InputError(
            "the address of this recipe has a password, which no file should hold: leave it out, and write it into ~/.pgpass"
        )


def _text(text: str) -> str:
    """TOML takes the texts of JSON, but for one control character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{text!r} is no text that a recipe file can hold") from None
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _of_times(value: Any) -> Any:
    """Dates and times of TOML as the texts that options take."""
    return value.isoformat() if isinstance(value, date) else value
