"""What people give to the commands, mutated: files of points, of boxes and of polygons, and texts of options.

Points are those of CSV, Parquet, GeoParquet and SQLite files; every record has the same digits in its
coordinates, which no message may show. Every command must end with success or with a refusal.
"""

from __future__ import annotations

import json
import random
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from reliability.hostile import make_seeds
from reliability.sandbox import SHARDS, Ending, Tally, sandbox

CASES = 4000  # at scale 1
SECRET = "73913"  # digits of every record
TOKENS = (
    b"", b",", b";", b"\t", b'"', b'""', b"'", b"\n", b"\r", b"\r\n", b"\0", b"\xef\xbb\xbf", b"\xff\xfe", b"\x80",
    b"nan", b"inf", b"-inf", b"1e999", b"-0", b"0x10", b"1_0", "٣".encode(), b"NULL", b"9" * 500, b"lon", b"lat",
    b"0.5,0.5\n", b"\x1b[2J", b"2020-13-45", b"2020-01-01T10:00:00+99:99", b"{", b"[", b"\\", b"#", b"--", b"= 1+1",
)  # fmt: skip
NUMBERS = (
    "0", "1", "-1", "0.5", ".5", "1.", "1e3", "1e-400", "1e400", "1e1000000000", "nan", "inf", "-inf", "", " ", "1_0",
    "٣", "１", "0x10", "1/3", "1/0", "9" * 400, "-0", "+1", "--1", "1,2", "2147483648", "1e18", "NaN", "True", "None",
    "\x1b[2J", "a", "0.1.2", "1e", "1\n", "4611686018427387904",
)  # fmt: skip
WORDS = (
    "hour",
    "x",
    "y",
    "lon",
    "lat",
    "who",
    "",
    "=",
    ":",
    ",",
    "hour(at)",
    "count",
    "'",
    '"',
    ";",
    "../x",
    "a b",
    "é",
)
SETTINGS = ("most_cells", "height", "alpha", "branching", "cells", "c", "rounds", "stop")
MECHANISMS = (
    "htf",
    "htf-paper",
    "ug",
    "ag",
    "quadtree",
    "kdtree",
    "privtree",
    "hb",
    "dawa",
    "privlet",
    "zero",
    "",
)


def make_points(folder: Path) -> list[Path]:
    """The same few records in every kind of file."""
    chance = random.Random(3)
    rows = []
    for number in range(60):
        lon, lat = (
            float(f"0.{chance.randrange(1000):03}{SECRET}{chance.randrange(100):02}")
            for _ in range(2)
        )
        rows.append(
            (lon, lat, f"p{number % 9}", f"2020-01-{number % 28 + 1:02}T{number % 24:02}:00:00")
        )
    names = ("lon", "lat", "who", "at")
    csv = "\n".join([",".join(names), *(",".join(map(str, row)) for row in rows), ""])
    (folder / "points.csv").write_text(csv)
    columns = dict(zip(names, (list(column) for column in zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), folder / "points.parquet")
    geo = {"encoding": "WKB", "geometry_types": ["Point"]}
    about = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": geo}}
    pairs = np.array([row[:2] for row in rows])
    points = [b"\x01\x01\0\0\0" + pair.astype("<f8").tobytes() for pair in pairs]
    table = pa.table({"geometry": points, "who": columns["who"], "at": columns["at"]})
    table = table.replace_schema_metadata({b"geo": json.dumps(about).encode()})
    pq.write_table(table, folder / "geo.parquet")
    with closing(sqlite3.connect(folder / "points.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE points (lon REAL, lat REAL, who TEXT, at TEXT)")
        connection.executemany("INSERT INTO points VALUES (?, ?, ?, ?)", rows)
    return [
        folder / name for name in ("points.csv", "points.parquet", "geo.parquet", "points.sqlite")
    ]


def change_bytes(chance: random.Random, content: bytes, is_text: bool) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 6))):
        place = chance.randrange(len(changed) + 1)
        kind = chance.randrange(5)
        if kind == 0 and changed:
            changed[min(place, len(changed) - 1)] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del changed[place:]
        elif kind == 2:
            del changed[place : place + chance.choice((1, 5, 60))]
        elif is_text:
            token = chance.choice(TOKENS) * chance.choice((1, 1, 1, 3000))
            changed[place : place + chance.choice((0, 0, len(token)))] = token
        else:
            size = chance.choice((1, 4, 16, 200))
            changed[place : place + size] = chance.choice((bytes(size), b"\xff" * size, chance.randbytes(size)))  # fmt: skip
    return bytes(changed)


