"""`htf paper`: repeat the experiments of the HTF paper. For researchers."""

from __future__ import annotations

from pathlib import Path

import click

from htf.cli.declared import option_of
from htf.cli.screen import say
from htf.cli.types import WholeNumber
from htf.errors import InputError
from htf.recipes.recipe import Recipe
from htf_bench.cli.options import MOST_RUNS, options_of_runs


@click.command()
@click.option("--quick", is_flag=True, help="Run a small version that takes less than 3 minutes.")
@click.option("--points", multiple=True, metavar="FILE", help="Your data set. Can be repeated.")
@option_of(Recipe, "x", default="lon", show_default=True, help="Column of x in FILE.")
@option_of(Recipe, "y", default="lat", show_default=True, help="Column of y in FILE.")
@option_of(Recipe, "bounds", multiple=True, help="Bounds of each FILE's map, in the same order.")
@click.option(
    "--runs",
    type=WholeNumber(1, MOST_RUNS),
    help="Runs of each experiment.  [default: 10, or 3 with --quick]",
)
@options_of_runs
def paper(
    quick: bool,
    points: tuple[str, ...],
    x: str,
    y: str,
    bounds: tuple[str, ...],
    runs: int | None,
    seed: int,
    jobs: int,
    folder: Path,
    overwrite: bool,
) -> None:
    """Repeat the experiments of the HTF paper: draw its figures and test its claims.

    The data are the paper's Gaussian sets, the files that you give, and a made-up city in place of Los
    Angeles, whose data are not public. The full run takes most of an hour with two processes.
    """
    from htf_bench.claims_page import write_claims
    from htf_bench.cli import experiments
    from htf_bench.paper import FULL, QUICK, plan_paper
    from htf_bench.trials import check_data

    scale = QUICK if quick else FULL
    own = [
        experiments.open_data(text, (x, y), place, None)
        for text, place in _pair_with_bounds(points, bounds)
    ]
    experiments.check_results_folder(folder, points, overwrite)
    design = plan_paper(scale, own, runs=runs or scale.runs, seed=seed)
    for data_set in own:
        check_data(design.plan.bench, data_set)
    experiments.mark_as_not_private()
    for note in design.notes:
        say(f"Note: {note}")
    results = experiments.run_trials(design.plan, folder, jobs)
    experiments.show_failures(results)
    experiments.draw_all(folder, design.draw(results))
    write_claims(design, results, folder, experiments.typed_command())
    experiments.write_reports(results, design.plan, folder)
    say(f"Verdicts on the claims: {folder / 'claims.md'}")
    experiments.mark_as_not_private()


def _pair_with_bounds(
    points: tuple[str, ...], bounds: tuple[str, ...]
) -> list[tuple[str, str | None]]:
    """A matrix has a map already; all other files need bounds."""
    from htf_bench.datasets import is_matrix

    needing = [text for text in points if not is_matrix(text)]
    if len(needing) != len(bounds):
        raise InputError(
            f"give one --bounds W,S,E,N per --points file, in the same order: got {len(needing)} files and "
            f"{len(bounds)} bounds"
        )
    remaining = iter(bounds)
    return [(text, None if is_matrix(text) else next(remaining)) for text in points]
