"""`htf query`: counts of boxes, polygons, zones or names, of a release or of each period of a series."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import htf
from htf.base.options import option
from htf.cli import declared
from htf.cli.options import RELEASE
from htf.cli.questions import Asking, ask
from htf.errors import InputError
from htf.query.columns import COLUMNS, COUNTED, COUNTED_MEANS

if TYPE_CHECKING:
    from htf.query.answer import Answer


class AnswersCommand(click.Command):
    """A command whose help describes the columns of an answer."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        with formatter.section("Columns of an answer"):
            columns = [(name, column.describe()) for name, column in COLUMNS.items()]
            formatter.write_dl([*columns, (COUNTED, f"{COUNTED_MEANS} In files and JSON.")])


@declared.command(cls=AnswersCommand)
def query(
    release_file: Path = RELEASE,
    change: bool = option("Of a series: what changed from each period to the next."),
    distinct: bool = option(
        "Show the table of different people in the boxes of a fixed grid, if the release has one."
    ),
    per: Path | None = option(
        "For a release with a weight: another release of the number of the same records. The answers are then means, "
        "the sum divided by that number.",
        "RELEASE",
    ),
    asking: Asking = declared.record_of(Asking),
) -> None:
    """Count the records or split people in boxes or polygons, with a standard error and an interval.

    Without boxes or polygons, the whole map is counted; of a release of zones, each zone. If the release has
    more axes than the map's two, `--where hour=7:10` or `--where offence=Assault` selects a part; axes that you
    do not name count in full. `--by offence` gives a row for each.

    RELEASE may also be the folder of a series: then every box or zone is counted in each period, and `--change` shows what
    changed from each period to the next. A file ending in .png, .svg or .pdf is a picture of that.

    With `--per RELEASE`, a release of sums is divided by the number of records: the answers are means.

    The interval covers the noise. Where estimates use every count in the tree, it also covers
    records or split people that are spread unevenly.
    """

    of_series = _is_series(release_file)
    if change and not of_series:
        raise InputError("--change is for a series: compare two releases with `htf compare`")
    if distinct and not (asking.is_of_nothing and not asking.where and per is None):
        raise InputError(
            "different people are counted in the boxes that the release fixed, and do not add up: give --distinct "
            "without boxes, polygons, zones, --where and --per"
        )
    asking.check((release_file, per), of_series=of_series)

    source = _open(release_file)
    divisor = None if per is None else _open(per)

    def work() -> Answer:
        question = htf.Question.different_people() if distinct else asking.question(source.domain)
        answer = source.ask(question)
        if divisor is not None:
            answer = answer.per(divisor.ask(question))
        return answer.changes() if change else answer

    plan = [] if isinstance(source, htf.Release) else source.plan.told
    asking.give_out(ask(f"asking {release_file.name}", work), plan)


def _open(path: Path) -> htf.Release | htf.Series:
    if _is_series(path):
        return htf.Series(path)

    return htf.Release.load(path)


def _is_series(path: Path) -> bool:
    if not path.is_dir():
        return False
    from htf.series.plan import is_series  # slow to load, and most are releases

    return is_series(path)
