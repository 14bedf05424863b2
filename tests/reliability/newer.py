"""What came later: mutated releases of the newer kinds, broken geometries, odd forms of times, bombs, and budget files that were
linked or restored.

Each part is one tally. Commands must end as all others do (`sandbox.Ending.wrong`), and no message shows the digits of a record.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import htf
from htf.curator.noise import FastNoise
from htf.errors import HtfError
from htf.privacy.budget import read_accounts
from reliability.commands import all_commands, quick_commands
from reliability.fuzz_inputs import SECRET, _change_json, change_bytes, make_points
from reliability.fuzz_releases import is_as_published, make_file
from reliability.sandbox import Sandbox, Tally, sandbox
from street_archive import one_tile, raw_archive, zeros

CASES = {"kinds": 1500, "layers": 500, "times": 400, "budgets": 60}  # at scale 1
MANY = 16 * 2**20  # bytes that a bomb stands for, times up to sixteen
FORMS = ("%Y", "%m", "%d", "%H", "%M", "%S", "%y", "%b", "%B", "%p", "%I", "%z", "%f", "%j", "%s", "%%", "%", "%Q", "%9", "T", " ", "-", ":", "[", "(", ")", "*", "\\", "'", '"', "\0", "é", "{", "a" * 300)  # fmt: skip
LINES = ("release", "--bounds=0,0,1,1", "--cells=8", "--mechanism=ug", "--epsilon=1", "--noise=seeded:1", "--overwrite")  # fmt: skip


def campaign(scale: float, seed: int, folder: Path) -> list[Tally]:
    with sandbox() as box:
        return [
            _kinds(box, scale, seed, folder),
            _layers(box, scale, seed, folder),
            _times(box, scale, seed, folder),
            _bombs(box, scale, folder),
            *_budgets(scale, seed, folder),
        ]


def _cases(what: str, scale: float, seed: int) -> Iterator[tuple[int, random.Random]]:
    for number in range(max(int(CASES[what] * scale), 8)):
        yield number, random.Random(f"{what}:{seed}:{number}")


def _try(tally: Tally, box: Sandbox, name: str, command: list[Any], wrong: str = "") -> int:
    ending = box.run(*command)
    leak = "digits of a record in a message" if SECRET in ending.said else ""
    found = ending.wrong or leak or (wrong if ending.code == 0 else "")
    said = f"{name}: htf {' '.join(map(str, command))[:500]!r}: {found}\n{ending.said[-1200:]}"
    tally.add("accepted" if ending.code == 0 else "refused", said if found else "")
    return ending.code


# Releases of the newer kinds -------------------------------------------------------------------------


def make_kinds(folder: Path) -> dict[str, Path]:
    """Sound releases: zones, trips between them, a map inside zones, sums, kept records of people with their activity, different
    people, and one that borrowed."""
    random_ = np.random.default_rng(7)
    trips, layer = htf.synthetic_trips(2000), htf.synthetic_zones(tracts=12, districts=3)
    zones = htf.read_zones(layer, "tract", within=["district"])
    places = {"lon": trips.x, "lat": trips.y}
    on_map = htf.Domain.from_bounds(*trips.domain_bounds, cells=16)
    of_zones = htf.Domain((zones,), on_map.crs)
    who, weight = np.arange(len(trips.x)) % 150, random_.integers(0, 9, len(trips.x))
    table = {**places, "who": who, "weight": weight}
    noise: dict[str, Any] = {"noise": "seeded:7"}
    columns = ["lon", "lat"]

    def count(domain: htf.Domain, **options: Any) -> htf.FrequencyMatrix:
        return htf.read_points(table, domain, columns, **options)

    sums = count(on_map, weight="weight", max_weight=6)
    each = np.bincount(who)
    activity = htf.measure_activity(htf.RecordsPerPerson.from_records(each, 99), "0.1", **noise)
    boxes = htf.read_people_by_box(table, on_map, 4, columns, user="who")
    distinct = htf.measure_distinct(boxes, "0.2", **noise)
    map_release = htf.publish(count(on_map), "0.4", **noise)
    zone_release = htf.publish(count(of_zones), "0.1", **noise)
    made = {
        "zones": htf.publish(count(of_zones), "0.5", **noise),
        "inside": htf.inside_zones(map_release, zone_release),
        "sums": htf.publish(sums, 1, bought=(htf.measure_clipped(sums, "0.1", **noise),), **noise),
        "kept": htf.publish(
            count(on_map, user="who", max_records=3), 1, bought=(activity,), **noise
        ),
        "different": htf.publish(count(on_map, user="who"), 1, bought=(distinct,), **noise),
    }
    paths = {}
    for name, release in made.items():
        paths[name] = folder / f"kind-{name}.parquet"
        release.save(paths[name], overwrite=True)
    recipe = htf.Recipe(domain=on_map, epsilon=1)
    series = htf.Series.create(folder / "kind-series", recipe, "month", releases=3)
    for month in (1, 2):
        series.add(count(on_map), f"2026-0{month}", noise=FastNoise())
    paths["borrowed"] = folder / "kind-series" / "2026-02.parquet"
    return paths


def _kinds(box: Sandbox, scale: float, seed: int, folder: Path) -> Tally:
    tally, seeds, path = (
        Tally("newer kinds of releases, mutated"),
        make_kinds(folder),
        folder / "kind.parquet",
    )
    own = folder / "kinds"
    own.mkdir()
    for number, chance in _cases("kinds", scale, seed):
        _, sound = make_file(chance, seeds, path)
        for command in all_commands(path, own) if number % 50 == 49 else quick_commands(path):
            ending = box.run(*command)
            wrong = ending.wrong
            if not wrong and command[0] == "verify" and ending.code == 0:
                wrong = "" if is_as_published(path, sound) else "accepted, though it differs"
            said = (
                f"file {number} of {sound.stem}: htf {command[0]}: {wrong}\n{ending.said[-1500:]}"
            )
            tally.add("accepted" if ending.code == 0 else "refused", said if wrong else "")
    return tally


# Layers with broken geometries, and odd forms of times ------------------------------------------------


def _layers(box: Sandbox, scale: float, seed: int, folder: Path) -> Tally:
    """Points and zones of GeoJSON whose values or bytes were changed, as they are, zipped, and as a GeoPackage."""
    tally, out = Tally("layers with broken geometries"), folder / "layers.parquet"
    own = folder / "layers"
    own.mkdir()
    ring: list[list[float]] = [[0, 0], [0.5, 0], [0.5, 0.5], [0, 0.5], [0, 0]]
    squares = [[[x + dx, y + dy] for x, y in ring] for dx in (0, 0.5) for dy in (0, 0.5)]
    points_of = [("Point", [float(f"0.{n}{SECRET}"), 0.5]) for n in range(1, 9)]
    zones_of = [("Polygon", [square]) for square in squares]
    csv = make_points(own)[0]
    for number, chance in _cases("layers", scale, seed):
        of_points = number % 2 == 0
        features: list[Any] = [
            {
                "type": "Feature",
                "properties": {"name": f"n{n}"},
                "geometry": {"type": kind, "coordinates": at},
            }
            for n, (kind, at) in enumerate(points_of if of_points else zones_of)
        ]
        layer: Any = {"type": "FeatureCollection", "features": json.loads(json.dumps(features))}
        for _ in range(chance.choice((1, 2, 5))):
            _change_json(chance, layer)
        content = json.dumps(layer).encode()
        if chance.random() < 0.3:
            content = change_bytes(chance, content, True)
        path = own / "layer.geojson"
        path.write_bytes(content)
        if of_points and chance.random() < 0.3:
            with zipfile.ZipFile(own / "layer.zip", "w") as archive:
                archive.write(path, "layer.geojson")
            path = own / "layer.zip"
            if chance.random() < 0.5:
                path.write_bytes(change_bytes(chance, path.read_bytes(), False))
        words = [str(path)] if of_points else [str(csv), "--zones", str(path), "--by", "name"]
        plain = [
            one
            for one in LINES[1:]
            if of_points or not one.startswith(("--bounds", "--cells", "--mech"))
        ]
        _try(tally, box, f"layer {number}", ["release", *words, *plain, "-o", out])
    return tally


def _times(box: Sandbox, scale: float, seed: int, folder: Path) -> Tally:
    tally, own = Tally("forms of times"), folder / "times"
    own.mkdir()
    csv, out = make_points(own)[0], own / "out.parquet"
    for number, chance in _cases("times", scale, seed):
        form = "".join(chance.choice(FORMS) for _ in range(chance.choice((1, 3, 6, 11))))
        if chance.random() < 0.3:
            form = "%Y-%m-%dT%H:%M:%S" + (form if chance.random() < 0.5 else "")
        people = ["--user", "who", "--per", chance.choice(("day", "week", "month"))]
        options = people if chance.random() < 0.7 else ["--axis", "hour:hour(at):0:24:4"]
        words = [
            csv,
            *options,
            "--x",
            "lon",
            "--y",
            "lat",
            "--time",
            "at",
            "--read",
            f"time-format={form}",
        ]
        _try(tally, box, f"form {number}", ["release", *words, *LINES[1:], "-o", out])
    return tally


# Bombs ------------------------------------------------------------------------------------------


def _bombs(box: Sandbox, scale: float, folder: Path) -> Tally:
    """Some kilobytes that stand for up to a gigabyte. Those that are read as a stream may be accepted."""
    tally, own = Tally("bombs"), folder / "bombs"
    own.mkdir()
    out = own / "out.parquet"
    row, size = b"0.5,0.5\n", MANY if scale >= 0.1 else MANY // 16
    made: dict[str, Callable[[Path], list[Any]]] = {
        "zipped text": lambda p: ["release", _zip(p / "a.zip", "a.csv", b"lon,lat\n" + row * (size // 8))],
        "a zipped line without an end": lambda p: ["release", _zip(p / "b.zip", "b.csv", b"lon,lat\n" + b"0" * size)],
        "gzipped line without an end": lambda p: ["release", _write(p / "c.csv.gz", gzip.compress(b"lon,lat\n" + b"0" * size))],
        "gzipped text in another encoding": lambda p: ["release", _write(p / "d.csv.gz", gzip.compress(b"lon,lat\n" + row * (size // 8))), "--read", "encoding=latin-1"],
        "zip in a zip": lambda p: ["release", _zip(p / "e.zip", "e.csv.gz", gzip.compress(b"lon,lat\n" + b"0" * size))],
        "zipped GeoJSON": lambda p: ["release", _zip(p / "f.zip", "f.geojson", b'{"type": "FeatureCollection", "features": [' + b" " * size)],
        "a zipped array": lambda p: ["release", make_points(p)[0], "--x=lon", "--y=lat", "--prior", _array(p / "g.npz")],
    }  # fmt: skip
    for name, make in made.items():
        command, *words = make(own)
        _try(tally, box, name, [command, *words, *LINES[1:], "-o", out])
    release = own / "map.parquet"
    domain = htf.Domain.from_bounds(0, 0, 1, 1, cells=8)
    htf.publish(
        htf.FrequencyMatrix.from_cells(domain, np.zeros((2, 9), int)), 1, noise="seeded:1"
    ).save(release)
    told, tile = b'{"vector_layers": []}', zeros(2 * MANY)
    archives = {
        "metadata": (gzip.compress(told + b" " * MANY), one_tile(0), b""),
        "directory": (told, zeros(MANY), b""),
        "tile": (told, one_tile(len(tile)), tile),
    }
    for name, parts in archives.items():
        path = raw_archive(own / f"{name}.pmtiles", *parts)
        words = ["map", release, "-o", own / "map.html", "--overwrite", "--basemap", path]
        _try(tally, box, f"PMTiles, {name}", words, "accepted")
    return tally


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _zip(path: Path, name: str, content: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return path


def _array(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive, archive.open("p.npy", "w") as member:
        claim = {"shape": (2**20, 2**20), "fortran_order": False, "descr": "<f8"}
        np.lib.format.write_array_header_1_0(member, claim)
    return path


# Budget files that were linked or restored ---------------------------------------------------------


def _budgets(scale: float, seed: int, folder: Path) -> list[Tally]:
    linked = Tally("budget files by several names")
    for number, chance in _cases("budgets", scale, seed):
        own = folder / f"linked-{number}"
        own.mkdir()
        linked.add(*_linked(chance, own))
        shutil.rmtree(own)
    restored = Tally("series whose budget file was restored")
    for number, chance in _cases("budgets", scale / 10, seed):
        restored.add(*_restored(chance, folder / f"restored-{number}"))
    return [linked, restored]


def _linked(chance: random.Random, folder: Path) -> tuple[str, str]:
    """Charges by one name or another. All that were accepted are in the sum, which is within the cap."""
    names = [folder / name for name in ("a.sqlite", "b.sqlite", "c.sqlite")]
    htf.BudgetFile.create(names[0], "pings", 1)
    kinds = [chance.choice(("link", "hard link", "copy")) for _ in names[1:]]
    for kind, name in zip(kinds, names[1:], strict=True):
        make: Any = {"link": os.symlink, "hard link": os.link, "copy": shutil.copyfile}[kind]
        make(names[0], name)
    spent = dict.fromkeys(range(3), 0)
    refused = 0
    for _ in range(12):
        at = chance.randrange(3)
        price = chance.choice(("0.1", "0.25", "0.4"))
        try:
            htf.BudgetFile(names[at], "pings").charge(price, "htf")
        except HtfError:
            refused += 1
        else:
            book = at if at and kinds[at - 1] == "copy" else 0
            spent[book] += htf.Epsilon.of(price).units
    for at, due in spent.items():
        if at and kinds[at - 1] != "copy":
            continue
        account = read_accounts(names[at])[0]
        if account.spent.units != due or account.spent > account.cap:
            return (
                "wrong",
                f"{kinds}: {account.spent} is spent by {names[at].name}, not {due} units",
            )
    return ("refused" if "hard link" in kinds else "added up"), ""


def _restored(chance: random.Random, folder: Path) -> tuple[str, str]:
    """An old copy of the budget file of a series, put back. No release is made that it does not know of."""
    domain = htf.Domain.from_bounds(0, 0, 1, 1, cells=4)
    unit = chance.choice(("record", "person"))
    user = None if unit == "record" else "who"
    recipe = htf.Recipe(domain=domain, user=user, epsilon=4 if user is None else 1)
    series = htf.Series.create(folder, recipe, "month", releases=4)
    table = {"lon": [0.5] * 40, "lat": [0.5] * 40, "who": list(range(40))}
    matrix = htf.read_points(
        table, domain, ["lon", "lat"], user=None if unit == "record" else "who"
    )
    copies = []
    months = chance.randrange(1, 4)
    for month in range(1, months + 1):
        copies.append((folder / "budget.sqlite").read_bytes())
        series.add(matrix, f"2026-0{month}", noise=FastNoise())
    (folder / "budget.sqlite").write_bytes(chance.choice(copies))
    before = sorted(one.name for one in folder.glob("*.parquet"))
    for month in range(1, months + 2):
        try:
            htf.Series(folder).add(
                matrix, f"2026-0{month}", noise=FastNoise(), correct=chance.random() < 0.5
            )
        except HtfError:
            continue
        return "wrong", f"2026-0{month} was added to a series whose budget file was restored"
    after = sorted(one.name for one in folder.glob("*.parquet"))
    shutil.rmtree(folder)
    return "refused", "" if after == before else "a release appeared"
