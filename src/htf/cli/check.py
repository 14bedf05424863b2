"""`htf check`: look at points before a release, for the curator's eyes only."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from htf.cli.declared import options_of, take, take_typed
from htf.cli.options import json_option
from htf.cli.points import name_of_points
from htf.cli.screen import progress_bar, say, say_json
from htf.errors import InputError
from htf.ingest.reading import Reading
from htf.recipes.files import SUFFIX
from htf.recipes.maps import MapOptions

if TYPE_CHECKING:
    from htf.frame.domain import Domain

OF_A_MAP = ("bounds", "around", "zones", "by", "map_crs")
NOT_OF_THE_MAP = (
    "cells", "within", "elsewhere", "dest_x", "dest_y", "dest_zones", "dest_by", "dest_within", "axes",
    "categories", "other",
)  # fmt: skip
NOT_OF_POINTS = (
    "count", "per", "max_records", "once_per", "weight", "max_weight", "since", "until", "allow_empty", "engine",
)  # fmt: skip


@click.command()
@click.argument("points")
@options_of(MapOptions, without=NOT_OF_THE_MAP)
@options_of(Reading, without=NOT_OF_POINTS)
@json_option
def check(points: str, as_json: bool, **given: Any) -> None:
    """Look at points before a release. For the curator's eyes only.

    It counts rows, different people and what cannot be read, exactly and without noise: do not publish what it prints. It
    guesses the options that you leave out, advises on what it found, and ends with a command for `htf release`. It
    writes nothing and charges nothing.

    POINTS is as for `htf release`. Of a recipe (.toml), which has no options beside it, the records are looked for along
    all axes. Choose bounds, epsilon and the grid without these numbers: the guarantee does not cover a choice that
    depends on the data.
    """
    from htf.ingest.check import check_source

    is_recipe = points.lower().endswith(SUFFIX)
    asked = _of_recipe(points, given) if is_recipe else _of_options(points, given)
    with progress_bar() as bar:
        task = bar.add_task(f"looking at {name_of_points(points)}", total=1.0)
        found = check_source(
            *asked.about,
            progress=lambda share: bar.update(task, completed=share),
            told_map=asked.told_map,
            recipe=asked.recipe,
        )
    if as_json:
        say_json(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    else:
        say(found)


@dataclass(frozen=True)
class _Asked:
    """Where points are, on which map, and how they are read; and what gave the map."""

    about: tuple[Any, Domain | None, Reading]
    told_map: tuple[str, ...] = ()
    recipe: str | None = None


def _of_options(points: str, given: dict[str, Any]) -> _Asked:
    options = MapOptions(**take(MapOptions, given))
    reading = Reading((options.x_column, options.y_column), **take(Reading, given))
    flags = {name: "--crs" if name == "map_crs" else f"--{name}" for name in OF_A_MAP}
    told = [(flag, str(given[name])) for name, flag in flags.items() if given[name] is not None]
    is_there = options.bounds is not None or options.around is not None or options.zones is not None
    domain = options.read()[0] if is_there else None
    return _Asked((points, domain, reading), tuple(word for pair in told for word in pair))


def _of_recipe(points: str, given: dict[str, Any]) -> _Asked:
    from htf.recipes.files import load_recipe

    if take_typed(MapOptions, given) or take_typed(Reading, given):
        raise InputError(f"{points} says all about its points: leave out the options beside it")
    recipe = load_recipe(Path(points))
    if recipe.source is None:
        raise InputError(f"{points} does not say where the records are: give it a source")
    domain, columns = recipe.map_options().read()
    return _Asked((recipe.source, domain, recipe.reading(columns)), recipe=points)
