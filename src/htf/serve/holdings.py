"""The releases that are served: loaded and checked at the start, and again when the server is told to."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from htf.base.compiled import many_ahead
from htf.errors import HtfError, InputError, MissingExtraError
from htf.frame.domain import Domain
from htf.frame.ground import ground_of
from htf.maps.browser.mercator import Bounds, edges_in_degrees
from htf.maps.zone_views import view_zones
from htf.privacy.protection import explain_people
from htf.query.columns import COUNTED
from htf.release.file import digests
from htf.release.release import Release
from htf.series.folder import SeriesFolder
from htf.series.plan import is_series
from htf.serve.workers import Together
from htf.serve.zone_map import levels_of

NOT_PRIVATE = "NOT PRIVATE: the noise was {}. For tests and benchmarks only."


@dataclass(frozen=True, slots=True)
class Source:
    """A file to load, what to call its release, and which period of which series it is."""

    path: Path
    name: str
    series: dict[str, str] | None = None


class Holding:
    """A release, and the facts about it that many answers repeat."""

    def __init__(self, id: str, source: Source, stamp: tuple[int, ...], release: Release) -> None:
        self.id, self.source, self.release = id, source, release
        self.stamp = stamp  # of the file when it was read: a download must match what was loaded
        with open(source.path, "rb") as file:
            self.file_digest = hashlib.file_digest(file, "sha256").hexdigest()
        software = [*digests(release), version("htf-dp")]
        self.seed = hashlib.sha256("\n".join(software).encode()).digest()  # for ETags
        # Added to everything told of a release that is not private, and to every answer, with what is counted.
        self.mark = {} if release.private else {"not_private": NOT_PRIVATE.format(release.noise)}
        self.label = {COUNTED: release.counted, **self.mark}
        self.about = _about(id, source, release)
        self.together = Together(release)

    @property
    def path(self) -> Path:
        return self.source.path

    def etag(self, question: bytes) -> str:
        """The ETag of the answer to a question: the same release and software give the same answer."""
        return hashlib.blake2b(question, digest_size=16, key=self.seed).hexdigest()


Holdings = Mapping[str, Holding]  # by id
Problem = Callable[[str], None]
NOTHING: Holdings = {}


def find_sources(
    paths: Sequence[Path], held: Holdings = NOTHING, problem: Problem | None = None
) -> list[Source]:
    """The files to load. A folder of a series stands for the last release of each of its periods, any other folder
    for all releases in it. A series keeps the id by which it was held."""
    found: list[Source] = []
    for path in paths:
        before = [one.source for one in held.values() if path in (one.path, *one.path.parents)]
        others = [*(one.source for one in held.values()), *found]
        known = next((one.series["id"] for one in before if one.series), None)
        try:
            found += _sources_of(path, [one.series["id"] for one in others if one.series], known)
        except (HtfError, OSError) as error:  # an empty folder, for example
            if problem is None:
                raise
            problem(str(error))
            there = (one for one in reversed(before) if not _is_gone(one.path))
            found += reversed({one.path: one for one in there}.values())
    return found


def _sources_of(path: Path, taken: Container[str], known: str | None) -> list[Source]:
    """The files of one path. A series gets the id by which it is `known`, or one that is not `taken`."""
    if not is_series(path):
        if not path.is_dir():
            return [Source(path, path.stem)]
        files = sorted(path.glob("*.parquet"))
        if not files:
            raise InputError(f"{path} has no .parquet file, and is no series: give a release")
        return [Source(file, file.stem) for file in files]
    folder = SeriesFolder(path)
    name, latest = path.resolve().name, folder.latest
    if not latest:
        raise InputError(f"{path} has no release yet: add one with `htf series add`")
    told = {"id": known or _unlike(_slug(name), taken), "name": name}
    return [
        Source(one.path, f"{name} {period}", {**told, "period": period})
        for period, one in latest.items()
    ]


def load_holdings(
    paths: Sequence[Path],
    held: Holdings = NOTHING,
    problem: Problem | None = None,
    *,
    allow_not_private: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, Holding]:
    """The releases by id, in the given order. Everything that a first query would build is built here.

    Files that did not change since they were `held` are not read again. Whoever deletes a file withdraws its release, so it
    goes, whether the file or its folder was given. If the file is there and cannot be read, the release from before stays.
    `problem` is told of both, unless the file was one of several in a folder; without it they are errors. Nothing may be left.
    """
    found: dict[str, Holding] = {}
    for source in find_sources(paths, held, problem):
        before = _held_of(source, [one for one in held.values() if one.id not in found])
        ids = {one.source.name: one.id for one in before}
        try:
            made = before
            if not _is_unchanged(source.path, before):
                made = _load(source, ids, {*held, *found}, allow_not_private, tell)
        except (HtfError, OSError) as error:
            if problem is None:
                raise
            gone = _is_gone(source.path)
            problem(f"there is no file {source.path}" if gone else str(error))
            made = [one for one in before if not _is_gone(one.path)]
        found |= {one.id: one for one in made}
    return found


def _held_of(source: Source, held: Iterable[Holding]) -> list[Holding]:
    """The release of one file, and its zones, as they were held. If a file was given twice, the first of its releases."""
    found: dict[str, Holding] = {}
    for one in held:
        # A period of a series may have been corrected, in another file.
        is_same = one.path == source.path or one.source.series == source.series is not None
        if is_same and one.source.name in (source.name, _zones_name(source.name)):
            found.setdefault(one.source.name, one)
    return [*found.values()]


def _is_unchanged(path: Path, held: Sequence[Holding]) -> bool:
    return bool(held) and {(one.path, one.stamp) for one in held} == {(path, file_stamp(path))}


def _is_gone(path: Path) -> bool:
    """Whether there is no such file. One that may not be looked at is not gone."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _load(
    source: Source,
    ids: Mapping[str, str],
    taken: Collection[str],
    allow_not_private: bool,
    tell: Callable[[str], None],
) -> list[Holding]:
    """The release of a file, and for a map inside zones also its zones. Each gets the id of its name, or one that is
    not `taken`."""
    path = source.path
    tell(f"loading {path.name}")
    release, stamp = Release.load(path), file_stamp(path)
    if not (release.private or allow_not_private):
        raise InputError(
            f"{path} is NOT PRIVATE (its noise was {release.noise}) and is not served: release the "
            "data with real noise, or give --allow-not-private if the data are made up"
        )
    tell(f"preparing {path.name}")
    releases = {source.name: release}
    if release.zones is not None:
        releases[_zones_name(source.name)] = release.zones
    made: list[Holding] = []
    for name, one in releases.items():
        slug = ids.get(name) or _unlike(_slug(name), {*taken, *(other.id for other in made)})
        made.append(Holding(slug, replace(source, name=name), stamp, one))
    return made


