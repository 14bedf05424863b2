"""`htf sample`: synthetic points from a release."""

from __future__ import annotations

from pathlib import Path

import click

from htf.cli.options import output_option, overwrite_option, release_argument
from htf.cli.screen import progress_bar, say, warn_if_not_private
from htf.cli.types import WholeNumber
from htf.query.answer_texts import show_amount, show_count


@click.command()
@release_argument
@output_option
@click.option(
    "--n", "points", type=WholeNumber(0), help="Number of points.  [default: the noisy total]"
)
@click.option("--seed", type=WholeNumber(0), help="Seed, to draw the same points again.")
@overwrite_option
def sample(
    release_file: Path, output: Path, points: int | None, seed: int | None, overwrite: bool
) -> None:
    """Draw synthetic points from a release, as .parquet or .csv.

    None of them is a real record or person. By default there are as many as the release counts. They cost no budget, and the guarantee of the release covers them. The
    privacy statement is in the metadata of a Parquet file (htf-sample), or in a text file beside a CSV file.
    """
    from htf.export.sample import check_sample_name, write_points
    from htf.release.release import Release

    check_sample_name(output, overwrite=overwrite, inputs=[release_file])
    release = Release.load(release_file)
    with progress_bar() as bar:
        task = bar.add_task(f"writing {output.name}", total=None)

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        drawn = write_points(release, output, points, seed, tell, overwrite=overwrite)
    say(f"Wrote {output}: {drawn.points:,} synthetic points ({', '.join(drawn.columns)}).")
    if drawn.points == 0 and points is None:
        say(f"The release counts no {release.quantity}.")
    elif points is None:
        say(f"The release counts {release.counted}: each point stands for one of them.")
    else:
        total = show_count(float(release.estimates.sum()), release.quantity)
        say(f"The release counts {show_amount(total, release.counted)}.")
    say(release.statement.split("\n\n")[0])
    warn_if_not_private(release)
