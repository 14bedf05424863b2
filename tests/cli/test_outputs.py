"""No command loses a file by a mistake in its output, nor spends a budget on one."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htf import BudgetFile, Domain, FrequencyMatrix, Release, publish
from htf.cli.main import run

MAP = ("--bounds", "0,0,1,1", "--cells", "8", "--mechanism", "ug", "--noise", "fast")
ZONES = (
    '{"type":"FeatureCollection","features":[{"type":"Feature","properties":{"name":"a"},"geometry":'
    '{"type":"Polygon","coordinates":[[[0.1,0.1],[0.9,0.1],[0.9,0.9],[0.1,0.1]]]}}]}'
)


def write_points(path: Path) -> None:
    generator = np.random.default_rng(1)
    pq.write_table(pa.table({"lon": generator.random(500), "lat": generator.random(500)}), path)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All that commands read, in the folder in which they are run."""
    monkeypatch.chdir(tmp_path)
    write_points(tmp_path / "points.parquet")
    (tmp_path / "folder").mkdir()
    write_points(tmp_path / "folder" / "part.parquet")
    np.save(tmp_path / "land.npy", np.ones((8, 8)))
    (tmp_path / "boxes.csv").write_text("west,south,east,north\n0.1,0.1,0.9,0.9\n")
    (tmp_path / "zones.geojson").write_text(ZONES)
    matrix = FrequencyMatrix.from_dense(Domain.from_bounds(0, 0, 1, 1, 8), np.full((8, 8), 9))
    publish(matrix, 1, "ug", noise="fast").save(tmp_path / "r.parquet")
    publish(matrix, 1, "ug", noise="fast").save(tmp_path / "s.parquet")
    BudgetFile.create(tmp_path / "budget.sqlite", "pings", 1)
    return tmp_path


def htf(*words: Any) -> int:
    return run([str(word) for word in words])


def contents(place: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(place)): path.read_bytes() if path.is_file() else None
        for path in sorted(place.rglob("*"))
    }


def release(*words: Any, of: str = "points.parquet") -> list[Any]:
    return ["release", of, *MAP, "--epsilon", "0.5", *words]


CHARGED = ("--budget", "budget.sqlite", "--dataset", "pings")
# Every file that a command reads, and the command; `-o` is added.
READERS: dict[str, tuple[str, list[Any]]] = {
    "release": ("points.parquet", release()),
    "release of a folder": ("folder/part.parquet", release(of="folder")),
    "release of a pattern": ("folder/part.parquet", release(of="folder/*.parquet")),
    "release with a prior": ("r.parquet", release("--mechanism", "htf", "--prior", "r.parquet")),
    "query of boxes": ("boxes.csv", ["query", "r.parquet", "--boxes", "boxes.csv"]),
    "query": ("r.parquet", ["query", "r.parquet", "--box", "0,0,1,1"]),
    "polygons": ("zones.geojson", ["query", "r.parquet", "--polygons", "zones.geojson"]),
    "export": ("r.parquet", ["export", "r.parquet"]),
    "sample": ("r.parquet", ["sample", "r.parquet"]),
}


def spellings(name: str) -> list[str]:
    """The same file by links and by other names."""
    path = Path(name)
    os.link(path, f"hard{path.suffix}")
    Path("door").symlink_to(path.parent.absolute())
    return [name, str(path.absolute()), f"./folder/../{name}", f"hard{path.suffix}", f"door/{path.name}"]  # fmt: skip


