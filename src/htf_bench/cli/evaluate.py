"""`htf evaluate`: compare mechanisms on exact data. For researchers."""

from __future__ import annotations

from typing import Any

import click

from htf.cli.declared import option_of
from htf.cli.types import WholeNumber
from htf.recipes.recipe import Recipe
from htf_bench.cli.options import MOST_QUERIES, MOST_RUNS, options_of_runs


@click.command()
@click.argument("points")
@option_of(Recipe, "x", default="lon", show_default=True, help="Column of x.")
@option_of(Recipe, "y", default="lat", show_default=True, help="Column of y.")
@option_of(Recipe, "bounds", help="Bounds of the map.")
@option_of(Recipe, "cells", default=None, help="Cells of the grid per side.  [default: 1024]")
@click.option(
    "--mechanisms",
    show_default="all",
    metavar="NAME:PARAMETER=VALUE:…,…",
    help="See `htf mechanisms`. `all` means every one, trees at several heights. For comparison, rounding and cell-key "
    "are what statistical offices did before; they are not private. `tuned` stands for UG, AG, PrivTree and quadtrees at "
    "many settings each: the others (htf if there are none) are compared with the best of them, picked in hindsight.",
)
@click.option(
    "--epsilons", default="0.1,0.3,0.5", show_default=True, help="Epsilons, separated by commas."
)
@click.option(
    "--workloads",
    default="random,2%,6%,10%",
    show_default=True,
    help="Separated by commas: random, P%, data-P% (squares around records), places-CELLS (squares "
    "that hold a record), places (such squares of 2, 4, … 64 cells a side), grid-SQUARES (a whole map, "
    "also by Hellinger and Wasserstein distance and loss of Moran's I), file:boxes.csv.",
)
@click.option(
    "--queries",
    default=2000,
    show_default=True,
    type=WholeNumber(1, MOST_QUERIES),
    help="Boxes per workload.",
)
@click.option(
    "--runs",
    default=10,
    show_default=True,
    type=WholeNumber(1, MOST_RUNS),
    help="Releases per mechanism and epsilon.",
)
@options_of_runs
def evaluate(**given: Any) -> None:
    """Compare mechanisms on exact data. The results are not for publication.

    POINTS is a CSV or Parquet file, a NumPy matrix of counts (counts.npy or sets.npz:KEY), or a
    made-up data set: city, gaussian-20-1, gaussian-20-2, gaussian-50-1, … gaussian-100-2.
    """
    from htf_bench.cli.comparison import compare_mechanisms

    compare_mechanisms(**given)
