"""What may be written over, and files that are written whole or not at all: with real files, links and devices."""

from __future__ import annotations

import errno
import json
import os
import resource
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htf import BudgetFile, Domain, FrequencyMatrix, InputError, Release, publish
from htf.errors import OutputError
from htf.files import UNFINISHED, check_output, check_regular, make_folder, write_whole

DOMAIN = Domain.from_bounds(0, 0, 1, 1, 4)


def made(**options: Any) -> Release:
    matrix = FrequencyMatrix.from_dense(DOMAIN, np.full((4, 4), 100))
    return publish(matrix, 1, "ug", noise="fast", **options)


def put(text: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_text(text)

    return write


def mark_as_charged(path: Path) -> None:
    """As a release that was charged carries it."""
    table = pq.read_table(path)
    header = json.loads(table.schema.metadata[b"htf"])
    metadata = {**table.schema.metadata, b"htf": json.dumps({**header, "budget_entry": "ab12"})}
    pq.write_table(table.replace_schema_metadata(metadata), path)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Where nothing unfinished may be left."""
    yield tmp_path
    assert not list(tmp_path.rglob(f"{UNFINISHED}*"))


def test_a_file_that_exists_is_replaced_only_on_purpose(place: Path) -> None:
    path = place / "a.txt"
    write_whole(path, put("old"))
    for refused in (check_output, lambda path: write_whole(path, put("new"))):
        with pytest.raises(OutputError, match=r"a\.txt: it already exists.*--overwrite"):
            refused(path)
    assert path.read_text() == "old"
    check_output(path, overwrite=True)
    write_whole(path, put("new"), overwrite=True)
    assert path.read_text() == "new"


def test_modes_follow_the_umask_or_the_file_that_is_replaced(place: Path) -> None:
    path, before = place / "a.txt", os.umask(0o027)
    try:
        write_whole(path, put("old"))
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        write_whole(path, put("new"), overwrite=True)
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
        if os.geteuid() == 0:
            os.chown(path, 1234, 1235)
            write_whole(path, put("newer"), overwrite=True)
            assert (path.stat().st_uid, path.stat().st_gid) == (1234, 1235)
    finally:
        os.umask(before)


def lay_out(place: Path) -> None:
    """A file that is read, alone, in a folder, and by other names."""
    (place / "data" / "deep").mkdir(parents=True)
    (place / "own").mkdir()
    (place / "data" / "a.parquet").write_text("data")
    (place / "own" / "b.parquet").write_text("data")
    os.link(place / "own" / "b.parquet", place / "data" / "deep" / "hard.parquet")
    os.link(place / "data" / "a.parquet", place / "hard.parquet")
    (place / "door").symlink_to(place / "data")
    (place / "data" / "soft.parquet").symlink_to(place / "own" / "b.parquet")


READ = {
    "itself": ("data/a.parquet", "data/a.parquet"),
    "another spelling": ("data/a.parquet", "data/deep/../a.parquet"),
    "a hard link": ("data/a.parquet", "hard.parquet"),
    "through a linked folder": ("data/a.parquet", "door/a.parquet"),
    "an input that is a link": ("data/soft.parquet", "own/b.parquet"),
    "in an input folder": ("data", "data/a.parquet"),
    "new in an input folder": ("data", "data/new.parquet"),
    "new and deep": ("data", "data/deep/new.parquet"),
    "of another ending": ("data", "data/new.csv"),
    "in a folder by its link": ("data", "door/new.parquet"),
    "in a linked input folder": ("door", "data/deep/new.parquet"),
    "a file of a folder, by a link there": ("data", "own/b.parquet"),
    "by a pattern": ("data/*.parquet", "data/a.parquet"),
    "new, by a pattern": ("data/*.parquet", "data/new.parquet"),
    "new, by a pattern and a link": ("data/*.parquet", "door/new.parquet"),
    "new, by a pattern of folders": ("*/n?w.parquet", "data/new.parquet"),
    "new, by stars": ("**/*.parquet", "data/deep/new.parquet"),
    "new, by no folder of stars": ("data/**/*.parquet", "data/new.parquet"),
    "linked, by a pattern": ("data/s*.parquet", "own/b.parquet"),
}


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("case", READ)
def test_what_is_read_is_never_written(
    case: str, absolute: bool, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(place)
    monkeypatch.chdir(place)
    given, output = (f"{place}/{name}" if absolute else name for name in READ[case])
    for overwrite in (False, True):
        with pytest.raises(OutputError, match="the input"):
            check_output(Path(output), overwrite=overwrite, inputs=[None, given])


@pytest.mark.parametrize(
    ("given", "output"),
    [
        ("data", "new.parquet"),
        ("data", "database.parquet"),
        ("data/*.parquet", "data/deep/new.parquet"),
        ("data/*.parquet", "data/new.csv"),
        ("data/**/*.csv", "data/new.parquet"),
        ("data/a.parquet", "data/b.parquet"),
        ("no/such/file", "new.parquet"),
        ("postgresql://me:se*ret@host/data", "new.parquet"),
        ("a\0b*", "new.parquet"),
        ("x" * 5000, "new.parquet"),
    ],
)
def test_what_is_not_read_may_be_written(
    given: str, output: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(place)
    monkeypatch.chdir(place)
    check_output(Path(output), inputs=[given])


def make_odd(kind: str, path: Path) -> Any:
    if kind == "a folder":
        return path.mkdir()
    if kind == "a link":
        path.with_name("target.txt").write_text("target")
        return path.symlink_to("target.txt")
    if kind == "a link to nothing":
        return path.symlink_to("nothing.txt")
    if kind == "a pipe":
        return os.mkfifo(path)
    if kind == "a socket":
        listening = socket.socket(socket.AF_UNIX)
        os.chdir(path.parent)  # whose own name may be too long for an address
        listening.bind(path.name)
        return listening.close()
    try:
        return os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes devices")


@pytest.mark.parametrize(
    "kind", ["a folder", "a link", "a link to nothing", "a pipe", "a socket", "a device"]
)
def test_what_is_no_file_is_left_alone(
    kind: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    path = place / "a.txt"
    make_odd(kind, path)
    before = os.lstat(path)
    for overwrite in (False, True):
        with pytest.raises(OutputError, match=f"it is {kind.removesuffix(' to nothing')}"):
            check_output(path, overwrite=overwrite)
        with pytest.raises(OutputError, match="cannot write"):
            write_whole(path, put("new"), overwrite=overwrite)
    assert os.lstat(path) == before
    assert {file.name for file in place.iterdir()} <= {"a.txt", "target.txt"}


def test_the_devices_of_the_system_stay() -> None:
    for name in ("/dev/null", "/dev/full", "/dev/stdout"):
        with pytest.raises(OutputError, match=r"it is a (device|link|pipe)"):
            check_output(Path(name), overwrite=True)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_read_only_files_stay_for_root_too(place: Path) -> None:
    path = place / "a.txt"
    path.write_text("old")
    path.chmod(0o444)
    with pytest.raises(OutputError, match="it is read-only"):
        check_output(path, overwrite=True)
    with pytest.raises(OutputError, match="it is read-only"):
        write_whole(path, put("new"), overwrite=True)
    assert path.read_text() == "old"


@pytest.mark.parametrize("name", ["a" * 251 + ".csv", "é" * 125 + ".csv", "a." + "b" * 253])
def test_the_longest_names_can_be_written(name: str, place: Path) -> None:
    assert len(name.encode()) > 250
    check_output(place / name)
    write_whole(place / name, put("new"))
    assert [file.name for file in place.iterdir()] == [name]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("a" * 256, "name too long"),
        ("a" * 5000, "name too long"),
        ("é" * 128, "name too long"),
        ("a" * 300 + "/b.csv", "name too long"),
        ("a\0b.csv", "NUL"),
        ("a\ud800.csv", "not valid Unicode"),
        (os.fsdecode(b"a\xff.csv"), "not valid Unicode"),
        ("", "it is a folder"),
        ("no/a.csv", "there is no folder"),
        ("file/a.csv", "there is no folder"),
    ],
)
def test_names_that_no_file_can_have(name: str, says: str, place: Path) -> None:
    (place / "file").write_text("")
    for refused in (check_output, lambda path: write_whole(path, put("new"))):
        with pytest.raises(OutputError, match=f"(?i){says}") as caught:
            refused(place / name)
        str(caught.value).encode()  # can be shown
    with pytest.raises(OutputError):
        made().save(place / f"{name}.parquet" if name else place)


@pytest.mark.parametrize("name", ["a\0b", "a\ud800", "a" * 300, "file", "file/a"])
def test_folders_that_cannot_be_made(name: str, place: Path) -> None:
    (place / "file").write_text("")
    with pytest.raises(OutputError):
        make_folder(place / name)


def test_a_folder_that_takes_no_files_is_found_out_first() -> None:
    if not os.access("/proc", os.W_OK):
        pytest.skip("only root is let that far")
    with pytest.raises(OutputError, match=r"cannot write /proc/a\.csv"):
        check_output(Path("/proc/a.csv"))


def test_the_trial_leaves_nothing(place: Path) -> None:
    check_output(place / "a.csv")
    assert not list(place.iterdir())


def without_links(*_: Any, **__: Any) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


@pytest.mark.parametrize("links", [True, False])
def test_of_two_writers_at_once_one_is_refused(
    links: bool, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have passed the check when the first is done; also where there are no hard links."""
    if not links:
        monkeypatch.setattr(os, "link", without_links)
    path, ready = place / "a.txt", threading.Barrier(8)
    written: list[int] = []
    refused: list[str] = []

    def work(number: int) -> None:
        def write(unfinished: Path) -> None:
            unfinished.write_text(str(number))
            ready.wait()

        try:
            write_whole(path, write)
            written.append(number)
        except OutputError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [path.read_text()] == list(map(str, written))
    assert len(refused) == 7
    assert all("in the meantime" in told or "already exists" in told for told in refused)


def test_a_name_that_was_taken_at_the_last_moment(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the last look: only a step that never replaces can see it."""
    import htf.files as module

    path, look = place / "a.txt", module._check_existing

    def look_then_lose(*arguments: Any) -> Any:
        found = look(*arguments)
        if list(place.glob(f"{UNFINISHED}*")):
            path.write_text("of another process")
        return found

    monkeypatch.setattr(module, "_check_existing", look_then_lose)
    for links in (True, False):
        path.unlink(missing_ok=True)
        if not links:
            monkeypatch.setattr(os, "link", without_links)
        with pytest.raises(OutputError, match="another process wrote it in the meantime"):
            write_whole(path, put("ours"))
        assert path.read_text() == "of another process"


def test_cleaning_up_does_not_undo_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    sync, synced = os.fsync, []

    def sync_files_only(number: int) -> None:
        if stat.S_ISDIR(os.fstat(number).st_mode):
            synced.append((tmp_path / "a.txt").exists())
            fail()
        sync(number)

    monkeypatch.setattr(Path, "unlink", fail)
    monkeypatch.setattr(os, "fsync", sync_files_only)
    check_output(tmp_path / "a.txt")
    write_whole(tmp_path / "a.txt", put("new"))
    assert (tmp_path / "a.txt").read_text() == "new"
    assert synced == [True]  # the folder, after the file came to it


def test_a_disk_with_little_room_is_found_before_anything_is_written(place: Path) -> None:
    """There is room for a part of what is tried: a plain write would take that part, and call it done."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16 << 10, before[1]))
    try:
        with pytest.raises(OutputError, match="cannot write"):
            check_output(place / "a.parquet")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(place.iterdir())


def test_a_failed_write_leaves_nothing(place: Path) -> None:
    def fail(unfinished: Path) -> None:
        unfinished.write_text("half")
        unfinished.with_name(f"{unfinished.name}-journal").write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OutputError, match="No space left"):
        write_whole(place / "a.gpkg", fail)
    assert not list(place.iterdir())


@pytest.mark.parametrize("end", ["-journal", "-wal"])
@pytest.mark.parametrize("exists", [True, False])
def test_a_geopackage_that_is_open_elsewhere_stays(end: str, exists: bool, place: Path) -> None:
    path = place / "a.gpkg"
    if exists:
        path.write_text("old")
    (place / f"a.gpkg{end}").write_text("a journal")
    with pytest.raises(OutputError, match=rf"a\.gpkg{end} beside it belongs to a program"):
        check_output(path, overwrite=True)
    assert path.exists() == exists
    check_output(place / "a.csv")


def test_releases_and_budget_files_stay(place: Path) -> None:
    path, budget = place / "r.parquet", place / "budget.parquet"
    made().save(path)
    BudgetFile.create(budget, "pings", 1)
    for file, says in ((path, "it is a release"), (budget, "it is a budget file")):
        before = file.read_bytes()
        with pytest.raises(OutputError, match=says):
            check_output(file, overwrite=True)
        with pytest.raises(OutputError, match=says):
            write_whole(file, put("new"), overwrite=True)
        assert file.read_bytes() == before
    with pytest.raises(OutputError, match="it is a budget file"):
        made().save(budget, overwrite=True)
    with pytest.raises(OutputError, match="it already exists"):
        made().save(path)
    made().save(path, overwrite=True)  # one that no budget was charged for, by another


def test_other_parquet_files_are_replaced(place: Path) -> None:
    path = place / "points.parquet"
    pq.write_table(pa.table({"lon": [1.0]}), path)
    write_whole(path, put("new"), overwrite=True)
    path.write_bytes(b"PAR1 and no more")
    write_whole(path, put("new"), overwrite=True)


def test_a_charged_release_stays(place: Path) -> None:
    path = place / "r.parquet"
    made().save(path)
    mark_as_charged(path)
    before = path.read_bytes()
    with pytest.raises(OutputError, match=r"charged to a budget, as entry ab12.*budget withdraw"):
        made().save(path, overwrite=True)
    budget = BudgetFile.create(place / "budget.sqlite", "pings", 1)
    release = publish(
        FrequencyMatrix.from_dense(DOMAIN, np.ones((4, 4), dtype=int)), 1, "ug", budget=budget
    )
    with pytest.raises(InputError, match="cannot overwrite"):
        budget.save(release, path, overwrite=True)
    assert path.read_bytes() == before
    budget.save(release, place / "other.parquet")


def test_what_a_budget_file_lists_stays(place: Path) -> None:
    """By its digest, which knows also releases that do not name their charge."""
    budget = BudgetFile.create(place / "budget.sqlite", "pings", 2)
    path = place / "r.parquet"
    for number in range(2):
        matrix = FrequencyMatrix.from_dense(DOMAIN, np.full((4, 4), number))
        release = publish(matrix, 1, "ug", budget=budget)
        if number == 0:
            budget.save(release, path)
    before = path.read_bytes()
    with pytest.raises(InputError, match="already exists"):
        budget.save(release, path)
    with pytest.raises(InputError, match="cannot overwrite"):
        budget.save(release, path, overwrite=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["r.gpkg", "r", "r.csv", "r.parquet.gz"])
def test_a_release_is_named_as_what_it_is(name: str, place: Path) -> None:
    with pytest.raises(OutputError, match=r"must end in \.parquet, \.geoparquet, \.pq"):
        made().save(place / name)
    assert not list(place.iterdir())


@pytest.mark.parametrize("name", ["r.parquet", "r.geoparquet", "r.pq", "r.PARQUET"])
def test_names_of_releases(name: str, place: Path) -> None:
    release = made()
    release.save(place / name)
    assert Release.load(place / name) == release


@pytest.mark.parametrize("kind", ["a folder", "a pipe", "a device"])
def test_a_budget_file_is_a_file(kind: str, place: Path) -> None:
    path = place / "budget.sqlite"
    make_odd(kind, path)
    before = os.lstat(path)
    with pytest.raises(OutputError, match=f"it is {kind}"):
        BudgetFile.create(path, "pings", 1)
    assert os.lstat(path) == before
    assert [file.name for file in place.iterdir()] == ["budget.sqlite"]
    with pytest.raises(OutputError, match="name too long"):
        check_regular(place / ("a" * 300))
