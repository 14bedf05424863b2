"""Vector tiles from a PMTiles file: which ones a map in one file carries, and what is refused."""

from __future__ import annotations

import base64
import gzip
from pathlib import Path
from typing import Any

import pytest

from htf.cli.main import run
from htf.errors import InputError
from htf.maps.basemap import Bounds
from htf.maps.browser import street_tiles
from htf.maps.browser.mercator import places_over
from htf.maps.browser.street_tiles import WORLD, Archive, carried_tiles, overlaps
from street_archive import one_tile, raw_archive, streets, write_archive, zeros

pytest.importorskip("pmtiles")

BOUNDS: Bounds = (4.0, 52.0, 5.0, 52.6)
ZOOM = 9.0  # at which it fits


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_archive(tmp_path_factory.mktemp("streets") / "town.pmtiles", BOUNDS)


def test_a_file_carries_the_tiles_around_its_map(archive: Path) -> None:
    inner = (4.4, 52.2, 4.5, 52.3)
    told, credit = carried_tiles(archive, inner, ZOOM)
    assert credit == "© Mappers"
    assert (told["minzoom"], told["maxzoom"]) == (8, 11)
    assert told["layers"] == list(streets(BOUNDS))
    near = (4.375, 52.175, 4.525, 52.325)
    assert told["bounds"] == pytest.approx(near)
    expected = {
        "/".join(map(str, place)) for zoom in range(8, 12) for place in places_over(near, zoom)
    }
    assert set(told["index"]) == expected
    joined = base64.b64decode(told["bytes"])
    reading = Archive(archive)
    for name, (start, end) in told["index"].items():
        z, x, y = map(int, name.split("/"))
        plain, zipped = reading.tile((z, x, y))
        assert joined[start:end] == zipped
        assert gzip.decompress(joined[start:end]) == plain
    reading.close()


def test_equal_tiles_are_carried_once(tmp_path: Path) -> None:
    empty = write_archive(tmp_path / "sea.pmtiles", BOUNDS, {"water": []}, is_zipped=True)
    told, _ = carried_tiles(empty, BOUNDS, ZOOM)
    assert len(told["index"]) > 20
    assert len(base64.b64decode(told["bytes"])) == len(gzip.compress(b"", mtime=0))


def test_zooms_that_do_not_fit_are_left_out(archive: Path, monkeypatch: Any) -> None:
    whole, _ = carried_tiles(archive, BOUNDS, ZOOM)
    size = len(base64.b64decode(whole["bytes"]))
    monkeypatch.setattr(street_tiles, "MOST_BYTES", size - 1)
    told, _ = carried_tiles(archive, BOUNDS, ZOOM)
    assert (told["minzoom"], told["maxzoom"]) == (8, 10)
    assert len(base64.b64decode(told["bytes"])) < size
    monkeypatch.setattr(street_tiles, "MOST_BYTES", 100)
    with pytest.raises(InputError, match=r"have 0\.0 MB at zoom 8, and a map in one file carries"):
        carried_tiles(archive, BOUNDS, ZOOM)


