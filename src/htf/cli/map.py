"""`htf map`: one or two releases, or a series, as a picture or as a map for a browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import htf
from htf.base.options import argument, option
from htf.cli import declared
from htf.cli.options import NO_BASEMAP, OVERWRITE, WHERE, basemap_option
from htf.cli.screen import say, warn_if_not_private, working
from htf.errors import InputError
from htf.files import check_output

if TYPE_CHECKING:
    from htf.query.where import Where


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """The options of `htf map`: what to draw of releases or of a series, and how it looks."""

    output: Path = option(
        "File to write: .html, .png, .svg or .pdf.", default=MISSING, flag="-o --output"
    )
    where: Where = WHERE
    axes: str = option("The two axes to draw, e.g. dest_x,dest_y.", "FIRST,SECOND", default="x,y")
    by: str | None = option("Draw one panel per step or name of this axis, at most 24.", "AXIS")
    level: str | None = option("Level of zones, e.g. district. [default: the lowest]", "LEVEL")
    boxes: bool = option("Add the outlines of the leaves.")
    difference: bool = option("Draw the first release minus the second.")
    distinct: bool = option(
        "Draw the table of different people in the boxes of a fixed grid, if the release has one."
    )
    style: str | None = option(
        "For .html: a base map (a MapLibre style or tiles), which the page then downloads.", "URL"
    )
    title: str | None = option("A title above the map.", "TEXT")
    basemap: Path | None = basemap_option(
        "For .html: a .pmtiles file of vector tiles, such as streets. The page carries those around its map."
    )
    overwrite: bool = OVERWRITE

    def check(self, files: Sequence[Path]) -> bool:
        """Refuse what is impossible before anything is read. Returns whether a series is drawn."""
        from htf.maps.draw import check_looks
        from htf.series.plan import is_series

        axes = self.content["axes"]
        check_looks(self.output, self.style, self.looks["basemap"])
        series = [path for path in files if is_series(path)]
        if series and len(files) > 1:
            raise InputError(
                f"{series[0]} is a series, which is drawn alone: name the files of releases in it to compare them"
            )
        if len(files) not in (1, 2):
            raise InputError(f"a map shows one release or two, got {len(files)}")
        if series:
            _check_without(
                "a series is drawn period by period: leave out {}, or draw one of its releases",
                {
                    "--difference (the page has a switch for changes)": self.difference,
                    "--by": self.by,
                    "--distinct": self.distinct,
                },
            )
        if self.distinct:
            _check_without(
                "--distinct draws the table of different people of one release, on its own grid or by its own level: "
                "leave out {}",
                {
                    "a second release": len(files) > 1,
                    "--difference": self.difference,
                    "--by": self.by,
                    "--where": self.where,
                    "--axes": axes != ("x", "y"),
                    "--level": self.level,
                },
            )
        if self.difference and len(files) == 1:
            raise InputError("--difference needs two releases, got one")
        if self.by is not None and len(files) > 1:
            raise InputError("--by draws the steps of one release, got two")
        check_output(self.output, overwrite=self.overwrite, inputs=_inputs(files))
        return bool(series)

    @property
    def content(self) -> dict[str, Any]:
        """What a layer shows."""
        axes = tuple(name.strip() for name in self.axes.split(","))
        return {"axes": axes, "where": self.where, "level": self.level}

    @property
    def looks(self) -> dict[str, Any]:
        """How layers are drawn."""
        looks = {name: getattr(self, name) for name in ("boxes", "title", "style", "overwrite")}
        return {**looks, "basemap": self.basemap != NO_BASEMAP and (self.basemap or True)}

    def of_series(self, folder: Path) -> list[htf.Layer]:

        return htf.Layer.periods(htf.Series(folder), **self.content)

    def of_releases(self, files: Sequence[Path]) -> list[htf.Layer]:
        """Releases with the names of their files, or with full paths if the names are the same."""

        is_plain = len({path.stem for path in files}) == len(files)
        names = [path.stem if is_plain else str(path) for path in files]
        releases = [htf.Release.load(path) for path in files]
        if self.distinct:
            return [htf.Layer.distinct(releases[0], names[0])]
        layers = [
            htf.Layer.of(one, name, **self.content)
            for one, name in zip(releases, names, strict=True)
        ]
        if self.by is not None:
            return layers[0].by(self.by)
        return [layers[0].minus(layers[1])] if self.difference else layers


@declared.command()
def map(
    release_files: tuple[Path, ...] = argument("RELEASE [SECOND] | SERIES", default=()),
    asked: Drawing = declared.record_of(Drawing),
) -> None:
    """Draw a release as a map, compare two, or go through a series. Axes that are not drawn are summed.

    Places stay blank where counts cannot be distinguished from noise. An .html file is a map to pan and
    zoom, with counts and intervals. It works offline.

    A release of zones is drawn by zones. Trips between zones are lines; `--where zone=NAME` draws where trips from
    there go, `--where dest_zone=NAME` where trips to there come from.

    A series, the folder that `htf series` made, is a page with a slider through its periods and their changes, or a
    picture with a panel for each of the latest 24.
    """
    from htf.maps.kinds import releases_of

    is_series = asked.check(release_files)
    with working("reading") as step:
        layers = (
            asked.of_series(release_files[0]) if is_series else asked.of_releases(release_files)
        )
        step("drawing the map")
        htf.draw(layers, asked.output, **asked.looks)
    say(f"Wrote {asked.output}: {_shown(layers)}.")
    for release in releases_of(layers):
        warn_if_not_private(release)


def _check_without(message: str, given: dict[str, Any]) -> None:
    for what, is_given in given.items():
        if is_given not in (None, False, {}):
            raise InputError(message.format(what))


def _inputs(files: Sequence[Path]) -> list[Path]:
    """The files that must not be written over: those of a series are in its folder."""
    return [one for path in files for one in ([path] if path.is_file() else path.glob("*.parquet"))]


def _shown(layers: Sequence[htf.Layer]) -> str:
    from htf.maps.kinds import OfPeople, releases_of

    first = layers[0]
    if first.plan is not None:
        return f"{len(layers)} {first.plan.period}s"
    if isinstance(first, OfPeople):
        return f"{len(first.table):,} {first.bought.division.place[1]} of different people"
    return " and ".join(f"{len(one):,} leaves by {one.mechanism}" for one in releases_of(layers))
