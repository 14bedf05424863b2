"""Arguments and options that several commands have."""

from __future__ import annotations

import click

from htf.cli.types import FileName

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