def numbers(chance: random.Random, separator: str, most: int = 6) -> str:
    """Mostly plausible, with something odd among them."""
    good = ["0", "0", "1", "1", "0.25", "0.75"]
    amount = chance.choice((most - 2, most - 2, chance.randrange(most)))
    found = [
        chance.choice(NUMBERS) if chance.random() < 0.3 else one for one in good[: max(amount, 0)]
    ]
    return separator.join(found)


def points_command(
    chance: random.Random, sources: list[Path], folder: Path
) -> tuple[str, list[str]]:
    """`htf release` of a file that was changed."""
    source = chance.choice(sources)
    path = folder / f"fuzzed{source.suffix}"
    path.write_bytes(change_bytes(chance, source.read_bytes(), source.suffix == ".csv"))
    more: list[str] = []
    if chance.random() < 0.3:
        more += ["--user", "who", "--max-records", "2"]
    if chance.random() < 0.3:
        more += ["--axis", "hour:hour(at):0:24:4"]
    if source.suffix == ".sqlite" and chance.random() < 0.9:
        more += ["--read", "table=points"]
    if source.name != "geo.parquet" and chance.random() < 0.5:
        more += ["--x", "lon", "--y", "lat"]
    kind = "GeoParquet" if source.name == "geo.parquet" else source.suffix[1:]
    return f"points, {kind}", ["release", str(path), "--bounds", "0,0,1,1", *_rest(folder), *more]


def _rest(folder: Path) -> list[str]:
    return ["--cells", "8", "--mechanism", "ug", "--epsilon", "1", "--noise", "seeded:1", "-o", str(folder / "out.parquet"), "--overwrite"]  # fmt: skip


def option_command(
    chance: random.Random, sources: list[Path], folder: Path
) -> tuple[str, list[str]]:
    """`htf release` of a sound file, asked for in odd words."""
    odd = {
        "--bounds": lambda: numbers(chance, ","),
        "--around": lambda: numbers(chance, ",", 5),
        "--cells": lambda: chance.choice((chance.choice(NUMBERS), numbers(chance, ",", 4))),
        "--epsilon": lambda: chance.choice(NUMBERS),
        "--axis": lambda: ":".join(chance.choice((*WORDS, *NUMBERS)) for _ in range(chance.choice((5, 5, 2)))),
        "--max-records": lambda: chance.choice(("auto", *NUMBERS)),
        "--spend": lambda: f"{chance.choice(('activity', 'x'))}={chance.choice(('1/3', '1/0', *NUMBERS))}",
        "--user": lambda: chance.choice(WORDS),
        "--x": lambda: chance.choice(WORDS),
        "--time": lambda: chance.choice(WORDS),
        "--once-per": lambda: chance.choice(("hour", "day", "all", *WORDS)),
        "--read=utc-offset": lambda: chance.choice(("+08:00", "-99:99", "+8", *NUMBERS)),
        "--set": lambda: f"{chance.choice(SETTINGS)}={chance.choice(NUMBERS)}",
        "--mechanism": lambda: chance.choice(MECHANISMS),
        "--noise": lambda: chance.choice(("seeded:", "seeded:-1", "seeded:1e9", f"seeded:{'9' * 400}", "secret", "")),
        "--crs": lambda: chance.choice(("EPSG:3857", "EPSG:0", "+proj=", "WGS84", "x" * 3000, *WORDS)),
        "--read=memory": lambda: chance.choice(("1GB", "1KB", "-1GB", "0", *NUMBERS)),
    }  # fmt: skip
    plain = {
        "--bounds": "0,0,1,1",
        "--cells": "8",
        "--mechanism": "ug",
        "--epsilon": "1",
        "--noise": "seeded:1",
    }
    for name in chance.sample(sorted(odd), chance.choice((1, 1, 2, 3))):
        plain[name] = odd[name]()
    if "--around" in plain and chance.random() < 0.8:
        del plain["--bounds"]
    words = [word for name, value in plain.items() for word in (f"{name}={value}",)]
    source = str(chance.choice(sources[:3]))
    return "texts of htf release", [
        "release",
        source,
        *words,
        "-o",
        str(folder / "out.parquet"),
        "--overwrite",
    ]


def box_command(chance: random.Random, releases: list[Path], folder: Path) -> tuple[str, list[str]]:
    """`htf query` for boxes, in odd words or of a file that was changed."""
    release = str(chance.choice(releases))
    if chance.random() < 0.5:
        where = [f"--where={chance.choice(WORDS)}={numbers(chance, ':', 4)}"] * chance.choice(
            (0, 1, 2)
        )
        return "texts of htf query", ["query", release, f"--box={numbers(chance, ',')}", *where]
    rows = ["west,south,east,north,name", *("-30.1,39.95,-30,40,a" for _ in range(5)), ""]
    path = folder / "boxes.csv"
    path.write_bytes(change_bytes(chance, "\n".join(rows).encode(), True))
    json_too = ["--json"] * chance.choice((0, 1))
    return "files of boxes", ["query", release, "--boxes", str(path), *json_too]


