"""Arguments and options that several commands have."""

from __future__ import annotations

import click

from htf.cli.types import FileName, WholeNumber

release_argument = click.argument("release_file", metavar="RELEASE", type=FileName())
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
overwrite_option = click.option(
    "--overwrite", is_flag=True, help="Replace the output if it exists. Never replaces a release."
)
output_option = click.option(
    "-o", "--output", required=True, type=FileName(), help="File to write."
)
where_option = click.option(
    "--where",
    multiple=True,
    metavar="AXIS=LOW:HIGH",
    help="Range of a further axis, e.g. hour=7:10. Can be repeated; other axes count in full.",
)
# Of `htf evaluate` and `htf paper`.
jobs_option = click.option(
    "--jobs", default=2, show_default=True, type=WholeNumber(1, 64), help="Number of processes."
)
folder_option = click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    type=FileName(file_okay=False),
    help="Folder for the results. Run the same command again to resume.",
)
overwrite_folder_option = click.option(
    "--overwrite",
    is_flag=True,
    help="Use a folder that holds other files, and replace files in it.",
)
seed_option = click.option(
    "--seed",
    default=1,
    show_default=True,
    type=WholeNumber(min=0),
    help="Seed of queries and noise.",
)