@pytest.mark.parametrize("case", READERS)
def test_no_command_writes_to_what_it_reads(
    case: str, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    name, command = READERS[case]
    outputs = spellings(name)
    before = contents(place)
    for output in outputs:
        for overwrite in ([], ["--overwrite"]):
            assert htf(*command, "-o", output, *overwrite) == 2
            told = " ".join(capfd.readouterr().err.split())
            assert "the input" in told
    assert contents(place) == before


def test_the_budget_is_not_an_output(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    os.link("budget.sqlite", "hard.parquet")
    before = contents(place)
    for output in ("budget.sqlite", "hard.parquet"):
        assert htf(*release(*CHARGED), "-o", output, "--overwrite") == 2
        assert "budget file" in capfd.readouterr().err
    assert htf(*release(), "-o", "hard.parquet", "--overwrite") == 2
    assert "it is a budget file" in capfd.readouterr().err
    assert contents(place) == before


def test_a_release_among_its_data_is_refused(place: Path) -> None:
    """A second run would read it as data."""
    before = contents(place)
    assert htf(*release(of="folder"), "-o", "folder/new.parquet") == 2
    assert htf(*release(of="fold*/*.parquet"), "-o", "folder/new.parquet") == 2
    assert contents(place) == before


# Each command that writes, and what it may write.
WRITERS: dict[str, tuple[list[Any], str]] = {
    "release": (release(), "out.parquet"),
    "query": (["query", "r.parquet", "--box", "0,0,1,1"], "out.csv"),
    "polygons": (["query", "r.parquet", "--polygons", "zones.geojson"], "out.csv"),
    "layer of polygons": (["query", "r.parquet", "--polygons", "zones.geojson"], "out.gpkg"),
    "layer": (["export", "r.parquet"], "out.fgb"),
    "table": (["export", "r.parquet"], "out.csv"),
    "zones": (["export", "r.parquet", "--grid", "2,2"], "out.parquet"),
    "raster": (["export", "r.parquet"], "out.tif"),
    "sample": (["sample", "r.parquet", "--seed", "1"], "out.parquet"),
    "table of points": (["sample", "r.parquet", "--seed", "1"], "out.csv"),
    "picture": (["map", "r.parquet"], "out.png"),
    "page": (["map", "r.parquet", "s.parquet"], "out.html"),
    "record": (["info", "r.parquet", "--registry"], "out.yaml"),
}


@pytest.mark.parametrize("case", WRITERS)
def test_one_rule_for_every_command(
    case: str, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command, name = WRITERS[case]
    ask: Callable[..., int] = lambda *words: htf(*command, "-o", name, *words)  # noqa: E731
    known = set(contents(place))

    def refused(says: str, *words: str) -> None:
        before = contents(place)
        assert ask(*words) == 2
        assert says in " ".join(capfd.readouterr().err.split())
        assert contents(place) == before

    (place / name).write_text("precious")
    refused("it already exists")
    (place / name).chmod(0o400)
    refused("it is read-only", "--overwrite")
    (place / name).chmod(0o600)
    assert ask("--overwrite") == 0
    assert b"precious" not in (place / name).read_bytes()
    assert stat.S_IMODE((place / name).stat().st_mode) == 0o600
    beside = {f"{name}.statement.txt"} if case in ("table", "table of points") else set()
    assert set(contents(place)) == known | {name} | beside
    capfd.readouterr()
    for extra in beside:
        (place / name).unlink()
        (place / extra).write_text("precious")
        refused("statement.txt: it already exists")
    (place / name).unlink(missing_ok=True)
    (place / name).symlink_to("/dev/null")
    refused("it is a link", "--overwrite")
    (place / name).unlink()
    (place / name).hardlink_to(place / "s.parquet")
    if case not in ("release", "page"):
        refused("it is a release", "--overwrite")


@pytest.mark.parametrize("case", WRITERS)
@pytest.mark.usefixtures("place")
def test_devices_stay(case: str, capfd: pytest.CaptureFixture[str]) -> None:
    """As root, which most containers are run as, a device was replaced by a file."""
    command, name = WRITERS[case]
    try:
        os.mknod(name, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes devices")
    for overwrite in ([], ["--overwrite"]):
        assert htf(*command, "-o", name, *overwrite) == 2
        assert "it is a device" in capfd.readouterr().err
    assert stat.S_ISCHR(os.lstat(name).st_mode)


MISTAKES = {
    "another ending": ("out.gpkg", "must end in .parquet, .geoparquet, .pq"),
    "no ending": ("out", "must end in"),
    "a name too long": ("a" * 250 + ".parquet", "File name too long"),
    "no folder": ("no/out.parquet", "there is no folder"),
    "no text": ("a\udcff.parquet", "not valid Unicode"),
    "a device": ("/dev/null", "must end in"),
    "nothing": ("", "the name is empty"),
    "the data": ("points.parquet", "the input"),
    "a file": ("s.parquet", "it already exists"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_in_the_output_costs_nothing(
    case: str, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    output, says = MISTAKES[case]
    before = contents(place)
    assert htf(*release(*CHARGED), "-o", output) == 2
    assert says in " ".join(capfd.readouterr().err.split())
    assert contents(place) == before
    assert BudgetFile("budget.sqlite", "pings").account().entries == ()


@pytest.mark.usefixtures("place")
def test_a_long_name_is_written() -> None:
    """The name under which a file is written first was longer than the output's, and then too long."""
    name = "a" * 247 + ".parquet"
    assert htf(*release(*CHARGED), "-o", name) == 0
    (entry,) = BudgetFile("budget.sqlite", "pings").account().entries
    assert (entry.state, entry.file) == ("published", name)


@pytest.mark.parametrize("charged", [CHARGED, ()])
def test_a_release_that_lost_its_name_is_kept(
    charged: tuple[str, ...],
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Another process writes the output while the release is being made, when all checks are passed."""

    def publish_slowly(*arguments: Any, **options: Any) -> Release:
        (place / "out.parquet").write_text("of another process")
        return publish(*arguments, **options)

    monkeypatch.setattr("htf.recipes.make.publish", publish_slowly)
    assert htf(*release(*charged), "-o", "out.parquet") == 2
    told = " ".join(capfd.readouterr().err.split())
    (spare,) = place.glob("release-*.parquet")
    assert f"out.parquet: it already exists. Give another name, or --overwrite to replace it (in Python overwrite=True). The release is complete, as {spare.name}" in told  # fmt: skip
    assert ("The charge of 0.5 stands" in told) == bool(charged)
    assert (place / "out.parquet").read_text() == "of another process"
    assert Release.load(spare).private
    entries = BudgetFile("budget.sqlite", "pings").account().entries
    assert [entry.file for entry in entries] == ([spare.name] if charged else [])


def test_the_demo_replaces_only_its_own_files(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    demo = ["demo", "--out", "demo", "--points", "2000"]
    assert htf(*demo) == 0
    before = contents(place)
    capfd.readouterr()
    assert htf(*demo) == 2
    assert "points.parquet: it already exists" in capfd.readouterr().err
    assert contents(place) == before
    assert htf(*demo, "--overwrite") == 0
    assert contents(place)["demo/release.parquet"] != before["demo/release.parquet"]
    for name in ("points.parquet", "release.parquet"):
        other = place / f"other-{name}"
        other.mkdir()
        (other / name).write_bytes((place / name.replace("release", "r")).read_bytes())
        before = contents(place)
        for overwrite in ([], ["--overwrite"]):
            assert htf("demo", "--out", other, "--points", "2000", *overwrite) == 2
        assert "did not make that folder" in " ".join(capfd.readouterr().err.split())
        assert contents(place) == before


BENCH = (
    "--bounds", "0,0,1,1", "--cells", "8", "--mechanisms", "ug", "--epsilons", "1", "--workloads", "random",
    "--queries", "5", "--runs", "1", "--jobs", "1",
)  # fmt: skip


def test_a_bench_does_not_replace_files_of_others(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bench = ["evaluate", "points.parquet", *BENCH, "-o"]
    (place / "notes").mkdir()
    (place / "notes" / "README.md").write_text("mine")
    before = contents(place)
    assert htf(*bench, "notes") == 2
    assert "has files that are not of a bench" in " ".join(capfd.readouterr().err.split())
    for overwrite in ([], ["--overwrite"]):
        assert htf(*bench, ".", *overwrite) == 2
        told = " ".join(capfd.readouterr().err.split())
        assert "points.parquet, which is read, is in it" in told
    (place / "boxes").mkdir()
    os.link("boxes.csv", "boxes/README.md")
    asked = [*bench, "boxes", "--overwrite", "--workloads", "random,file:boxes.csv"]
    assert htf(*asked) == 2
    assert "boxes.csv, which is read, is in it" in " ".join(capfd.readouterr().err.split())
    (place / "boxes" / "README.md").unlink()
    (place / "boxes").rmdir()
    assert contents(place) == before
    assert htf(*bench, "notes", "--overwrite") == 0
    assert "A bench of mechanisms" in (place / "notes" / "README.md").read_text()


@pytest.mark.usefixtures("place")
def test_a_bench_in_an_impossible_folder(capfd: pytest.CaptureFixture[str]) -> None:
    for name, says in (("a" * 300, "File name too long"), ("boxes.csv/bench", "Not a directory")):
        assert htf("evaluate", "points.parquet", *BENCH, "-o", name) == 2
        assert says in capfd.readouterr().err


def test_a_bench_goes_on_in_its_folder(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (place / "bench" / "parts").mkdir(parents=True)  # as if it had been killed at once
    bench = ["evaluate", "points.parquet", *BENCH, "-o", "bench"]
    for _ in range(2):
        assert htf(*bench) == 0
        (place / "bench" / "notes.txt").write_text("mine")
    assert "3 trials, of which 3 are done already" in " ".join(capfd.readouterr().out.split())
