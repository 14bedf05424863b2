"""A typo costs nothing: what can be told without the data is refused before they are read; and what goes wrong
after the charge says so, and what to do."""

from __future__ import annotations

import gzip
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htf import BudgetFile, Domain, InputError, Release, publish, read_points, read_prior
from htf.cli.main import run
from htf.estimation.prior import Prior
from htf.privacy.account import Entry
from htf.privacy.origins import FileMark

BOUNDS = "-74.12,40.57,-73.81,40.87"


@pytest.fixture
def budget(tmp_path: Path) -> BudgetFile:
    return BudgetFile.create(tmp_path / "budget.sqlite", "pings", 9)


def table(path: Path, seed: int = 1, size: int = 400) -> Path:
    draw = np.random.default_rng(seed)
    lon, lat = draw.normal(-73.98, 0.03, size), draw.normal(40.72, 0.03, size)
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"lon": lon, "lat": lat, "who": np.arange(size) % 50}), path)
    return path


def command(points: Any, budget: BudgetFile, *more: Any) -> list[str]:
    asked = ["--bounds", BOUNDS, "--cells", "16", "--epsilon", "0.5", "--noise", "fast"]
    charged = [
        "--budget",
        budget.path,
        "--dataset",
        "pings",
        "-o",
        budget.path.parent / "out.parquet",
    ]
    return ["release", *map(str, [points, *asked, *charged, *more])]


# --- before the data are read ------------------------------------------------------------------------

# The points are not there: whatever is said instead was found out before they were looked for.
WITHOUT_DATA: dict[str, tuple[list[str], int, str]] = {
    "south first": (["--bounds", "40.57,-74.12,40.87,-73.81"], 2, "are latitude and longitude swapped?"),
    "south first, as EPSG:4326 has it": (["--bounds", "40.57,-74.12,40.87,-73.81", "--crs", "EPSG:4326"], 2, "latitude and longitude swapped?"),
    "beyond the pole": (["--bounds", "35.6,139.6,35.7,139.8"], 2, "longitude and latitude swapped?"),
    "beyond another pole": (["--bounds", "35.6,139.6,35.7,139.8", "--crs", "EPSG:4269"], 2, "Are they swapped, or of another reference system?"),
    "metres as degrees": (["--bounds", "580000,4480000,600000,4520000", "--crs", "EPSG:4269"], 2, "these are longitudes and latitudes"),
    "beyond a quarter of 400": (["--bounds", "0,40,1,101", "--crs", "EPSG:4807"], 2, "these are longitudes and latitudes"),
    "degrees as metres": (["--crs", "EPSG:3857"], 2, "look like degrees"),
    "west beyond east": (["--bounds", "1,2,0,3"], 2, "west must be less than east"),
    "west beyond east in metres": (["--bounds", "9,2,8,3000", "--crs", "EPSG:3857"], 2, "are they swapped?"),
    "no such system": (["--crs", "EPSG:99999"], 2, "no reference system"),
    "no such system of points": (["--read", "points-crs=EPSG:9"], 2, "no reference system 'EPSG:9'"),
    "another ending": (["-o", "out.gpkg"], 2, "the name must end in .parquet"),
    "no ending": (["-o", "out"], 2, "the name must end in .parquet"),
    "no folder": (["-o", "no/out.parquet"], 2, "there is no folder no"),
    "no parameter": (["--set", "heigth=3"], 2, "has no parameter 'heigth'"),
    "no mechanism": (["--mechanism", "hft"], 2, "hft"),
    "too little for the mechanism": (["--epsilon", "1e-15"], 3, "is too small"),
    "too little for each level": (["--epsilon", "0.001", "--mechanism", "htf-paper"], 3, "for each of"),
    "over the cap": (["--epsilon", "10"], 3, "more than the budget of"),
    "no prior": (["--prior", "none.npy"], 2, "there is no file"),
    "an unreadable prior": (["--prior", "broken.npy"], 2, "cannot read an array"),
    "a prior of another map": (["--prior", "elsewhere.parquet"], 2, "is of another map"),
    "a prior for another mechanism": (["--prior", "broken.npy", "--mechanism", "ug"], 2, "ug takes no prior"),
    "nobody": (["--max-records", "3"], 2, "name the column of people with --user"),
    "no bound": (["--user", "who"], 2, "--max-records K"),
    "for people": (["--user", "who", "--max-records", "3"], 2, "epsilons of different units cannot be added"),
    "no time": (["--user", "who", "--max-records", "3", "--once-per", "day"], 2, "needs times"),
    "no slot": (["--user", "who", "--max-records", "3", "--once-per", "week"], 2, "one of hour, day, all"),
    "no unit": (["--read", "time-unit=h"], 2, "one of s, ms, us, ns"),
    "no engine": (["--read", "engine=abacus"], 2, "must be one of duckdb, spark"),
    "no size": (["--read", "memory=lots"], 2, "as in 500MB or 4GB"),
    "x without y": (["--x", "lon"], 2, "--x and --y"),
    "an axis too few": (["--axis", "hour:hour(at):0:24"], 2, "NAME:COLUMN:LOW:HIGH:CELLS"),
    "not private": (["--noise", "seeded:1"], 2, "seeded or scripted noise"),
    "a total": (["--mechanism", "ug", "--set", "public_total=9"], 2, "public_total discloses"),
}  # fmt: skip


