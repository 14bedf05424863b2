"""Arguments and options that several commands have."""

from __future__ import annotations

import click

from htf.cli.types import FileName
from htf.errors import InputError

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


def read_settings(settings: tuple[str, ...]) -> dict[str, str]:
    """Parameters of a mechanism, from texts such as `height=6`."""
    values: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"--set takes NAME=VALUE, got {setting!r}")
        if name in values:
            raise InputError(f"--set {name} is given twice")
        values[name] = value
    return values
