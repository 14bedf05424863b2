"""Points in a zip archive: text files, Parquet files, or one layer. Sensitive.

The members that hold points are unpacked into a temporary folder, which is removed at the end.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from htf.base.leftovers import temporary_folder
from htf.base.unpacking import check_room, copy_within
from htf.errors import InputError
from htf.ingest.engines import quietly
from htf.ingest.listing import PARQUET_FILES, TEXT_FILES, Listing, Piece, list_alone
from htf.ingest.vector import LAYER_FILES

ENCRYPTED = 1
KNOWN = (*LAYER_FILES, *TEXT_FILES, *PARQUET_FILES)


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
        members = [one for one in opened.infolist() if not one.is_dir() and _is_shown(one.filename)]
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
    there = sorted(one for one in names if PurePosixPath(one).suffix.lower() in KNOWN)
    if wanted is not None and there:
        paths = {one: PurePosixPath(one) for one in there}
        alike = [one for one, path in paths.items() if wanted in (one, path.stem, path.name)]
        if not alike and (len(there) > 1 or not _is_layer(there)):  # else it is a layer of it
            raise InputError(
                f"{archive} has no file {wanted!r}: name one with --read table, of {', '.join(there)}"
            )
        there = alike or there
    if not there:
        raise InputError(f"{archive} has no file that ends in one of {', '.join(sorted(KNOWN))}")
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


def _is_shown(name: str) -> bool:
    return not any(part.startswith((".", "_")) for part in PurePosixPath(name).parts)