@pytest.mark.parametrize("case", WITHOUT_DATA)
def test_what_can_be_told_without_the_data_is_told_before_they_are_read(
    case: str,
    budget: BudgetFile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.npy").write_text("?")
    elsewhere = Domain.from_bounds(0, 0, 1, 1, 4)
    publish(read_points(([0.5], [0.5]), elsewhere), 1, "ug").save("elsewhere.parquet")
    options, code, says = WITHOUT_DATA[case]
    # A prior is compared with the files of the points, which have to be there for that, and broken will do.
    there = "--prior" in options
    points = Path("points.csv") if there else Path("not-there.csv")
    if there:
        points.write_bytes(b"\xff\xfe")
    before = budget.path.read_bytes()
    assert run(command(points, budget, *options)) == code
    told = " ".join(capfd.readouterr().err.split())
    assert says in told
    assert "Nothing was charged" in told
    assert budget.path.read_bytes() == before
    assert not Path("out.parquet").exists()


def test_antarctica_can_be_meant(tmp_path: Path, budget: BudgetFile) -> None:
    points = tmp_path / "penguins.csv"
    points.write_text("lon,lat\n40.6,-74\n")
    asked = command(points, budget, "--bounds", "40.57,-74.12,40.87,-73.81", "--mechanism", "ug")
    assert run(asked) == 2
    assert run([*asked, "--crs", "OGC:CRS84"]) == 0
    assert Release.load(tmp_path / "out.parquet").domain.axes[1].low == -74.12


def test_degrees_are_not_read_as_metres(
    tmp_path: Path, budget: BudgetFile, capfd: pytest.CaptureFixture[str]
) -> None:
    points = table(tmp_path / "points.parquet")
    asked = command(
        points, budget, "--bounds", "580000,4480000,600000,4520000", "--crs", "EPSG:32618"
    )
    assert run(asked) == 2
    assert "'lon' and 'lat' have the names of degrees" in capfd.readouterr().err
    assert budget.account().entries == ()
    assert (
        run([*asked, "--read", "points-crs=EPSG:32618"]) == 2
    )  # if that is said, they are taken as metres
    assert "No record is inside the bounds" in capfd.readouterr().err
    assert run([*asked, "--read", "points-crs=EPSG:4326"]) == 0


def test_python_refuses_bounds_too(budget: BudgetFile) -> None:
    domain = Domain.from_bounds(40, 100, 41, 101, 4, crs="EPSG:4269")
    with pytest.raises(InputError, match="these are longitudes and latitudes"):
        publish(read_points(([40.5], [100.5]), domain), 1, "ug", budget=budget)
    assert budget.account().entries == ()


# --- the data are not their own prior ---------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in (1, 2):
        table(tmp_path / "data" / f"{number}.parquet", number)
    (tmp_path / "data" / "link.parquet").symlink_to(tmp_path / "data" / "1.parquet")
    (tmp_path / "priors").mkdir()
    shutil.copy(tmp_path / "data" / "2.parquet", tmp_path / "priors" / "copied.parquet")
    os.link(tmp_path / "data" / "2.parquet", tmp_path / "priors" / "hard.parquet")
    (tmp_path / "priors" / "soft.parquet").symlink_to(tmp_path / "data" / "2.parquet")
    table(tmp_path / "priors" / "public.parquet", 3)
    return tmp_path


@pytest.mark.parametrize(
    "source", ["data", "data/*.parquet", "data/[12].parquet", "data/2.parquet"]
)
@pytest.mark.parametrize(
    "prior",
    ["data/2.parquet", "priors/copied.parquet", "priors/hard.parquet", "priors/soft.parquet"],
)
def test_no_file_of_the_data_is_their_prior(
    source: str, prior: str, folder: Path, budget: BudgetFile, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "data" / "link.parquet").unlink()
    assert run(command(folder / source, budget, "--prior", folder / prior)) == 2
    assert "is one of the files of the data to be released" in capfd.readouterr().err
    assert budget.account().entries == ()
    matrix = read_points(str(folder / source), Domain.from_bounds(-74.12, 40.57, -73.81, 40.87, 16))
    known = read_prior(folder / prior, matrix.domain)
    for other in (known, pickle.loads(pickle.dumps(known))):
        with pytest.raises(InputError, match="is one of the files of the data"):
            publish(matrix, "0.5", prior=other, budget=budget)
    with pytest.raises(InputError, match="is one of the files of the data"):
        publish(pickle.loads(pickle.dumps(matrix)), "0.5", prior=known, budget=budget)
    assert budget.account().entries == ()
    public = read_prior(folder / "priors" / "public.parquet", matrix.domain)
    assert publish(matrix, "0.5", prior=public, noise="fast").priors == (public,)


@pytest.mark.parametrize(
    ("data", "prior"), [("a.csv", "b.csv.gz"), ("a.csv.gz", "b.csv"), ("a.csv.gz", "b.csv.gz")]
)
def test_packed_copies_are_known_too(
    data: str, prior: str, tmp_path: Path, budget: BudgetFile, capfd: pytest.CaptureFixture[str]
) -> None:
    text = b"lon,lat\n" + b"-74.0,40.7\n" * 99
    for name, level in ((data, 1), (prior, 9)):
        packed = gzip.compress(text, level) if name.endswith(".gz") else text
        (tmp_path / name).write_bytes(packed)
    asked = command(tmp_path / data, budget, "--prior", tmp_path / prior)
    assert run(asked) == 2
    assert "is one of the files of the data" in capfd.readouterr().err
    other = gzip.compress(text + b"1,1\n") if prior.endswith(".gz") else text + b"1,1\n"
    (tmp_path / prior).write_bytes(other)
    assert run(asked) == 0


def test_a_database_is_not_its_own_prior(tmp_path: Path, budget: BudgetFile) -> None:
    """Whatever the name of the copy promises."""
    import duckdb

    with duckdb.connect(str(tmp_path / "city.duckdb")) as connection:
        connection.execute("CREATE TABLE pings AS SELECT -74.0 AS lon, 40.7 AS lat FROM range(9)")
    matrix = read_points(
        tmp_path / "city.duckdb", Domain.from_bounds(-75, 40, -73, 41, 4), table="pings"
    )
    own = Prior.of(
        np.ones((4, 4)), matrix.domain, "city", "", FileMark.of(tmp_path / "city.duckdb")
    )
    with pytest.raises(InputError, match="is one of the files of the data"):
        publish(matrix, 1, prior=own, budget=budget)


def test_what_cannot_be_compared_is_refused(folder: Path, budget: BudgetFile) -> None:
    """The file is gone, and its size says that the prior may be a copy of it."""
    domain = Domain.from_bounds(-74.12, 40.57, -73.81, 40.87, 16)
    own, copied = folder / "data" / "2.parquet", folder / "priors" / "copied.parquet"
    matrix, known = read_points(own, domain), read_prior(copied, domain)
    away = own.rename(folder / "elsewhere.parquet")
    for path in folder.glob("priors/*t.parquet"):
        path.unlink()
    with pytest.raises(InputError, match="cannot be compared"):
        publish(matrix, "0.5", prior=known, budget=budget)
    away.rename(own)
    copied.write_bytes(copied.read_bytes() + b"x")  # since it was read
    assert publish(matrix, "0.5", prior=read_prior(folder / "priors/public.parquet", domain))
    assert budget.account().entries == ()


def test_a_release_does_not_know_where_anything_was(folder: Path, tmp_path: Path) -> None:
    domain = Domain.from_bounds(-74.12, 40.57, -73.81, 40.87, 16)
    matrix = read_points(folder / "data" / "1.parquet", domain)
    known = read_prior(folder / "priors" / "public.parquet", domain)
    made = publish(matrix, "0.5", prior=known)
    made.save(tmp_path / "out.parquet")
    name = folder.name.encode()
    assert name in pickle.dumps(known)
    assert name in pickle.dumps(matrix)
    for content in (pickle.dumps(made), (tmp_path / "out.parquet").read_bytes()):
        assert name not in content
    assert folder.name not in repr(known) + repr(matrix)


# --- after the charge -------------------------------------------------------------------------------


def test_an_interruption_just_after_the_charge_says_that_it_stands(
    tmp_path: Path,
    budget: BudgetFile,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The charge is on the disk, and nobody has been given its entry yet."""
    charge = BudgetFile.charge

    def interrupted(self: BudgetFile, *arguments: Any, **options: Any) -> Entry:
        charge(self, *arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(BudgetFile, "charge", interrupted)
    assert run(command(table(tmp_path / "points.parquet"), budget)) == 130
    (entry,) = budget.account().pending
    told = capfd.readouterr().err
    assert f"The charge of 0.5 stands, as entry {entry.id} of 'pings' in {budget.path}." in told
    assert f"`htf budget publish {budget.path} --dataset pings --entry {entry.id} FILE`" in told
    assert "Nothing was charged" not in told
    with pytest.raises(KeyboardInterrupt) as caught:
        publish(read_points(([0.5], [0.5]), Domain.from_bounds(0, 0, 1, 1, 4)), 1, budget=budget)
    (note,) = caught.value.__notes__
    assert budget.account().entries[-1].id in note


def test_a_folder_that_went_away_does_not_cost_the_release(
    tmp_path: Path,
    budget: BudgetFile,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    charge, out, spare = BudgetFile.charge, tmp_path / "out", tmp_path / "temporary"
    out.mkdir()
    spare.mkdir()

    def charged(self: BudgetFile, *arguments: Any, **options: Any) -> Entry:
        out.rmdir()
        return charge(self, *arguments, **options)

    monkeypatch.setattr(BudgetFile, "charge", charged)
    monkeypatch.setattr("htf.files.gettempdir", lambda: str(spare))
    points = table(tmp_path / "points.parquet")
    assert run(command(points, budget, "-o", out / "city.parquet")) == 2
    (entry,) = budget.account().entries
    (made,) = spare.glob("release-*.parquet")
    told = capfd.readouterr().err
    assert f"there is no folder {out}. The release is complete, as {made}" in told
    assert f"as entry {entry.id} of 'pings' in {budget.path}. Its release is complete" in told
    assert (entry.state, entry.file) == ("published", made.name)
    assert Release.load(made).budget_entry == entry.id


@pytest.mark.parametrize("output", ["full", "closed"])
def test_what_is_written_is_done_though_nobody_hears_of_it(
    output: str, tmp_path: Path, budget: BudgetFile
) -> None:
    asked = command(table(tmp_path / "points.parquet"), budget, "--mechanism", "ug")
    words = [sys.executable, "-m", "htf", *asked]
    if output == "full":
        with open("/dev/full", "w") as full:
            ran = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    else:
        reading, writing = os.pipe()
        os.close(reading)
        ran = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
        os.close(writing)
    assert ran.returncode == 0, ran.stderr
    assert re.search(
        r"Note: some messages could not be shown \(.*(No space left|Broken pipe)", ran.stderr
    )
    (entry,) = budget.account().entries
    assert entry.state == "published"
    assert Release.load(tmp_path / "out.parquet").budget_entry == entry.id


def test_a_closed_pipe_is_no_failure(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    words = [sys.executable, "-m", "htf", "mechanisms"]
    ran = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, cwd=tmp_path, check=False)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (0, b"")
