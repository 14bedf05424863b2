"""Which files data and priors came from, so that data are never published as their own prior.

A prior is published whole. One that is a file of the data would publish their exact counts, in a release
that is marked private. So whatever is read from files carries marks of them, and before a charge the
prior's file is compared with every file of the data: by links and other names, and byte by byte.
Marks stay with the curator: no release has them.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product, starmap
from pathlib import Path
from typing import Any

from htf.errors import InputError

ARCHIVES = (".zip",)
STREAMS = {".gz": "gzip", ".zst": "zstd"}
PACKED = (*STREAMS, *ARCHIVES)
BYTES_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class FileMark:
    """A file, as it was when it was read. Only the curator has marks: no release carries them.

    Attributes
    ----------
    path : Path
        Where it is, as an absolute path.
    device, inode : int
        Which file it is, whatever it is called.
    size : int
        Its length in bytes.
    changed : int
        When it was last changed, in nanoseconds.

    Examples
    --------
    >>> import htf
    >>> from pathlib import Path
    >>> _ = Path("land.csv").write_text("lon,lat")
    >>> from htf.privacy.origins import FileMark
    >>> mark = FileMark.of(Path("land.csv"))
    >>> mark.size
    7
    """

    path: Path  # absolute
    device: int
    inode: int
    size: int
    changed: int  # nanoseconds

    @classmethod
    def of(cls, path: Path) -> FileMark:
        """Mark a file as it is now.

        Parameters
        ----------
        path : Path
            The file.

        Returns
        -------
        FileMark
            Its mark.

        Raises
        ------
        OSError
            If there is no such file.

        Examples
        --------
        >>> from htf.privacy.origins import FileMark
        >>> FileMark.of(Path("land.csv")) == mark
        True
        """
        found = os.stat(path)
        place = Path(os.path.abspath(path))
        return cls(place, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)

    @property
    def is_packed(self) -> bool:
        """Whether its name says that it is compressed."""
        return self.path.suffix.lower() in PACKED

    def is_same(self, other: FileMark) -> bool:
        """Whether both marks are of one file, whatever it is called.

        Parameters
        ----------
        other : FileMark
            Another mark.

        Returns
        -------
        bool
            Whether it is the same file.

        Examples
        --------
        >>> mark.is_same(mark)
        True
        """
        return (self.device, self.inode) == (other.device, other.inode)

    def check_unchanged(self) -> None:
        """Refuse a file that has changed since it was marked.

        Raises
        ------
        InputError
            If the file has changed or is gone.

        Examples
        --------
        >>> mark.check_unchanged()
        """
        try:
            same = FileMark.of(self.path) == self
        except OSError:
            same = False
        if not same:
            raise InputError(
                f"{self.path.name} has changed or disappeared since it was read, so it cannot be compared: what is "
                "public must not be one of the files of the data. Keep the files until the release is made"
            )


def mark_files(paths: Iterable[Path]) -> tuple[FileMark, ...]:
    try:
        return tuple(map(FileMark.of, paths))
    except OSError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror}") from None


def check_not_data(given: FileMark | None, data: Iterable[FileMark], what: str = "prior") -> None:
    """Refuse a public file, such as a prior, that is one of the files of the data, or a copy of one. In doubt, refuse."""
    if given is None:
        return
    for file in data:
        if given.is_same(file) or _is_copy(given, file):
            raise InputError(
                f"the {what} {given.path.name} is one of the files of the data to be released, or a copy of one. A {what} is "
                "published whole, so it must be public and made without these data"
            )


def _is_copy(one: FileMark, other: FileMark) -> bool:
    """Whether some content of both is the same, compressed or not: an archive has that of each member too. Files of different sizes need not be opened,
    unless one of them is compressed."""
    if one.size != other.size and not (one.is_packed or other.is_packed):
        return False
    for file in (one, other):
        file.check_unchanged()
    try:
        contents = product(_contents(one.path), _contents(other.path))
        return any(starmap(_are_same, contents))
    except (OSError, RuntimeError, zipfile.BadZipFile) as error:  # an archive may have a password
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise InputError(
            f"cannot compare {one.path.name} with {other.path.name} ({reason}): what "
            "is public must not be one of the files of the data"
        ) from None


def _contents(path: Path) -> list[Callable[[], Any]]:
    """Functions that open what a file holds: itself, and the members of an archive; each as it is, and unpacked."""
    whole = _as_is_and_unpacked(path.name, partial(open, path, "rb"))
    if path.suffix.lower() not in ARCHIVES:
        return whole
    try:
        with zipfile.ZipFile(path) as archive:
            members = [one.filename for one in archive.infolist() if not one.is_dir()]
    except zipfile.BadZipFile:
        return whole
    for name in members:
        whole += _as_is_and_unpacked(name, partial(_open_member, path, name))
    return whole


def _as_is_and_unpacked(name: str, open_it: Callable[[], Any]) -> list[Callable[[], Any]]:
    packing = STREAMS.get(Path(name).suffix.lower())
    return [open_it] if packing is None else [open_it, partial(_unpack, open_it, packing)]


@contextmanager
def _unpack(open_it: Callable[[], Any], packing: str) -> Iterator[Any]:
    import pyarrow as pa

    with open_it() as packed, pa.input_stream(packed, compression=packing) as stream:
        yield stream


@contextmanager
def _open_member(path: Path, name: str) -> Iterator[Any]:
    with zipfile.ZipFile(path) as archive, archive.open(name) as member:
        yield member


def _are_same(one: Callable[[], Any], other: Callable[[], Any]) -> bool:
    with one() as first, other() as second:
        while True:
            parts = first.read(BYTES_AT_ONCE), second.read(BYTES_AT_ONCE)
            if parts[0] != parts[1]:
                return False
            if not parts[0]:
                return True