def test_zooms_with_too_many_tiles_are_not_looked_for(archive: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(street_tiles, "MOST_TILES", 30)
    assert carried_tiles(archive, BOUNDS, ZOOM)[0]["maxzoom"] == 10


def test_a_map_elsewhere_is_refused(archive: Path) -> None:
    with pytest.raises(
        InputError, match=r"no tiles where this map is, at 10,40,11,41: it covers 4,52,5,52\.6"
    ):
        carried_tiles(archive, (10.0, 40.0, 11.0, 41.0), ZOOM)


def test_a_shallow_archive_is_stretched(archive: Path) -> None:
    told, _ = carried_tiles(archive, (4.4, 52.2, 4.401, 52.201), 18.0)
    assert (told["minzoom"], told["maxzoom"]) == (11, 11)


def test_bounds_that_are_not_told_are_the_world(tmp_path: Path) -> None:
    names = ("min_lon_e7", "min_lat_e7", "max_lon_e7", "max_lat_e7")
    path = write_archive(
        tmp_path / "x.pmtiles", BOUNDS, zooms=(3, 4), header=dict.fromkeys(names, 0)
    )
    archive = Archive(path)
    assert archive.bounds == WORLD
    assert archive.tile((4, 0, 0)) == (b"", None)
    archive.close()


def test_overlaps() -> None:
    assert overlaps(BOUNDS, (4.9, 52.5, 6.0, 53.0))
    assert not overlaps(BOUNDS, (5.0, 52.0, 6.0, 53.0))


@pytest.mark.parametrize("length", [0, 50, 127, 300])
def test_what_is_no_archive_is_refused(archive: Path, tmp_path: Path, length: int) -> None:
    cut = tmp_path / "cut.pmtiles"
    cut.write_bytes(archive.read_bytes()[:length])
    with pytest.raises(InputError, match="not a PMTiles archive of version 3"):
        Archive(cut)
    cut.write_bytes(b"PK" + bytes(length))
    with pytest.raises(InputError, match="not a PMTiles archive of version 3"):
        Archive(cut)


def test_pictures_and_other_compressions_are_refused(tmp_path: Path) -> None:
    from pmtiles.tile import Compression, TileType

    path = tmp_path / "x.pmtiles"
    write_archive(path, BOUNDS, zooms=(3, 3), header={"tile_type": TileType.PNG})
    with pytest.raises(InputError, match="has tiles of type PNG: --basemap takes vector tiles"):
        Archive(path)
    write_archive(path, BOUNDS, zooms=(3, 3), header={"tile_compression": Compression.BROTLI})
    with pytest.raises(InputError, match="compressed with brotli: write it again with gzip"):
        Archive(path)


def test_an_archive_that_changes_meanwhile_is_not_read_on(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "x.pmtiles", BOUNDS, zooms=(3, 3))
    archive = Archive(path)
    place = places_over(BOUNDS, 3)[0]
    assert archive.tile(place)[0]
    with open(path, "ab") as file:
        file.write(b"more")
    with pytest.raises(InputError, match="has changed since it was opened"):
        archive.tile(place)
    archive.close()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("-o", "x.png"), "--basemap is for maps in a browser: write .html"),
        (("-o", "x.html", "--style", "https://x.example/"), "--basemap and --style exclude each"),
    ],
)
def test_options_that_exclude_each_other(
    archive: Path, capsys: Any, arguments: tuple[str, ...], told: str
) -> None:
    assert run(["map", "none.parquet", "--basemap", str(archive), *arguments]) == 2
    assert told in " ".join(capsys.readouterr().err.split())


def test_a_missing_archive_is_named(capsys: Any) -> None:
    assert run(["map", "none.parquet", "-o", "x.html", "--basemap", "none.pmtiles"]) == 2
    assert "there is no file none.pmtiles" in capsys.readouterr().err


ABOUT = b'{"vector_layers": []}'
LARGE = 1 << 25  # bytes, from some kilobytes


def test_nothing_unpacks_without_a_bound(tmp_path: Path) -> None:
    """Each of these parts of an archive is some kilobytes that stand for a multiple of what any archive has."""
    path, sound = tmp_path / "x.pmtiles", one_tile(0)
    told = gzip.compress(ABOUT + b" " * LARGE)
    long_number = gzip.compress(b"\x01" + b"\xff" * 1000 + b"\x01\x01\x01")
    many = gzip.compress(b"\xff\xff\x7f" + b"\x01" * 1000)
    for metadata, directory in (
        (told, sound),
        (ABOUT, zeros(LARGE)),
        (ABOUT, long_number),
        (ABOUT, many),
    ):
        with pytest.raises(InputError, match="is not a PMTiles archive of version 3"):
            Archive(raw_archive(path, metadata, directory))
    tile = zeros(LARGE)
    archive = Archive(raw_archive(path, ABOUT, one_tile(len(tile)), tile))
    with pytest.raises(InputError, match="is damaged: it unpacks to more than 8,000,000 bytes"):
        archive.tile((0, 0, 0))
    archive.close()
    with pytest.raises(InputError, match="it unpacks to more than 8,000,000 bytes"):
        carried_tiles(path, WORLD, 0.0)


@pytest.mark.parametrize("length", [2**62, 2**40, 5_000])
def test_parts_beyond_the_end_are_damage(tmp_path: Path, length: int) -> None:
    archive = Archive(raw_archive(tmp_path / "x.pmtiles", ABOUT, one_tile(length)))
    with pytest.raises(
        InputError, match=r"has .* bytes, more than 8,000,000|would lie beyond its end"
    ):
        archive.tile((0, 0, 0))
    archive.close()


def test_layers_of_another_type_are_no_layers(tmp_path: Path) -> None:
    for told in (b'{"vector_layers": [7, {"id": "roads"}]}', b'{"vector_layers": 7}'):
        Archive(raw_archive(tmp_path / "x.pmtiles", told, one_tile(0))).close()
