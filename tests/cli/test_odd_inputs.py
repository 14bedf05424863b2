"""Names that no file can have, odd standard streams, and text that would make a terminal do things."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest

import htf.cli
from htf import Domain, FrequencyMatrix, Release, publish
from htf.cli.main import cli, run
from htf.cli.types import Number, WholeNumber
from support import city_matrix

BOUNDS = "-30.2,39.9,-29.8,40.1"
EVIL = (
    "a\x1b[31m\x9b2J\u202e\x07[/b]"  # a colour, a cleared screen, a turned line, a bell; and markup
)
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder to be in, with a release, a budget and polygons."""
    folder = tmp_path_factory.mktemp("odd")
    matrix = city_matrix(64, 2_000)
    domain = Domain.from_bounds(-30.2, 39.9, -29.8, 40.1, cells=64)
    over = FrequencyMatrix(domain, matrix.exact_coordinates, matrix.exact_counts)
    publish(over, 1).save(folder / "release.parquet")
    (folder / "points.csv").write_text("lon,lat\n-30,40\n")
    (folder / "area.geojson").write_text(
        '{"type":"Polygon","coordinates":[[[-30.1,39.95],[-29.9,39.95],[-30,40.05],[-30.1,39.95]]]}'
    )
    before = Path.cwd()
    os.chdir(folder)
    assert run(["budget", "init", "budget.db", "--dataset", "d", "--cap", "1"]) == 0
    yield folder
    os.chdir(before)


