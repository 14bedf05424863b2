"""`htf check`: look at points before a release, for the curator's eyes only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import htf
from htf.base.options import argument, words_of
from htf.cli import declared
from htf.cli.options import JSON
from htf.cli.points import fill_recipe, is_recipe, name_of_points
from htf.cli.screen import remark, say, say_json, working
from htf.errors import InputError
from htf.recipes.maps import read_axes
from htf.recipes.recipe import Recipe

if TYPE_CHECKING:
    from htf.ingest.reading import Reading

OF_A_MAP = ("bounds", "around", "zones", "by", "within", "crs")
OF_POINTS = (
    "x", "y", "encoding", "decimal", "skip_lines", "skip_last", "table", "sql", "memory", "points_crs", "user", "time",
    "time_unit", "time_format", "utc_offset",
)  # fmt: skip


@declared.command()
def check(
    points: str = argument(),
    given: dict[str, Any] = declared.given_for(Recipe, *OF_A_MAP, *OF_POINTS),
    as_json: bool = JSON,
) -> None:
    """Look at points before a release. For the curator's eyes only.

    It counts rows, different people and what cannot be read, exactly and without noise: do not publish what it prints. It
    guesses the options that you leave out, advises on what it found, and ends with a command for `htf release`. It
    writes nothing and charges nothing.

    POINTS is as for `htf release`. Of a recipe (.toml), records are looked for along all axes, and the first rows are tried
    as a release would read them. Choose bounds, epsilon and the grid without these numbers: the guarantee does not cover a
    choice that depends on the data.
    """
    from htf.ingest.check import check_source

    recipe = fill_recipe(points, given, epsilon=1)
    if recipe.source is None:
        raise InputError(f"{points} does not say where the records are: give it a source")
    domain, reading = _read(recipe)
    told = {name: getattr(recipe, name) for name in OF_A_MAP}
    with working(f"looking at {name_of_points(str(recipe.source))}", total=1.0) as step:
        found = check_source(
            recipe.source,
            domain,
            reading,
            progress=step,
            told_map=[
                word
                for name, one in told.items()
                if one is not None
                for word in words_of(recipe, name, one)
            ],
            recipe=points if is_recipe(points) else None,
        )
    if as_json:
        say_json(found.to_dict())
    else:
        say(found)
    if is_recipe(points) and domain is not None:
        _try(recipe.source, domain, reading)


def _read(recipe: Recipe) -> tuple[htf.Domain | None, Reading]:
    """The map, if something says where it is, and how to read the records onto it."""
    if recipe.bounds is None and recipe.around is None and recipe.zones is None:
        return None, recipe.reading((recipe.x, recipe.y))
    domain, columns = read_axes(recipe)
    return domain, recipe.reading(columns)


def _try(source: Any, domain: htf.Domain, reading: Reading) -> None:
    """Refuse what most of the first rows show to be wrong with a recipe."""
    from htf.ingest.check import try_rows

    if (wrong := try_rows(source, domain, reading)) is not None:
        raise InputError(f"{wrong}. (This message is for your eyes: it is a fact about the data.)")
    said = "The first rows can be released as the recipe says"
    remark(f"{said} (for your eyes: a fact about the data).")