def polygon_command(
    chance: random.Random, releases: list[Path], folder: Path
) -> tuple[str, list[str]]:
    """`htf query` for polygons of GeoJSON whose values or bytes were changed; or for zones."""
    release = str(chance.choice(releases))
    if chance.random() < 0.15:
        zones = chance.choice(
            (
                f"--grid=h3:{chance.choice(('0', '3', '15', *NUMBERS))}",
                f"--grid={numbers(chance, ',', 4)}",
            )
        )
        return "zones", ["export", release, zones, "-o", str(folder / "zones.gpkg"), "--overwrite"]
    ring = [[-30.1, 39.95], [-30, 39.95], [-30, 40.05], [-30.1, 40.05], [-30.1, 39.95]]
    geometry = chance.choice((
        {"type": "Polygon", "coordinates": [ring]},
        {"type": "MultiPolygon", "coordinates": [[ring], [[[x + 0.05, y] for x, y in ring]]]},
        {"type": "Polygon", "coordinates": [[ring[0], ring[2], ring[1], ring[3], ring[0]]]},
        {"type": "GeometryCollection", "geometries": [{"type": "Point", "coordinates": ring[0]}]},
    ))  # fmt: skip
    feature = {"type": "Feature", "properties": {"name": "a", "n": 1}, "geometry": geometry}
    found: Any = {
        "type": "FeatureCollection",
        "features": [feature, json.loads(json.dumps(feature))],
    }
    for _ in range(chance.choice((0, 1, 2))):
        _change_json(chance, found)
    content = json.dumps(found).encode()
    if chance.random() < 0.3:
        content = change_bytes(chance, content, True)
    path = folder / "polygons.geojson"
    path.write_bytes(content)
    by = ["--by", chance.choice(("name", *WORDS))] * chance.choice((0, 1))
    return "polygons", ["query", release, "--polygons", str(path), *by]


def _change_json(chance: random.Random, found: Any) -> None:
    values: tuple[Any, ...] = (
        None,
        0,
        -1,
        1e308,
        float("nan"),
        float("inf"),
        "x",
        [],
        {},
        [[]],
        [[0, 0]],
        True,
        10**30,
        "\ud800",
    )
    while isinstance(found, (dict, list)) and found:
        name = chance.choice(list(found) if isinstance(found, dict) else range(len(found)))
        if chance.random() < 0.3 or not isinstance(found[name], (dict, list)):
            found[name] = chance.choice(values)
            return
        found = found[name]


def campaign(scale: float, seed: int, folder: Path) -> list[Tally]:
    sources = make_points(folder)
    made = make_seeds(folder)
    releases = [made[name] for name in ("plane", "hours", "metres")]
    number = max(int(CASES * scale), 20)
    with ThreadPoolExecutor(SHARDS) as pool:
        shares = [range(shard, number, SHARDS) for shard in range(SHARDS)]
        tallies = list(
            pool.map(lambda share: _fuzz(share, seed, sources, releases, folder), shares)
        )
    return Tally.joined(tallies)


def _fuzz(
    share: range, seed: int, sources: list[Path], releases: list[Path], folder: Path
) -> list[Tally]:
    own = folder / f"shard{share.start}"
    own.mkdir()
    tallies: dict[str, Tally] = {}
    with sandbox() as box:
        for number in share:
            chance = random.Random(f"{seed}:{number}")
            maker, given = chance.choice((
                (points_command, sources), (points_command, sources), (option_command, sources),
                (box_command, releases), (polygon_command, releases),
            ))  # fmt: skip
            what, command = maker(chance, given, own)
            tally = tallies.setdefault(what, Tally(f"inputs, {what}"))
            ending = box.run(*command)
            wrong = ending.wrong or _leak(command, ending)
            said = (
                f"input {number}: htf {' '.join(command)[:600]!r}: {wrong}\n{ending.said[-1500:]}"
            )
            tally.add("accepted" if ending.code == 0 else "refused", said if wrong else "")
    return [tallies[name] for name in sorted(tallies)]


def _leak(command: list[str], ending: Ending) -> str:
    told = command[0] == "release" and SECRET in ending.said
    return "digits of a record in a message" if told else ""
