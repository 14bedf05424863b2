"""Options of `htf evaluate`, and those that it shares with `htf paper`."""

from __future__ import annotations

from dataclasses import MISSING, dataclass

from htf.base.options import argument, option
from htf.cli.types import Folder

# A trial keeps its queries in memory, and a plan its runs.
MOST_QUERIES, MOST_RUNS = 1_000_000, 1000


@dataclass(frozen=True, kw_only=True)
class Running:
    """How trials are run, and where their results go."""

    seed: int = option("Seed of queries and noise.", default=1, within=(0, None))
    jobs: int = option("Number of processes.", default=2, within=(1, 64))
    folder: Folder = option(
        "Folder for the results. Run the same command again to resume.",
        flag="-o --output",
        default=MISSING,
    )
    overwrite: bool = option("Use a folder that holds other files, and replace files in it.")


@dataclass(frozen=True, kw_only=True)
class Comparing:
    """What is compared, and on which data."""

    points: str = argument()
    x: str = option("Column of x.", "COLUMN", default="lon")
    y: str = option("Column of y.", "COLUMN", default="lat")
    bounds: str | None = option("Bounds of the map.", "W,S,E,N")
    cells: str | None = option("Cells of the grid per side.  [default: 1024]", "N|NX,NY")
    mechanisms: str | None = option(
        "See `htf mechanisms`. `all` means every one, trees at several heights. For comparison, rounding and cell-key are "
        "what statistical offices did before; they are not private. `tuned` stands for UG, AG, PrivTree and quadtrees at "
        "many settings each: the others (htf if there are none) are compared with the best of them, picked in hindsight.  "
        "[default: (all)]",
        "NAME:PARAMETER=VALUE:…,…",
    )
    epsilons: str = option("Epsilons, separated by commas.", default="0.1,0.3,0.5")
    workloads: str = option(
        "Separated by commas: random, P%, data-P% (squares around records), places-CELLS (squares "
        "that hold a record), places (such squares of 2, 4, … 64 cells a side), grid-SQUARES (a whole map, "
        "also by Hellinger and Wasserstein distance and loss of Moran's I), file:boxes.csv.",
        default="random,2%,6%,10%",
    )
    queries: int = option("Boxes per workload.", default=2000, within=(1, MOST_QUERIES))
    runs: int = option("Releases per mechanism and epsilon.", default=10, within=(1, MOST_RUNS))
