"""What is unpacked has a bound, in memory and on the disk."""

from __future__ import annotations

import gzip
import io
import shutil
import zipfile
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htf
from htf.base import unpacking
from htf.base.unpacking import RESERVE, TooLargeError, copy_within, gunzip
from htf.errors import InputError

MAP = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
Usage = namedtuple("Usage", "total used free")


def test_gunzip_stops_at_its_bound() -> None:
    packed = gzip.compress(b"x" * 1000)
    assert gunzip(packed, 1000) == b"x" * 1000
    with pytest.raises(TooLargeError, match="unpacks to more than 999 bytes"):
        gunzip(packed, 999)


@pytest.mark.parametrize(
    "change",
    [lambda p: p[:-1], lambda p: p + p, lambda p: p[:20] + b"no" + p[22:], lambda _: b"plain"],
)
def test_gunzip_refuses_what_is_damaged(change: Any) -> None:
    with pytest.raises(ValueError, match=r"packed by gzip|what gzip packs"):
        gunzip(change(gzip.compress(bytes(range(256)))), 10_000)


@pytest.fixture
def full_disk(monkeypatch: Any) -> None:
    """A disk with room for some kilobytes beyond what is to stay free."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(0, 0, RESERVE + 2000))


@pytest.mark.usefixtures("full_disk")
def test_copies_stop_before_the_disk_is_full(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(unpacking, "BYTES_AT_ONCE", 1000)
    copy = io.BytesIO()
    copy_within(io.BytesIO(bytes(1000)), copy, tmp_path, "a.zip")
    assert len(copy.getvalue()) == 1000
    monkeypatch.setattr(unpacking, "BYTES_AT_ONCE", 3000)
    with pytest.raises(TooLargeError, match=r"a\.zip is too large, unpacked, for the disk"):
        copy_within(io.BytesIO(bytes(3000)), io.BytesIO(), tmp_path, "a.zip")


@pytest.mark.usefixtures("full_disk")
@pytest.mark.parametrize("name", ["points.zip", "points.csv.gz"])
def test_archives_and_copies_of_text_are_not_unpacked_without_room(
    tmp_path: Path, name: str
) -> None:
    text = b"lon,lat\n" + b"0.5,0.5\n" * 1000
    path = tmp_path / name
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("points.csv", text)
    else:
        path.write_bytes(gzip.compress(text))
    with pytest.raises(InputError, match=rf"{name} is too large, unpacked, .* TMPDIR"):
        htf.read_points(path, MAP, ["lon", "lat"], encoding="latin-1")


def test_an_array_is_not_larger_than_it_may_be(tmp_path: Path) -> None:
    """An array in an archive may claim any shape, and would be given that memory first."""
    header = io.BytesIO()
    claim = {"shape": (2**20, 2**20), "fortran_order": False, "descr": "<f8"}
    np.lib.format.write_array_header_1_0(header, claim)
    with zipfile.ZipFile(tmp_path / "p.npz", "w") as archive:
        archive.writestr("weights.npy", header.getvalue() + bytes(800))
    (tmp_path / "p.npy").write_bytes(header.getvalue() + bytes(800))
    for name in ("p.npz", "p.npy"):
        with pytest.raises(InputError, match=r"has 8,796,093,022,208 bytes, and there are at most"):
            htf.read_prior(tmp_path / name, MAP)
    np.savez_compressed(tmp_path / "q.npz", weights=np.ones((2, 2)))
    assert htf.read_prior(tmp_path / "q.npz", MAP).name == "q.npz"
