"""Bounds on everything that is unpacked: a few kilobytes may stand for gigabytes.

What is unpacked into memory has a limit that what it is for never reaches. What is unpacked onto a disk may take all but a
reserve of the room there, so that a file that expands without end does not fill the disk for everybody else.
"""

from __future__ import annotations

import shutil
import zlib
from pathlib import Path
from typing import IO

from htf.errors import InputError

GZIP = 31  # of zlib: a header and a checksum as gzip writes them
BYTES_AT_ONCE = 1 << 20
RESERVE = 1 << 28  # bytes of a disk that stay free


class TooLargeError(InputError):
    """What was packed is larger than its limit."""


def gunzip(packed: bytes, most: int) -> bytes:
    """What gzip has packed, in one piece, if it has at most so many bytes. Raises ValueError if it is damaged."""
    unpacking = zlib.decompressobj(GZIP)
    try:
        found = unpacking.decompress(packed, most + 1)
    except zlib.error:
        raise ValueError("it is not packed by gzip, or damaged") from None
    if len(found) > most:
        raise TooLargeError(f"it unpacks to more than {most:,} bytes")
    if not unpacking.eof or unpacking.unused_data:
        raise ValueError("it is not what gzip packs in one piece")
    return found


def check_room(folder: Path, needed: int, name: str) -> None:
    """Refuse what would fill the disk of a folder for temporary files."""
    free = shutil.disk_usage(folder).free
    if needed + RESERVE > free:
        raise TooLargeError(
            f"{name} is too large, unpacked, for the disk of temporary files ({folder.parent}, with {free / 1e9:,.1f} GB left): "
            "unpack it elsewhere, and give the files, or name a folder with room in the environment variable TMPDIR"
        )


def copy_within(packed: IO[bytes], copy: IO[bytes], folder: Path, name: str) -> None:
    """Copy a stream into a file of that folder, as long as there is room."""
    while part := packed.read(BYTES_AT_ONCE):
        check_room(folder, len(part), name)
        copy.write(part)
