"""The budget file as processes meet it: at once, killed at every step, on a full disk; and its commands."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htf import (
    BudgetFile,
    Domain,
    Epsilon,
    FrequencyMatrix,
    InputError,
    Protection,
    RecordsPerPerson,
    Release,
    measure_activity,
    publish,
)
from htf.cli.main import run

CHARGE_ONE_BY_ONE = """
import sys
from htf.privacy.budget import BudgetFile
from htf.errors import BudgetError
budget = BudgetFile(sys.argv[1], "pings")
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[2])):
    try:
        print(budget.charge(sys.argv[3], "ug").id, flush=True)
    except BudgetError:
        print("refused", flush=True)
"""

# Makes a release again and again, each time in a process that kills itself one event later: before the
# next SQL statement, draw, sync or rename. Forked, for imports take long.
KILLED = """
import functools, os, signal, sqlite3, sys
from pathlib import Path
import numpy as np, pyarrow.parquet
import htf
from htf.curator.noise import FastNoise

left = 0

def step():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

def watched(function):
    @functools.wraps(function)
    def wrapper(*arguments, **options):
        step()
        return function(*arguments, **options)
    return wrapper

class Connection(sqlite3.Connection):
    execute = watched(sqlite3.Connection.execute)

class Noise(FastNoise):
    def draw(self, *arguments):
        step()
        (folder / "drawn").touch()
        return watched(super().draw)(*arguments)

sqlite3.connect = functools.partial(sqlite3.connect, factory=Connection)
os.fsync, os.replace = watched(os.fsync), watched(os.replace)
matrix = htf.FrequencyMatrix.from_dense(htf.Domain.from_bounds(0, 0, 1, 1, 4), np.full((4, 4), 9))
htf.publish(matrix, 1, "ug", noise="fast")  # what is loaded is loaded
for last in range(1, 1000):
    folder, left = Path(sys.argv[1], str(last)), 0
    folder.mkdir()
    budget = htf.BudgetFile.create(folder / "budget.sqlite", "pings", 1)
    if (child := os.fork()) == 0:
        left = last
        htf.BudgetFile.create(folder / "new.sqlite", "trips", 1)
        release = htf.publish(matrix, "0.5", "ug", noise=Noise(), budget=budget)
        step()
        budget.save(release, folder / "out.parquet")
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != -signal.SIGKILL:
        break
