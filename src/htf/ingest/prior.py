"""Reads a Prior from a public file.

The file is public. This module is in this folder because it counts points in the same way as the data.
"""

from __future__ import annotations

import hashlib
import math
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from htf.errors import InputError
from htf.estimation.prior import Prior, prior_cells, read_weights, show_bounds
from htf.files import is_file
from htf.frame.domain import Domain, FloatArray, check_domain
from htf.ingest.listing import PARQUET_FILES, TEXT_FILES
from htf.ingest.points import has_columns, weigh_points
from htf.ingest.reading import check_columns
from htf.privacy.budget import digest_of
from htf.privacy.origins import FileMark
from htf.query.cells import cell_counts
from htf.release.file import is_release
from htf.release.release import Release

ARRAY_FILES = (".npy", ".npz")
LON_LAT = ("lon", "lat")
MOST_UNPACKED = 2**30  # bytes of an array in an archive: a few kilobytes may stand for more


def read_prior(source: Any, domain: Domain, columns: Sequence[str] = LON_LAT) -> Prior:
    """Read what is publicly known of a map. Never make a prior from the data to be released.

    Parameters
    ----------
    source : array_like, str or Path
        An array `[x, y]` that covers the map, or the name of a file: an array (`.npy`, `.npz:KEY`),
        public points (CSV or Parquet), or an earlier release of the same bounds.
    domain : Domain
        The map.
    columns : sequence of str
        The columns of public points. Each counts once, or as much as a column `weight` says.

    Returns
    -------
    Prior
        The prior, for `publish`.

    Raises
    ------
    InputError
        If the source cannot be read, covers another map, or has weights below 0.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> htf.read_prior([[1, 1], [0, 0]], domain).name
    'array'
    """
    check_domain(domain)
    check_columns(columns)
    if any(axis.levels for axis in domain.axes):
        raise InputError(
            "a prior covers a map with coordinates alone: leave --prior out with zones and categories"
        )
    if not isinstance(source, (str, Path)):
        array = read_weights(source)
        return Prior.of(array, domain, "array", hashlib.sha256(array.tobytes()).hexdigest())
    path, key = split_key(source)
    if not is_file(path):
        raise InputError(f"there is no file {path}")
    mark, digest = FileMark.of(path), digest_of(path)
    name = f"{path.name}:{key}" if key else path.name
    found = Prior.of(_read_values(path, key, domain, columns), domain, name, digest, mark)
    mark.check_unchanged()
    return found


def split_key(source: str | Path) -> tuple[Path, str]:
    """`land.npz:mask` is the array `mask` of the file `land.npz`."""
    head, found, key = str(source).rpartition(".npz:")
    return (Path(f"{head}.npz"), key) if found else (Path(source), "")


def _read_values(path: Path, key: str, domain: Domain, columns: Sequence[str]) -> FloatArray:
    suffix = path.suffix.lower()
    if suffix in ARRAY_FILES:
        return _read_array(path, key)
    if suffix in PARQUET_FILES and is_release(path):
        return _read_release(path, domain)
    if suffix in (*TEXT_FILES, *PARQUET_FILES):
        has_named = has_columns(path, columns) or not has_columns(path, LON_LAT)
        return weigh_points(path, prior_cells(domain), columns if has_named else LON_LAT)
    endings = ", ".join(sorted((*ARRAY_FILES, *TEXT_FILES, *PARQUET_FILES)))
    raise InputError(f"cannot tell what {path.name} is: the name must end in one of {endings}")


def _read_array(path: Path, key: str) -> FloatArray:
    try:
        if not zipfile.is_zipfile(path):
            with open(path, "rb") as plain:
                _check_claim(plain, path, path.stat().st_size)
            return np.asarray(np.load(path, allow_pickle=False))
        with zipfile.ZipFile(path) as packed:
            members = {one.filename.removesuffix(".npy"): one for one in packed.infolist()}
            if not key and len(members) == 1:
                key = next(iter(members))
            if key in members:
                with packed.open(members[key]) as member:
                    _check_claim(member, path, min(members[key].file_size, MOST_UNPACKED))
                with packed.open(members[key]) as member:
                    return np.asarray(np.lib.format.read_array(member, allow_pickle=False))
            there = ", ".join(members)
    except (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error):
        raise InputError(f"cannot read an array of numbers from {path}: is it complete?") from None
    raise InputError(f"{path} has the arrays {there}: name one, as in --prior {path.name}:KEY")


def _check_claim(array: IO[bytes], path: Path, most: int) -> None:
    """Refuse an array that says that it is larger than what is there, or than an array that is unpacked may be."""
    formats = np.lib.format
    is_first = formats.read_magic(array) == (1, 0)
    read = formats.read_array_header_1_0 if is_first else formats.read_array_header_2_0
    shape, _, kind = read(array)
    if (size := math.prod(shape) * kind.itemsize) > most:
        raise InputError(
            f"an array of {path} has {size:,} bytes, and there are at most {most:,} to read: save it "
            "again, with fewer cells"
        )


def _read_release(path: Path, domain: Domain) -> FloatArray:
    """The counts of an earlier release in each cell of a prior. Negative counts become 0."""
    release = Release.load(path)
    if not release.private:
        raise InputError(
            f"{path.name} is not private (noise: {release.noise}): it must not be published, not even as a prior"
        )
    own = prior_cells(release.domain)
    one, other = ([(a.name, a.low, a.high) for a in of.axes] for of in (own, domain))
    if one != other:
        raise InputError(
            f"the release {path.name} is of another map ({show_bounds(own)}) than the data "
            f"({show_bounds(domain)}): take the same bounds, or another prior"
        )
    return cell_counts(release)
