"""`htf release`: from the data to a private release. For the curator, who has the data."""

from __future__ import annotations

from dataclasses import MISSING, replace
from pathlib import Path
from typing import Any

from htf.base.options import argument, option
from htf.cli import declared
from htf.cli.charging import notes_charges, open_budget
from htf.cli.making import Asking, Run, even_if_unseen, make_release
from htf.cli.points import fill_recipe, is_recipe
from htf.cli.screen import say
from htf.errors import InputError
from htf.files import check_output
from htf.recipes.files import SUFFIX, to_toml
from htf.recipes.files import save_recipe as write_recipe
from htf.recipes.recipe import Recipe


@declared.command()
@notes_charges
def release(
    points: str = argument(),
    given: dict[str, Any] = declared.given_for(Recipe),
    noise: str = option(
        "Source of noise. seeded is for tests and not private.",
        "opendp|fast|seeded:N",
        default="opendp",
    ),
    budget: Path | None = option("Budget file to charge; see `htf budget`.", "FILE"),
    dataset: str | None = option("Name of the data in the budget file.", "NAME"),
    output: Path = option(
        "Release to write: .parquet, .geoparquet or .pq.",
        "FILE",
        default=MISSING,
        flag="-o --output",
    ),
    overwrite: bool = option(
        "Replace the output if it exists. Never replaces a release that was charged to a budget."
    ),
    save_recipe: Path | None = option(
        "Also write what the release is made of as a recipe: .toml. In a dry run too.", "FILE"
    ),
    asking: Asking = declared.record_of(Asking),
) -> None:
    """Publish points as a differentially private map.

    POINTS is a CSV (plain, .gz or .zst) or Parquet file, or a folder or quoted pattern of such files; a GeoPackage,
    GeoJSON, shapefile or zip file; or, with `--read table=NAME` or
    `--read sql=QUERY`, a DuckDB or SQLite file, or
    postgresql://USER@HOST/DATABASE. Or it is a recipe (.toml), which says that and all else; options given beside it
    take the place of what it says.

    Points are left out if they lie outside the bounds or on their upper edges, or in none of the --zones, or if they
    are missing, NaN or infinite. How many rows could not be read, and why, appears on your screen only, never in the
    release. It is an error if no point is inside; nothing is charged then.
    """
    recipe = fill_recipe(points, given)
    if save_recipe is not None:
        _check_recipe_file(save_recipe, recipe)
    charged = open_budget(budget, dataset, output)
    own = Path(points) if is_recipe(points) else None
    run = Run(output, overwrite, charged, inputs=(own, budget, save_recipe))
    labelled = replace(recipe, label=recipe.label or output.name)
    make_release(labelled, noise, run, asking)
    if save_recipe is not None:
        with even_if_unseen():
            write_recipe(recipe, save_recipe)
            say(f"Wrote {save_recipe}: this release as a recipe.")


def _check_recipe_file(path: Path, recipe: Recipe) -> None:
    """Refuse it before anything is charged."""
    if path.suffix != SUFFIX:
        raise InputError(f"--save-recipe takes the name of a {SUFFIX} file, got {str(path)!r}")
    to_toml(recipe)
    check_output(path)