def _zones_name(name: str) -> str:
    return f"{name} zones"


def file_stamp(path: Path) -> tuple[int, ...]:
    """A stamp that changes when the file is replaced or written to."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "release"


def _unlike(slug: str, taken: Container[str]) -> str:
    """The same with a number, if it is taken."""
    found, number = slug, 1
    while found in taken:
        number += 1
        found = f"{slug}-{number}"
    return found


def _about(slug: str, source: Source, release: Release) -> dict[str, Any]:
    """The entry in the list of releases. Counting here builds the index and compiles the loops."""
    domain = release.domain
    many_ahead()
    total = {n: column.item() for n, column in release.count().to_columns(of_leaves=True).items()}
    _warm_polygons(release)
    bounds = _bounds(domain)
    return {
        "id": slug,
        "name": source.name,
        "series": source.series,
        "private": release.private,
        "epsilon": str(release.epsilon),
        "unit": release.protection.unit,
        "protects": release.protection.name,
        "quantity": release.quantity,
        "counted": release.counted,
        "explained": explain_people(release.quantity),
        "mechanism": release.mechanism,
        "leaves": len(release),
        "crs": domain.crs,
        "bounds": bounds,
        "bounds84": bounds_in_degrees(domain),
        "axes": domain.to_dict()["axes"],
        "zones": levels_of(domain),
        "total": total,
    }


def _warm_polygons(release: Release) -> None:
    """Load the loops for polygons, which takes seconds. Without shapely, polygons and maps of zones are not served."""
    if find_spec("shapely") is None:
        return
    for one in levels_of(release.domain):  # joins the outlines of zones
        for level in one["levels"]:
            view_zones(release, level, None, one["axis"]).area  # noqa: B018
    if not release.domain.has_map:
        return
    import shapely

    x, y = release.domain.axes[:2]
    release.count_polygons(shapely.box(x.low, y.low, x.high, y.high))


def _bounds(domain: Domain) -> Bounds | None:
    """W,S,E,N in the coordinates of the map: of its axes, or of its zones."""
    return ground_of(domain).bounds() if domain.has_shapes else None


def bounds_in_degrees(domain: Domain) -> Bounds | None:
    """W,S,E,N of the map in longitude and latitude; None if it has no reference system."""
    bounds = _bounds(domain)
    if bounds is None or domain.crs is None:
        return None
    try:
        return edges_in_degrees(bounds, domain.crs)
    except MissingExtraError:
        return None