READING = {
    "info": ["info", "{}"],
    "verify": ["verify", "{}"],
    "query": ["query", "{}"],
    "boxes": ["query", "release.parquet", "--boxes", "{}"],
    "polygons": ["query", "release.parquet", "--polygons", "{}"],
    "map": ["map", "{}", "-o", "map.html"],
    "report": ["report", "{}", "-o", "report.html"],
    "record": ["info", "{}", "--registry", "-o", "record.yaml"],
    "export": ["export", "{}", "-o", "boxes.csv"],
    "sample": ["sample", "{}", "-o", "sample.csv"],
    "serve": ["serve", "{}", "--port", "0"],
    "token": ["serve", "release.parquet", "--token-file", "{}"],
    "certificate": ["serve", "release.parquet", "--tls", "{}", "points.csv"],
    "key": ["serve", "release.parquet", "--tls", "points.csv", "{}"],
    "show": ["budget", "show", "{}"],
    "check": ["budget", "check", "{}"],
    "check in": ["budget", "check", "budget.db", "--in", "{}"],
    "close": ["budget", "close", "{}", "--dataset", "d"],
    "withdraw": ["budget", "withdraw", "{}", "--dataset", "d", "--entry", "1"],
    "like": ["forecast", "--epsilon", "1", "--like", "{}"],
    "evaluate": ["evaluate", "{}", "--bounds", BOUNDS, "-o", "bench"],
    "matrix": ["evaluate", "{}.npy", "-o", "bench"],
    "workload": ["evaluate", "points.csv", "--bounds", BOUNDS, "--workloads", "file:{}", "-o", "bench"],
    "paper": ["paper", "--quick", "--points", "{}", "--bounds", BOUNDS, "-o", "bench"],
    "release": ["release", "{}", "--bounds", BOUNDS, "--epsilon", "1", "-o", "never.parquet"],
    "prior": [
        "release", "points.csv", "--bounds", BOUNDS, "--epsilon", "1", "--prior", "{}", "-o", "never.parquet",
    ],
    "budget": [
        "release", "points.csv", "--bounds", BOUNDS, "--epsilon", "1", "--budget", "{}", "--dataset", "d",
        "-o", "never.parquet",
    ],
}  # fmt: skip
WRITING = {
    "answers": ["query", "release.parquet", "-o", "{}.csv"],
    "answers of polygons": ["query", "release.parquet", "--polygons", "area.geojson", "-o", "{}.csv"],
    "map": ["map", "release.parquet", "-o", "{}.html"],
    "report": ["report", "release.parquet", "-o", "{}.html"],
    "record": ["info", "release.parquet", "--registry", "-o", "{}.yaml"],
    "export": ["export", "release.parquet", "-o", "{}.gpkg"],
    "sample": ["sample", "release.parquet", "-o", "{}.csv"],
    "init": ["budget", "init", "{}", "--dataset", "d", "--cap", "1"],
    "evaluate": ["evaluate", "points.csv", "--bounds", BOUNDS, "-o", "{}"],
    "paper": ["paper", "--quick", "-o", "{}"],
    "demo": ["demo", "--points", "10", "--out", "{}"],
    "release": ["release", "points.csv", "--bounds", BOUNDS, "--epsilon", "1", "-o", "{}.parquet"],
}  # fmt: skip
NAMES = {"a long name": "x" * 300, "a long path": "y/" * 3000 + "z", "no text": "\udcff" * 300}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "case", [*(("reading", c) for c in READING), *(("writing", c) for c in WRITING)]
)
def test_names_that_are_too_long(
    place: Path, case: tuple[str, str], name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    kind, command = case
    arguments = {"reading": READING, "writing": WRITING}[kind][command]
    assert run([word.replace("{}", NAMES[name]) for word in arguments]) == 2
    told = " ".join(capfd.readouterr().err.split())
    assert re.search("name too long|no folder|not valid Unicode|there is no", told), told[-300:]
    assert not (place / "never.parquet").exists()


@pytest.mark.parametrize("name", ["", "a\0b"])
@pytest.mark.parametrize("command", [c for c in READING if c not in ("release", "prior", "budget")])
@pytest.mark.usefixtures("place")
def test_names_that_no_file_can_have(
    command: str, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run([word.replace("{}", name) for word in READING[command]]) == 2
    assert "a bug in HTF" not in capfd.readouterr().err


@pytest.mark.usefixtures("place")
def test_an_empty_name_is_not_the_current_folder(capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in (["info", ""], ["demo", "--out", ""], ["export", "release.parquet", "-o", ""]):
        assert run(arguments) == 2
        assert "the name is empty" in capfd.readouterr().err


def test_a_folder_that_may_not_be_looked_into(tmp_path: Path) -> None:
    """As anyone but the superuser would meet it."""
    (tmp_path / "shut").mkdir()
    (tmp_path / "shut").chmod(0)
    code = "import sys; from htf.cli.main import run; sys.exit(run(sys.argv[1:]))"
    drop = "-dac_override,-dac_read_search"
    command = [sys.executable, "-c", code, "info", str(tmp_path / "shut" / "release.parquet")]
    if os.geteuid() == 0:
        command = ["setpriv", f"--bounding-set={drop}", f"--inh-caps={drop}", *command]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, "Permission denied" in ran.stderr) == (2, True), ran.stderr
    (tmp_path / "shut").chmod(0o700)


# Standard streams -----------------------------------------------------------------------------------


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """A command as it is typed, with whatever becomes of its streams."""
    return subprocess.run(
        ["sh", "-c", line.replace("htf ", f"{sys.executable} -m htf ", 1)],
        capture_output=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(
    "command", ["info release.parquet", "info --json release.parquet", "--help"]
)
@pytest.mark.usefixtures("place")
def test_a_full_standard_output(command: str) -> None:
    ran = shell(f"htf {command} > /dev/full")
    assert (ran.returncode, ran.stderr) == (
        2,
        b"Error: cannot write to standard output: No space left on device\n",
    )


def test_a_closed_standard_output_is_refused_before_anything_is_done(place: Path) -> None:
    ran = shell("htf sample release.parquet --n 3 -o closed.csv >&-")
    assert ran.returncode == 2
    assert ran.stderr.startswith(b"Error: standard output is closed")
    assert not (place / "closed.csv").exists()
    assert shell("htf --version >&- 2>&-").returncode == 2
    ran = shell("htf query release.parquet 1</dev/null")  # open, but not to be written to
    assert (ran.returncode, b"cannot write to standard output" in ran.stderr) == (2, True)


def test_without_standard_error_and_input(place: Path) -> None:
    """A file must not get the number of a stream that is closed, and with it what is said."""
    ran = shell("htf sample release.parquet --n 3 --seed 1 -o quiet.csv 2>&- <&-")
    assert ran.returncode == 0
    assert b"3 synthetic points" in ran.stdout
    assert len((place / "quiet.csv").read_text().splitlines()) == 4
    for stream in ("2>&-", "2>/dev/full"):
        assert shell(f"htf info nothing {stream}").returncode == 2
        assert shell(f"htf query release.parquet --box 0,0,1,1 {stream}").returncode == 0


ASCII = {"PYTHONIOENCODING": "ascii"}


@pytest.mark.parametrize(
    "environment", [ASCII, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]
)
@pytest.mark.usefixtures("place")
def test_an_ascii_standard_output(environment: dict[str, str]) -> None:
    """What it lacks is escaped."""
    ran = shell("htf mechanisms", **environment)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout.isascii()


def test_json_stays_json_on_an_ascii_standard_output(place: Path) -> None:
    names = ["Zürich", "東京 😀", "\x7f\x9b31m\u202e"]
    lines = [f'"{name}",-30,39.95,-29.9,40' for name in names]
    (place / "named.csv").write_text("\n".join(["name,west,south,east,north", *lines]), "utf-8")
    for encoding in ("ascii", "latin-1", "utf-8"):
        ran = shell("htf query release.parquet --boxes named.csv --json", PYTHONIOENCODING=encoding)
        assert ran.returncode == 0
        shown = ran.stdout.decode(encoding)
        assert [answer["name"] for answer in json.loads(shown)] == names
        assert not RAW.search(shown)
        assert ("Zürich" in shown) == (encoding != "ascii")


# Text from files ------------------------------------------------------------------------------------


def with_evil(release: Release, what: str) -> Release:
    changes: dict[str, Any] = {
        "mechanism": {"mechanism": EVIL},
        "facts": {"facts": {EVIL: EVIL}},
        "parameters": {"parameters": {EVIL: EVIL}},
        "noise": {"private": False, "noise": f"seeded {EVIL}"},
        "ledger": {"ledger": (replace(release.ledger[0], label=EVIL), *release.ledger[1:])},
    }
    return replace(release, **changes[what])


@pytest.mark.parametrize("what", ["mechanism", "facts", "parameters", "noise", "ledger"])
def test_no_command_shows_codes_of_a_release(
    place: Path, what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = f"evil-{what}.parquet"
    with_evil(Release.load(place / "release.parquet"), what).save(place / path)
    output = f"{EVIL.replace('/', '')}-{what}"
    for arguments in (
        ["info", path],
        ["info", path, "--json"],
        ["verify", path],
        ["query", path],
        ["query", path, "--json"],
        ["query", path, "-o", f"{output}.csv"],
        ["query", path, "--polygons", "area.geojson", "-o", f"{output}.json"],
        ["map", path, "-o", f"{output}.html"],
        ["export", path, "-o", f"{output}.boxes.csv"],
        ["sample", path, "--n", "3", "-o", f"{output}.points.csv"],
        ["serve", path, "--host", "203.0.113.7"],
        ["forecast", "--epsilon", "1", "--like", path, "--runs", "1", "--mechanism", "ug", "--points-about", "99"],
        ["budget", "publish", "budget.db", "--dataset", "d", "--entry", EVIL, path],
    ):  # fmt: skip
        assert run(arguments) in (0, 2)
        told = capfd.readouterr()
        assert "a bug in HTF" not in told.err
        assert not RAW.search(told.out + told.err), arguments


@pytest.mark.usefixtures("place")
def test_no_command_shows_codes_of_what_is_typed(capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        [EVIL],
        ["info", EVIL],
        ["info", f"--{EVIL}"],
        ["demo", "--points", EVIL],
        ["query", "release.parquet", "--box", EVIL],
        ["map", "release.parquet", "-o", EVIL],
        ["serve", "release.parquet", "--host", EVIL],
        ["budget", "init", "budget.db", "--dataset", EVIL, "--cap", "1"],
        ["budget", "show", "budget.db"],
        ["budget", "close", "budget.db", "--dataset", EVIL],
        ["evaluate", "points.csv", "--bounds", BOUNDS, "--workloads", EVIL, "-o", "bench"],
    ):
        run(arguments)
        told = capfd.readouterr()
        assert "a bug in HTF" not in told.err
        assert not RAW.search(told.out + told.err), arguments


def test_names_with_brackets_are_shown_as_they_are(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "budget.db")
    assert run(["budget", "init", file, "--dataset", "[trips]", "--cap", "1"]) == 0
    assert run(["budget", "show", file]) == 0
    assert "\n[trips]: 0 spent of 1" in capfd.readouterr().out


def test_messages_of_other_packages_are_made_safe(place: Path) -> None:
    """Matplotlib names the characters that its fonts lack."""
    with_evil(Release.load(place / "release.parquet"), "mechanism").save(place / "drawn.parquet")
    ran = shell("htf map drawn.parquet -o drawn.png")
    assert ran.returncode == 0
    assert not RAW.search((ran.stdout + ran.stderr).decode())


def test_everything_is_said_by_one_function() -> None:
    """Click's own `echo` and `print` show text as it is."""
    for path in Path(str(htf.cli.__file__)).parent.glob("*.py"):
        found = re.findall(r"click\.s?echo\(|(?<![.\w])print\(", path.read_text())
        assert not found or path.name == "screen.py", path


# Numbers --------------------------------------------------------------------------------------------


def options(command: click.Command) -> Iterator[tuple[click.Command, click.Parameter]]:
    for parameter in command.params:
        yield command, parameter
    for one in getattr(command, "commands", {}).values():
        yield from options(one)


def test_every_number_of_every_command_is_read_strictly() -> None:
    numbers = [
        f"{command.name} {parameter.name}"
        for command, parameter in options(cli)
        if isinstance(parameter.type, (type(click.INT), type(click.FLOAT)))
        and not isinstance(parameter.type, (WholeNumber, Number))
    ]
    assert numbers == []


@pytest.mark.parametrize(
    ("arguments", "limit"),
    [
        (["demo", "--out", "never", "--points"], "50000000"),
        (["sample", "release.parquet", "-o", "never.csv", "--n"], "1,000,000,000"),
        (["forecast", "--epsilon", "1", "--points-about"], "50000000"),
        (["forecast", "--epsilon", "1", "--runs"], "1000"),
        (["evaluate", "points.csv", "--bounds", BOUNDS, "-o", "never", "--runs"], "1000"),
        (["evaluate", "points.csv", "--bounds", BOUNDS, "-o", "never", "--queries"], "1000000"),
        (["paper", "--quick", "-o", "never", "--runs"], "1000"),
        (["export", "release.parquet", "-o", "never.tif", "--pixels"], "8192"),
        (["serve", "release.parquet", "--max-seconds"], "3600"),
        (["serve", "release.parquet", "--max-mb"], "1024"),
    ],
)
def test_what_would_never_end_is_refused_with_its_limit(
    place: Path, arguments: list[str], limit: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments, "99999999999999999999"]) == 2
    assert limit in capfd.readouterr().err
    assert not list(place.glob("never*"))


@pytest.mark.usefixtures("place")
def test_too_little_memory_is_not_our_fault(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(Release, "summary", fail)
    assert run(["info", "release.parquet", "--json"]) == 2
    assert "not enough memory" in capfd.readouterr().err
