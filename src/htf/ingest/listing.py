"""The files behind a name: one file, a folder of them, a pattern, or a zip archive. Sensitive.

The members of an archive that hold points are unpacked into a temporary folder, which is removed at the end: text files,
Parquet files, or one layer.
"""

from __future__ import annotations

import glob
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import NamedTuple

from htf.base.leftovers import temporary_folder
from htf.base.unpacking import check_room, copy_within
from htf.errors import InputError
from htf.files import is_file, is_folder
from htf.ingest.engines import quietly
from htf.ingest.vector import LAYER_FILES

TEXT_FILES = (".csv", ".tsv", ".txt", ".gz", ".zst")
PARQUET_FILES = (".parquet", ".geoparquet", ".pq")
KNOWN = ", ".join(sorted((*TEXT_FILES, *PARQUET_FILES)))
ENCRYPTED = 1
IN_ARCHIVES = (*LAYER_FILES, *TEXT_FILES, *PARQUET_FILES)
PATTERN = set("*?[]")

Stamp = tuple[int, int, int]


class Piece(NamedTuple):
    """A file that engines read, by its name in messages. It may be a copy, without some lines of the original."""

    path: Path
    name: str
    first_line: int = 1  # in the original


@dataclass(frozen=True, slots=True)
class Listing:
    """Files of one kind that are read as one table."""

    name: str  # as it was given
    paths: tuple[Path, ...]
    stamps: tuple[Stamp, ...]
    copies: tuple[Piece, ...] = ()  # to be read in place of the files

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The files that engines read."""
        return self.copies or tuple(Piece(path, str(path)) for path in self.paths)

    @property
    def is_text(self) -> bool:
        return any(piece.path.suffix.lower() in TEXT_FILES for piece in self.pieces[:1])

    def check_unchanged(self) -> None:
        """Refuse files that changed while they were read: the result is neither the old data nor the new."""
        if _stamps(self.paths) != self.stamps:
            raise InputError(f"{self.name} changed while it was read: wait until it is complete")


NO_FILES = Listing("", (), ())


def list_files(name: str | Path) -> Listing:
    """All files of one kind, sorted by name. Hidden files, and Spark's _SUCCESS, are left out."""
    path = Path(name)
    if is_folder(path):
        there = [file for file in sorted(path.rglob("*")) if file.is_file()]
        files = [file for file in there if _is_shown(file.relative_to(path)) and _is_known(file)]
        if not files:
            raise InputError(f"the folder {path} has no files that end in one of {KNOWN}")
    elif is_file(path):
        files = [path]
    elif set(str(path)) & PATTERN:
        found = sorted(map(Path, glob.glob(str(path), recursive=True)))
        files = [file for file in found if file.is_file()]
        if not files:
            raise InputError(f"there is no file like {path}")
    else:
        raise InputError(f"there is no file {path}")
    return _listing(str(name), files)


def list_alone(name: str, paths: Sequence[Path] = ()) -> Listing:
    """A single file that holds a database or an archive; or the files of one layer, such as a shapefile."""
    paths = tuple(paths) or (Path(name),)
    return Listing(Path(name).name, paths, _stamps(paths))


def _listing(name: str, paths: Sequence[Path]) -> Listing:
    for path in paths:
        if not _is_known(path):
            raise InputError(
                f"cannot tell what {path.name} is: the name must end in one of {KNOWN}"
            )
        if set(str(path)) & PATTERN:  # engines would take the name for a pattern again
            raise InputError(f"the name {path} must not contain *, ? or brackets: rename the file")
    listing = Listing(name, tuple(paths), _stamps(paths))
    if any((path.suffix.lower() in TEXT_FILES) != listing.is_text for path in paths):
        raise InputError(f"{name} has text files and Parquet files: give one kind, as in *.parquet")
    return listing


