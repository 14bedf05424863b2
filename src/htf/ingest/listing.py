"""The files behind a name: one file, a folder of them, or a pattern."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from htf.errors import InputError
from htf.files import is_file, is_folder

TEXT_FILES = (".csv", ".tsv", ".txt", ".gz", ".zst")
PARQUET_FILES = (".parquet", ".geoparquet", ".pq")
KNOWN = ", ".join(sorted((*TEXT_FILES, *PARQUET_FILES)))
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
        files = [file for file in there if _is_shown(file, path) and _is_known(file)]
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


def _is_shown(path: Path, folder: Path) -> bool:
    return not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)


def _is_known(path: Path) -> bool:
    return path.suffix.lower() in (*TEXT_FILES, *PARQUET_FILES)
