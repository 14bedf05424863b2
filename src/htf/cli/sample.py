"""`htf sample`: synthetic points from a release."""

from __future__ import annotations

from pathlib import Path

import htf
from htf.base.options import option
from htf.cli import declared
from htf.cli.options import OUTPUT, OVERWRITE, RELEASE
from htf.cli.screen import say, warn_if_not_private, working
from htf.query.answer_texts import show_amount, show_count


@declared.command()
def sample(
    release_file: Path = RELEASE,
    output: Path = OUTPUT,
    points: int | None = option(
        "Number of points.  [default: the noisy total]", flag="--n", within=(0, None)
    ),
    seed: int | None = option("Seed, to draw the same points again.", within=(0, None)),
    overwrite: bool = OVERWRITE,
) -> None:
    """Draw synthetic points from a release, as .parquet or .csv.

    None of them is a real record or person. By default there are as many as the release counts. They cost no budget, and the guarantee of the release covers them. The
    privacy statement is in the metadata of a Parquet file (htf-sample), or in a text file beside a CSV file.
    """
    from htf.export.sample import check_sample_name, write_points

    check_sample_name(output, overwrite=overwrite, inputs=[release_file])
    release = htf.Release.load(release_file)
    with working(f"writing {output.name}", total=1.0) as step:
        drawn = write_points(
            release,
            output,
            points,
            seed,
            lambda done, total: step(done / max(total, 1)),
            overwrite=overwrite,
        )
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