def _stamps(paths: Sequence[Path]) -> tuple[Stamp, ...]:
    try:
        stats = [path.stat() for path in paths]
    except OSError:
        return ()
    return tuple((stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats)


def _is_shown(path: PurePath) -> bool:
    return not any(part.startswith((".", "_")) for part in path.parts)


def _is_known(path: Path) -> bool:
    return path.suffix.lower() in (*TEXT_FILES, *PARQUET_FILES)


# Archives ---------------------------------------------------------------------------------------


@contextmanager
def unpacked(name: str, wanted: str | None) -> Iterator[Listing]:
    """The files of an archive that are read as one table: one layer, or all files of text or Parquet. `wanted` names
    one of several by its name in the archive."""
    listing = list_alone(name)
    with temporary_folder() as folder:
        pieces = quietly(lambda: _unpack(Path(name), folder, wanted), listing.name)
        yield Listing(listing.name, listing.paths, listing.stamps, pieces)


def _unpack(archive: Path, folder: Path, wanted: str | None) -> tuple[Piece, ...]:
    with zipfile.ZipFile(archive) as opened:
        members = [
            one
            for one in opened.infolist()
            if not one.is_dir() and _is_shown(PurePosixPath(one.filename))
        ]
        chosen = _choose([one.filename for one in members], archive.name, wanted)
        kept = {_stem(one): number for number, one in enumerate(chosen)}
        paths, taken = {}, dict[Path, str]()
        for member in members:
            stem = _stem(member.filename)
            if member.filename not in chosen and not (stem in kept and _is_layer(chosen)):
                continue
            if member.flag_bits & ENCRYPTED:
                raise InputError(f"{archive.name} has a password: unpack it, and give the files")
            place = folder / f"{kept[stem]}{_endings(member.filename)}"
            twin = taken.setdefault(place, member.filename)
            if twin != member.filename or place.exists():
                raise InputError(
                    f"{archive.name} has two files whose names differ by case at most, {twin} and {member.filename}: "
                    "unpack it, and rename one"
                )
            check_room(folder, member.file_size, archive.name)
            with opened.open(member) as packed, open(place, "xb") as copy:
                copy_within(packed, copy, folder, archive.name)
            paths[member.filename] = place
    return tuple(Piece(paths[one], f"{archive.name}/{one}") for one in chosen)


def _choose(names: Sequence[str], archive: str, wanted: str | None) -> list[str]:
    """The members that are read together, in the order of their names."""
    there = sorted(one for one in names if PurePosixPath(one).suffix.lower() in IN_ARCHIVES)
    if wanted is not None and there:
        paths = {one: PurePosixPath(one) for one in there}
        alike = [one for one, path in paths.items() if wanted in (one, path.stem, path.name)]
        if not alike and (len(there) > 1 or not _is_layer(there)):  # else it is a layer of it
            raise InputError(
                f"{archive} has no file {wanted!r}: name one with --read table, of {', '.join(there)}"
            )
        there = alike or there
    if not there:
        raise InputError(
            f"{archive} has no file that ends in one of {', '.join(sorted(IN_ARCHIVES))}"
        )
    kinds = {_kind(one) for one in there}
    if len(kinds) > 1 or (_is_layer(there) and len(there) > 1):
        raise InputError(
            f"{archive} has several layers or kinds of files: name one with --read table, of {', '.join(there)}"
        )
    return there


def _kind(name: str) -> tuple[str, ...]:
    suffix = PurePosixPath(name).suffix.lower()
    return next(kind for kind in (LAYER_FILES, TEXT_FILES, PARQUET_FILES) if suffix in kind)


def _is_layer(names: Sequence[str]) -> bool:
    return _kind(names[0]) is LAYER_FILES


def _stem(name: str) -> str:
    return str(PurePosixPath(name).with_suffix(""))


def _endings(name: str) -> str:
    """`.csv.gz`, or `.shp`."""
    last = PurePosixPath(name).suffix.lower()
    return f".csv{last}" if last in (".gz", ".zst") else last
