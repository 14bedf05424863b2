"""What a release is turned into for other tools: `htf export`, `htf sample`."""

from __future__ import annotations

from pathlib import Path

import click

from htf.cli.screen import progress_bar, release_argument, warn_if_not_private

output_option = click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), help="The file to write."
)


@click.command()
@release_argument
@output_option
@click.option("--n", "points", type=click.IntRange(0), help="Points.  [default: the noisy total]")
@click.option("--seed", type=click.IntRange(0), help="Draw the same points again.")
def sample(release_file: Path, output: Path, points: int | None, seed: int | None) -> None:
    """Draw synthetic points from a release, as .parquet or .csv.

    None of them is a record. They cost no budget, and the guarantee of the release holds for them: it is
    in the metadata of a Parquet file (htf-sample), and in a text file beside a CSV file.
    """
    from htf.export.sample import check_sample_name, write_points
    from htf.release import Release

    check_sample_name(output)
    release = Release.load(release_file)
    with progress_bar() as bar:
        task = bar.add_task(f"writing {output.name}", total=None)

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        drawn = write_points(release, output, points, seed, tell)
    click.echo(f"Wrote {output}: {drawn.points:,} synthetic points ({', '.join(drawn.columns)}).")
    if drawn.points == 0 and points is None:
        click.echo("The release counts no records.")
    click.echo(release.statement.split("\n\n")[0])
    warn_if_not_private(release)
