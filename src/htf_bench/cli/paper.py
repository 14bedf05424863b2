"""`htf paper`: repeat the experiments of the HTF paper. For researchers."""

from __future__ import annotations

from htf.base.options import option
from htf.cli import declared
from htf.cli.screen import say
from htf.errors import InputError
from htf_bench.cli.options import MOST_RUNS, Running


@declared.command()
def paper(
    quick: bool = option("Run a small version that takes less than 3 minutes.", default=False),
    points: tuple[str, ...] = option("Your data set. Can be repeated.", "FILE"),
    x: str = option("Column of x in FILE.", "COLUMN", default="lon"),
    y: str = option("Column of y in FILE.", "COLUMN", default="lat"),
    bounds: tuple[str, ...] = option("Bounds of each FILE's map, in the same order.", "W,S,E,N"),
    runs: int | None = option(
        "Runs of each experiment.  [default: 10, or 3 with --quick]", within=(1, MOST_RUNS)
    ),
    running: Running = declared.record_of(Running),
) -> None:
    """Repeat the experiments of the HTF paper: draw its figures and test its claims.

    The data are the paper's Gaussian sets, the files that you give, and a made-up city in place of Los
    Angeles, whose data are not public. The full run takes most of an hour with two processes.
    """
    from htf_bench.claims import write_claims
    from htf_bench.cli import experiments
    from htf_bench.paper import FULL, QUICK, plan_paper
    from htf_bench.trials import check_data

    scale, folder = QUICK if quick else FULL, running.folder
    own = [
        experiments.open_data(text, (x, y), place, None)
        for text, place in _pair_with_bounds(points, bounds)
    ]
    experiments.check_results_folder(folder, points, running.overwrite)
    design = plan_paper(scale, own, runs=runs or scale.runs, seed=running.seed)
    for data_set in own:
        check_data(design.plan.bench, data_set)
    experiments.mark_as_not_private()
    for note in design.notes:
        say(f"Note: {note}")
    results = experiments.run_trials(design.plan, folder, running.jobs)
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
