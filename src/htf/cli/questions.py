"""The questions of `htf query` and `htf compare`: read from options, asked, and shown on the screen or in files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import htf
from htf.base.options import option
from htf.cli.options import JSON, OVERWRITE, WHERE
from htf.cli.screen import remark, say_json, show_whole_answer, warn_if_not_private, working
from htf.errors import InputError
from htf.files import check_output
from htf.query.polygon_files import FORMATS, label_column, labels_of, odd_polygons, read_layer
from htf.query.texts import read_boxes

if TYPE_CHECKING:
    import geopandas

    from htf.query.answer import Answer
    from htf.query.where import Where

PERIOD = "period"  # what `--by` of a series may name as well, although it is always there


@dataclass(frozen=True)
class Asking:
    """The options that say what is asked, and where the answer goes."""

    boxes: tuple[str, ...] = option("A box. Can be repeated.", "W,S,E,N", flag="--box")
    boxes_file: Path | None = option(
        "CSV file of boxes, with columns west, south, east, north and, for further axes, e.g. hour_low, "
        "hour_high. Other columns, such as names, are copied to the answers.",
        flag="--boxes",
    )
    polygons_file: Path | None = option(f"File of polygons: {FORMATS}.", flag="--polygons")
    by: tuple[str, ...] = option(
        "A row for each step or name of an axis, or for each name of a level, e.g. hour or district. Can be repeated. With --polygons: the column that "
        "names them.  [default there: the only column of text]",
        "NAME",
    )
    zones: tuple[str, ...] = option("A zone of any level. Can be repeated.", "NAME", flag="--zone")
    levels: tuple[str, ...] = option(
        "A row for each zone of a level, e.g. district; of trips, for each pair. zone:district is of one axis.",
        "LEVEL",
        flag="--level",
    )
    where: Where = WHERE
    as_json: bool = JSON
    output: Path | None = option(
        "File to write. Its ending sets the format: .csv, .xlsx, .json, .parquet, .geojson, .gpkg or .fgb; of a series "
        "also .png, .svg or .pdf.",
        flag="-o --output",
    )
    overwrite: bool = OVERWRITE

    def check(self, inputs: Iterable[Path | None], *, of_series: bool = False) -> None:
        """Refuse options that do not go together, and an output that cannot be written, before any work."""
        if self.polygons_file is not None and (self.boxes or self.boxes_file or self.names):
            raise InputError("give boxes, zones or --polygons FILE, only one of them")
        if self.boxes and self.boxes_file:
            raise InputError("give --box W,S,E,N or --boxes FILE.csv, not both")
        if self.zones and (self.boxes or self.boxes_file):
            raise InputError("give boxes or --zone NAME, not both")
        if self.polygons_file is not None and len(self.by) > 1:
            raise InputError(f"polygons are named by one column, got --by {' --by '.join(self.by)}")
        if self.output is not None:
            from htf.export.answers import check_ending  # slow to load

            check_ending(self.output, of_series=of_series)
            files = [*inputs, self.boxes_file, self.polygons_file]
            check_output(self.output, overwrite=self.overwrite, inputs=files)

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.zones, *self.levels)

    @property
    def is_of_nothing(self) -> bool:
        """Whether no option says what to count."""
        return not (self.boxes or self.boxes_file or self.polygons_file or self.names or self.by)

    def question(self, domain: htf.Domain) -> htf.Question:
        """The question. Without any option it is about the whole map, or each zone of a release of zones."""

        if self.polygons_file is not None:
            return self._polygons(self.polygons_file)
        if self.output is not None:
            from htf.export.answers import check_layer  # slow to load

            check_layer(self.output, domain.crs, domain.has_shapes)
        by, where = (*self.levels, *(one for one in self.by if one != PERIOD)), self.where
        if self.zones:
            return htf.Question.zones(*self.zones, where=where, by=by)
        is_cut = any(domain.names[number] in where for number in domain.outlined)
        if not (by or self.boxes or self.boxes_file or is_cut) and domain.outlined:
            return htf.Question.by(where=where)
        boxes = read_boxes(self.boxes) if self.boxes else self.boxes_file
        return htf.Question.boxes(boxes, where, by=by)

    def _polygons(self, path: Path) -> htf.Question:
        from htf.export.answers import check_layer

        frame = read_layer(path)
        named = [one for one in self.by if one != PERIOD]
        labels = labels_of(frame, label_column(frame, named[0] if named else None, path))
        if self.output is not None:
            check_layer(self.output, frame.crs)
        return htf.Question.polygons(frame, where=self.where, labels=labels)

    def give_out(self, answer: Answer, plan: list[str]) -> None:
        """Print the answer as JSON or a table, or write it to a file, and say what may be a mistake."""
        if self.as_json:
            from htf.export.tables import to_json

            say_json(to_json(answer.to_arrow()))
        elif self.output is None:
            show_whole_answer(answer)
        if self.output is not None:
            from htf.export.answers import write_answer  # slow to load

            write_answer(answer, self.output, plan, overwrite=self.overwrite)
            what = {"changes": "changes", "different people": "boxes"}
            name = what.get(answer.kind, "answers")
            remark(f"Wrote {self.output}: {len(answer):,} {name}.")
        for note in odd_places(answer):
            remark(note)
        counted = [answer.releases, *(part.releases for part in answer.parts[1:])]
        for releases in counted:  # of a series, all are of one kind
            warn_if_not_private(releases[-1])


def ask(description: str, work: Callable[[], Answer]) -> Answer:
    """Ask under a bar. What lies outside is said in the end, in the words of the command line."""
    with working(description), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work()


def odd_places(answer: Answer) -> list[str]:
    """What may be a mistake in the question, and what would be a better one."""
    from htf.query.answer import first_period
    from htf.query.columns import COUNTS

    counts = answer.parts[0] if answer.parts else answer
    if counts.kind != COUNTS:
        return []
    is_one = len(counts.releases) == 1 and not answer.parts
    counts = first_period(counts)
    frame: geopandas.GeoDataFrame | None = getattr(counts.asked, "frame", None)
    if frame is None:
        note = counts.asked.note(counts.inside)
        return [] if note is None else [note]
    from htf.query.zone_hint import zone_hint

    hint = zone_hint(counts.releases[0], counts) if is_one else None
    return [*odd_polygons(frame, counts), *([] if hint is None else [hint])]