print(last, status)
"""


def start(script: str, *arguments: Any) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def htf(*arguments: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "htf", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def check_soundness(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.fixture
def budget(tmp_path: Path) -> BudgetFile:
    return BudgetFile.create(tmp_path / "budget.sqlite", "pings", "1")


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("points") / "points.parquet"
    generator = np.random.default_rng(1)
    lon, lat = generator.normal(0.5, 0.1, 3000), generator.normal(0.5, 0.1, 3000)
    pq.write_table(pa.table({"lon": lon, "lat": lat}), path)
    return path


def release_command(points: Path, budget: BudgetFile, output: Path, *more: Any) -> list[str]:
    asked = ["--bounds", "0,0,1,1", "--cells", "16", "--mechanism", "ug", "--noise", "fast"]
    charged = ["--budget", budget.path, "--dataset", budget.dataset, "-o", output]
    return [str(word) for word in ("release", points, *asked, "--epsilon", "0.6", *charged, *more)]


def test_processes_at_once_never_overspend(budget: BudgetFile) -> None:
    """Eight times four charges of 0.07, of which a cap of 1 allows fourteen."""
    running = [start(CHARGE_ONE_BY_ONE, budget.path, 4, "0.07") for _ in range(8)]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:  # all are there: let them go
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    said = [word for process in running for word in process.communicate()[0].split()]
    assert [process.returncode for process in running] == [0] * 8
    account = budget.account()
    assert account.spent == Epsilon.of("0.98")
    ids = [entry.id for entry in account.entries]
    assert sorted(ids) == sorted(word for word in said if word != "refused")
    assert (len(ids), said.count("refused")) == (14, 18)


def test_two_releases_at_once_of_which_one_fits(
    budget: BudgetFile, points: Path, tmp_path: Path
) -> None:
    outputs = [tmp_path / f"out{number}.parquet" for number in range(2)]
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "htf", *release_command(points, budget, output)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for output in outputs
    ]
    codes = [process.wait() for process in running]
    assert sorted(codes) == [0, 3]
    assert [output.exists() for output in outputs] == [code == 0 for code in codes]
    assert [entry.state for entry in budget.account().entries] == ["published"]


def test_killed_at_every_step(tmp_path: Path) -> None:
    """What is spent is never less than what was drawn or published, wherever it was cut off."""
    said, complaint = start(KILLED, tmp_path).communicate()
    assert said, complaint
    last, status = map(int, said.split())
    assert (status, last > 40) == (0, True), complaint
    seen = [look_into(tmp_path / str(number)) for number in range(1, last + 1)]
    assert list(dict.fromkeys(seen)) == [
        ("", False, False),
        ("pending", False, False),
        ("pending", True, False),
        ("pending", True, True),
        ("published", True, True),
    ]


def check_making(path: Path) -> None:
    """A budget that was being made is there, or can be made."""
    if path.exists():
        check_soundness(path)
    with suppress(InputError):
        BudgetFile.create(path, "trips", 1)
    assert BudgetFile(path, "trips").account().left == Epsilon.of(1)


def look_into(folder: Path) -> tuple[str, bool, bool]:
    """The state of the charge, whether noise was drawn, and whether the release is there."""
    budget = BudgetFile(folder / "budget.sqlite", "pings")  # rolls back what was not committed
    check_soundness(budget.path)
    check_making(folder / "new.sqlite")
    account = budget.account()
    if (folder / "out.parquet").exists():
        assert Release.load(folder / "out.parquet").epsilon <= account.spent
    for entry in account.entries:
        if entry.state == "published":
            content = (folder / "out.parquet").read_bytes()
            assert entry.sha256 == hashlib.sha256(content).hexdigest()
    budget.charge("0.5", "ug")  # nothing is left locked
    state = "+".join(entry.state for entry in account.entries)
    return state, (folder / "drawn").exists(), (folder / "out.parquet").exists()


def test_killed_at_any_moment(tmp_path: Path) -> None:
    """Also amid a commit: what a process was told is charged, is."""
    budget, told, chance = BudgetFile.create(tmp_path / "b.sqlite", "pings", 1), 0, random.Random(1)
    for _ in range(8):
        process = start(CHARGE_ONE_BY_ONE, budget.path, 10_000, "1e-9")
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        process.stdin.write("\n")
        process.stdin.flush()
        first = [process.stdout.readline().strip() for _ in range(chance.randint(1, 5))]
        time.sleep(chance.uniform(0, 0.03))  # some way into a later charge
        process.send_signal(signal.SIGKILL)
        ids = [*first, *(word for word in process.communicate()[0].split() if len(word) == 16)]
        check_soundness(budget.path)
        known = {entry.id for entry in budget.account().entries}
        assert known.issuperset(ids)
        told += len(ids)
        assert told <= len(known)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.name != "posix" or os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small disk; a unit test has a file that may not grow")
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting is not permitted here; a unit test has a file that may not grow")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(path: Path) -> None:
    """With all that fits on the disk."""
    with open(path, "wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1024))


def test_a_full_disk_makes_no_release(
    small_disk: Path, points: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    budget = BudgetFile.create(small_disk / "budget.sqlite", "pings", 1)
    fill(small_disk / "filler")
    assert run(release_command(points, budget, tmp_path / "out.parquet")) == 2
    told = capfd.readouterr().err
    assert "cannot be written, the disk is full" in told
    assert "The charge of 0.6 was not entered: nothing of it is spent." in told
    assert not (tmp_path / "out.parquet").exists()
    (small_disk / "filler").unlink()
    assert budget.account().entries == ()
    assert run(release_command(points, budget, tmp_path / "out.parquet")) == 0
    remount = ["mount", "-o", "remount,ro", str(small_disk)]
    subprocess.run(remount, check=True)
    capfd.readouterr()
    assert run(release_command(points, budget, tmp_path / "no.parquet", "--epsilon", "0.1")) == 2
    assert "is read-only" in capfd.readouterr().err
    assert run(["budget", "show", str(budget.path)]) == 0


def test_the_commands(points: Path, tmp_path: Path) -> None:
    file, output = tmp_path / "budget.sqlite", tmp_path / "out.parquet"
    made = htf("budget", "init", file, "--dataset", "pings", "--cap", "2.0")
    assert (made.returncode, made.stderr) == (0, "")
    assert "epsilon 2 for one record, over all releases" in made.stdout
    budget = BudgetFile(file, "pings")
    ran = htf(*release_command(points, budget, output))
    assert (ran.returncode, ran.stderr) == (0, "Using the columns 'lon' as x and 'lat' as y.\n")
    (entry,) = budget.account().entries
    assert f"entry {entry.id}: ε = 1.4 of 2 remains" in " ".join(ran.stdout.split())
    assert (entry.mechanism, entry.label, entry.file) == ("ug", "out.parquet", "out.parquet")
    (told,) = json.loads(htf("budget", "show", file, "--dataset", "pings", "--json").stdout)
    assert (told["cap"], told["spent"], told["left"]) == ("2", "0.6", "1.4")
    assert told["left_units"] == 14 * 10**14
    assert told["entries"][0]["sha256"] == hashlib.sha256(output.read_bytes()).hexdigest()
    shown = htf("budget", "show", file)
    for words in (
        "0.6 spent of 2, 1.4 remains",
        entry.id,
        "published",
        "one record, added or removed",
    ):
        assert words in shown.stdout
    assert shown.stderr == ""
    assert "0.6 of 2 was spent" in htf("budget", "close", file, "--dataset", "pings").stdout
    assert "closed since" in htf("budget", "show", file).stdout


@pytest.mark.parametrize("per", ["day", "week", "month"])
def test_a_budget_for_people_in_periods(
    per: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "budget.sqlite"
    init = ["budget", "init", str(file), "--dataset", "pings", "--cap", "1"]
    assert run([*init, "--unit", f"person-{per}"]) == 0
    assert f"epsilon 1 for one person in one {per}, over all releases" in capfd.readouterr().out
    assert BudgetFile(file, "pings").account().unit == f"one person in one {per}"


def test_a_budget_for_people(
    points: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file, output = tmp_path / "budget.sqlite", tmp_path / "out.parquet"
    init = ["budget", "init", str(file), "--dataset", "pings", "--cap", "1"]
    assert run([*init, "--unit", "household"]) == 2
    assert run([*init, "--unit", "person"]) == 0
    assert "epsilon 1 for one person, over all releases" in capfd.readouterr().out
    budget = BudgetFile(file, "pings")
    assert run(release_command(points, budget, output)) == 2
    told = " ".join(capfd.readouterr().err.split())
    assert "'pings' counts epsilon for one person, but this charge is for one record" in told
    assert budget.account().entries == ()
    cells = np.zeros((2, 1), dtype=np.int32), np.array([50])
    domain = Domain.from_bounds(0, 0, 1, 1, 4)
    people = FrequencyMatrix(domain, *cells, Protection("person", 4, "day"))
    activity = measure_activity(RecordsPerPerson([4, 3, 2, 1]), "0.1", noise="fast", budget=budget)
    made = publish(people, "0.5", "ug", budget=budget, bought=(activity,))
    made.save(output)  # and the machine stops here
    for entry in budget.account().pending:
        command = ["budget", "publish", str(file), "--dataset", "pings", "--entry", entry.id]
        assert run([*command, str(points)]) == 2
        assert run([*command, str(output)]) == 0
        assert (
            f"Entry {entry.id}, of epsilon {entry.epsilon} for one person, is"
            in capfd.readouterr().out
        )
    assert run(["budget", "show", str(file)]) == 0
    shown = capfd.readouterr()
    assert "0.5 spent of 1, 0.5 remains" in shown.out
    assert "one person, added or removed" in shown.out
    assert shown.err == ""
    assert run(["info", str(output)]) == 0
    told = " ".join(capfd.readouterr().out.split())
    for words in (
        "Epsilon 0.5 for one person", "records used of a person in one cell one per day", "epsilon of a record 0.1", "Activity, for epsilon 0.1",
        "Ledger: 0.1 spent of 0.1 for each record",
    ):  # fmt: skip
        assert words in told
    assert run(["verify", str(output)]) == 0


def test_what_is_pending_is_said(
    budget: BudgetFile, points: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    entry = budget.charge("0.1", "ug", "[/lost] release")
    note = f"the charge of 0.1 on {entry.charged} (entry {entry.id}, [/lost] release) is pending"
    for command in (
        ["budget", "show", str(budget.path)],
        release_command(points, budget, tmp_path / "out.parquet"),
    ):
        assert run(command) == 0
        assert note in capfd.readouterr().err
    (found,) = BudgetFile(budget.path, "pings").account().pending
    assert found == entry


def test_a_release_that_breaks_off_says_that_its_charge_stands(
    budget: BudgetFile,
    points: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    class Unplugged(Exception):
        pass

    for error, code in ((KeyboardInterrupt, 130), (Unplugged, 1)):

        def fail(*_: Any, error: type[BaseException] = error) -> None:
            raise error("at 51.4778901")

        monkeypatch.setattr("htf.curator.noise.FastNoise.draw", fail)
        command = release_command(points, budget, tmp_path / "out.parquet", "--epsilon", "0.3")
        assert run(command) == code
        entry = budget.account().entries[-1]
        told = capfd.readouterr().err
        assert f"The charge of 0.3 stands, as entry {entry.id}" in told
        assert "51.4778901" not in told


def refusals(
    place: Path, points: Path, budget: BudgetFile
) -> dict[str, tuple[list[Any], int, str]]:
    output = place / "never.parquet"

    def but(*changes: Any) -> list[Any]:
        return release_command(points, budget, output, *changes)

    file = budget.path
    return {
        "over the cap": (but("--epsilon", "1.2"), 3, "epsilon 1.2 is more than the budget of 'pings' allows: 1 of 1 remains"),
        "seeded": (but("--noise", "seeded:1"), 2, "seeded or scripted noise"),
        "public total": (but("--set", "public_total=3000"), 2, "public_total discloses"),
        "no dataset": (["release", points, "--bounds", "0,0,1,1", "--epsilon", "1", "--budget", file, "-o", output], 2, "give both --budget FILE and --dataset NAME"),
        "other dataset": (but("--dataset", "trips"), 2, "no budget for 'trips'; it has 'pings'"),
        "no budget": (but("--budget", place / "no.sqlite"), 2, "there is no budget file"),
        "not a budget": (but("--budget", points), 2, "is not a budget file"),
        "over the ledger": (but("-o", file), 2, "part of the budget file"),
        "bad column": (but("--x", "longitude", "--y", "lat"), 2, "no column 'longitude'"),
        "no points": (["release", place / "no.csv", *but()[2:]], 2, "no.csv"),
        "no such system": (but("--crs", "EPSG:99999"), 2, "no reference system 'EPSG:99999'"),
        "bad bounds": (but("--bounds", "1,0,0,1"), 2, "west must be less than east"),
        "no folder": (but("-o", place / "no" / "out.parquet"), 2, "there is no folder"),
        "mechanism's own": (but("--mechanism", "htf-paper", "--epsilon", "0.001"), 3, "for each of"),
        "init again": (["budget", "init", file, "--dataset", "pings", "--cap", "9"], 2, "never replaced"),
        "bad cap": (["budget", "init", file, "--dataset", "trips", "--cap", "0"], 2, "got '0'"),
        "no cap": (["budget", "init", file, "--dataset", "trips"], 2, "--cap"),
        "show nothing": (["budget", "show", place / "no.sqlite"], 2, "there is no budget file"),
        "publish nothing": (["budget", "publish", file, "--dataset", "pings", "--entry", "x", points], 2, "no entry x for 'pings'"),
        "close nothing": (["budget", "close", file, "--dataset", "trips"], 2, "no budget for"),
    }  # fmt: skip


def test_what_is_refused_charges_nothing(
    budget: BudgetFile, points: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = budget.path.read_bytes()
    for case, (arguments, code, says) in refusals(tmp_path, points, budget).items():
        assert run(list(map(str, arguments))) == code, case
        told = capfd.readouterr()
        assert says in " ".join(told.err.split()), case
        if arguments[0] == "release":
            assert re.search("Nothing was charged|was not entered", told.err), case
        assert "Traceback" not in told.err + told.out
        assert not (tmp_path / "never.parquet").exists()
    assert budget.path.read_bytes() == before
    budget.close()
    assert run(release_command(points, budget, tmp_path / "never.parquet")) == 3
    assert "'pings' was closed on" in capfd.readouterr().err


def released(points: Path, budget: BudgetFile, output: Path, epsilon: str = "0.2") -> str:
    """The id of the charge of a release by the command line."""
    assert run(release_command(points, budget, output, "--epsilon", epsilon)) == 0
    return budget.account().entries[-1].id


def test_published_files_are_compared_with_their_digests(
    budget: BudgetFile, points: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "public").mkdir()
    outputs = tmp_path / "beside.parquet", tmp_path / "public" / "moved.parquet"
    for output in outputs:
        released(points, budget, output)
    entry = budget.charge("0.01", "ug", "lost")
    check = ["budget", "check", str(budget.path)]

    def states(*more: str, code: int = 0) -> list[str]:
        capfd.readouterr()
        assert run([*check, *more, "--json"]) == code
        return [found["state"] for found in json.loads(capfd.readouterr().out)]

    everywhere = "--in", str(tmp_path / "public")
    assert states() == ["found", "missing"]
    assert states(*everywhere) == ["found", "found"]
    assert run([*check, *everywhere]) == 0
    told = capfd.readouterr()
    assert "is sound: 1 budget with 3 charges" in told.out
    assert "moved.parquet" in told.out
    assert f"entry {entry.id}, lost) is pending" in told.err
    outputs[1].write_bytes(outputs[1].read_bytes() + b"x")
    assert states() == ["found", "missing"]
    assert states(*everywhere, code=2) == ["found", "changed"]
    assert run([*check, *everywhere]) == 2
    assert "moved.parquet is not what was published under that name" in capfd.readouterr().err
    assert run([*check, "--in", str(tmp_path / "nowhere")]) == 2
    assert run(release_command(points, budget, outputs[1], "--overwrite")) == 2  # it was one
    assert "was published under this name" in capfd.readouterr().err
    outputs[1].write_bytes(b"X" + outputs[1].read_bytes()[1:])  # no Parquet file any more
    assert run(release_command(points, budget, outputs[1], "--overwrite")) == 2
    assert "was published under this name" in capfd.readouterr().err
    shutil.copy(outputs[0], outputs[1])  # of the other entry: this one is not there, not changed
    assert states(*everywhere) == ["found", "missing"]


def test_a_published_file_is_withdrawn_before_it_is_overwritten(
    budget: BudgetFile, points: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.parquet"
    budget.may_overwrite(output)  # there is none
    id_ = released(points, budget, output)
    other = BudgetFile.create(budget.path, "trips", 1)
    withdraw = ["budget", "withdraw", str(budget.path), "--dataset"]
    for protecting in (budget, other):  # by any account of the file, under any name
        shutil.copy(output, tmp_path / "copy.parquet")
        for path in (output, tmp_path / "copy.parquet"):
            with pytest.raises(
                InputError, match=rf"cannot overwrite .* as entry {id_}, .*withdraw"
            ):
                protecting.may_overwrite(path)
    budget.may_overwrite(points)
    assert run([*withdraw, "trips", "--entry", id_]) == 2
    assert f"no entry {id_} for 'trips'" in capfd.readouterr().err
    assert run([*withdraw, "pings", "--entry", id_]) == 0
    assert "out.parquet may be deleted or overwritten. Its epsilon of 0.2" in capfd.readouterr().out
    for protecting in (budget, other):
        protecting.may_overwrite(output)
    (entry,) = budget.account().entries
    assert (entry.state, entry.file, entry.withdrawn is None) == ("withdrawn", "out.parquet", False)
    assert budget.account().spent == Epsilon.of("0.2")
    assert run([*withdraw, "pings", "--entry", id_]) == 2
    assert "was withdrawn already, on 20" in capfd.readouterr().err
    pending = budget.charge("0.1", "ug")
    assert run([*withdraw, "pings", "--entry", pending.id]) == 2
    assert "is pending: nothing was published" in capfd.readouterr().err
    output.unlink()
    assert run(["budget", "check", str(budget.path)]) == 0
    assert run(["budget", "show", str(budget.path)]) == 0
    assert "withdrawn" in capfd.readouterr().out


def test_an_activity_is_withdrawn_with_the_file_that_published_it(tmp_path: Path) -> None:
    budget = BudgetFile.create(tmp_path / "b.sqlite", "riders", 1, unit="one person")
    activity = measure_activity(RecordsPerPerson([4, 3, 2, 1]), "0.1", noise="fast", budget=budget)
    cells = np.zeros((2, 1), dtype=np.int32), np.array([50])
    domain = Domain.from_bounds(0, 0, 1, 1, 4)
    people = FrequencyMatrix(domain, *cells, Protection("person", 4, "day"))
    made = publish(people, "0.5", "ug", budget=budget, bought=(activity,), noise="fast")
    entry = budget.save(made, tmp_path / "out.parquet")
    budget.withdraw(entry.id)
    assert [entry.state for entry in budget.account().entries] == ["withdrawn", "withdrawn"]
    budget.may_overwrite(tmp_path / "out.parquet")
    assert budget.account().spent == Epsilon.of("0.5")


def test_saving_overwrites_on_purpose_only(budget: BudgetFile, tmp_path: Path) -> None:
    matrix = FrequencyMatrix.from_dense(Domain.from_bounds(0, 0, 1, 1, 4), np.full((4, 4), 9))
    releases = [publish(matrix, "0.2", "ug", noise="fast", budget=budget) for _ in range(2)]
    output = tmp_path / "out.parquet"
    output.write_text("something of mine")
    with pytest.raises(InputError, match=r"out\.parquet: it already exists"):
        budget.save(releases[0], output)
    assert output.read_text() == "something of mine"
    first = budget.save(releases[0], output, overwrite=True)
    content = output.read_bytes()
    with pytest.raises(InputError, match="and it cannot be made again"):
        budget.save(releases[1], output, overwrite=True)
    assert output.read_bytes() == content
    budget.withdraw(first.id)
    budget.save(releases[1], output, overwrite=True)
    assert [entry.state for entry in budget.account().entries] == ["withdrawn", "published"]


def test_a_release_that_names_its_charge_is_not_overwritten(
    budget: BudgetFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while its charge is pending, and where its charge is not in this file."""
    entry = budget.charge("0.2", "ug")
    output = tmp_path / "out.parquet"
    output.write_text("a release")
    for named, says in ((entry.id, f"as entry {entry.id}"), ("another", "which is not in")):
        monkeypatch.setattr(
            "htf.release.file.charged_entry", lambda _, named=named: named, raising=False
        )
        with pytest.raises(InputError, match=says):
            budget.may_overwrite(output)


def test_names_that_are_no_text(
    budget: BudgetFile, points: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """File names are bytes, and need not be UTF-8. Such a release could not be written."""
    name = os.fsdecode(b"caf\xe9.parquet")
    assert run(release_command(points, budget, tmp_path / name)) == 2
    assert "the name is not valid Unicode text" in capfd.readouterr().err
    assert budget.account().entries == ()
    assert budget.charge("0.1", "ug", name).label == "caf\\udce9.parquet"
