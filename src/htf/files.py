"""Files: which may be overwritten, how a file is written whole or not at all, and which can be read.

One rule holds for every command and every function that writes. An output is refused

- if it is an input, under any name or link, or lies in a folder that is an input;
- if it exists, unless it is to be overwritten;
- even then if it is a link, a device or anything else than a file, if it is read-only, if it is a
  budget file, or if it is a release. A release has cost budget and cannot be made again. Only another
  release takes its place, and that of a release which was charged to a budget file only if that file
  says that it was withdrawn.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import has_magic, iglob
from pathlib import Path
from tempfile import gettempdir
from typing import IO, Protocol

from htf.base import arguments
from htf.errors import InputError, OutputError

UNFINISHED = (
    ".htf-"  # how the names of unfinished files start; hidden, so that no folder has them as input
)
SPARE = "release-"  # how the names of releases start that could not be written to their own place
LONGEST_SUFFIX = 12
PROBE = bytes(2**16)  # what a disk must have room for, or it is full
KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)
NOTHING = 0  # the mode of what is not there
NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
PARQUET_STARTS = b"PAR1"
SQLITE_STARTS, APPLICATION, BUDGET_FILE = b"SQLite format 3\0", slice(68, 72), b"HTFB"
GEOPACKAGE, JOURNALS = ".gpkg", ("-journal", "-wal")  # they belong to a program that has it open


class Budget(Protocol):
    """What is asked of a budget file: to refuse a file that was charged for, unless it was withdrawn."""

    def may_overwrite(self, path: Path) -> None: ...


@dataclass(frozen=True, slots=True)
class Permission:
    """What may be written over."""

    overwrite: bool = False
    by_release: bool = False  # what is written is itself a release
    budget: Budget | None = None  # which knows what was withdrawn

    def __post_init__(self) -> None:
        arguments.flag(self.overwrite, "overwrite")


def check_output(
    path: Path,
    *,
    overwrite: bool = False,
    inputs: Iterable[str | Path | None] = (),
    by_release: bool = False,
    budget: Budget | None = None,
) -> None:
    """Refuse an output before any work is done for it, or any budget spent.

    `inputs` are all names that the caller reads: files, folders, patterns; None where an option is not
    given. That the folder takes a new file is tried, not guessed.
    """
    check_name(path)
    for given in inputs:
        if given is not None:
            _check_not_read(path, given)
    _check_existing(path, Permission(overwrite, by_release, budget))
    _try_folder(path)


def write_whole(
    path: Path,
    write: Callable[[Path], object],
    *,
    overwrite: bool = False,
    by_release: bool = False,
    budget: Budget | None = None,
) -> None:
    """Let `write` fill a new file beside `path`, and move it there when it is complete."""
    check_name(path)
    permission = Permission(overwrite, by_release, budget)
    _check_existing(path, permission)
    unfinished = _new_beside(path)
    try:
        write(unfinished)
        with open(unfinished, "rb+") as file:
            os.fsync(file.fileno())
        _move(unfinished, path, permission)
    except BaseException as error:
        for left in path.parent.glob(f"{unfinished.stem}*"):  # journals of some formats, too
            _remove(left)
        if isinstance(error, OSError):
            raise _cannot_write(path, error) from None
        raise
    _remove(unfinished)
    _sync_folder(path.parent)


def check_name(path: Path) -> None:
    """Refuse a name that no file can have, or that cannot be shown or kept in a budget file."""
    name = str(path)
    try:
        name.encode()
    except UnicodeEncodeError:
        raise OutputError(f"cannot write {name!a}: the name is not valid Unicode text") from None
    if "\0" in name:
        raise OutputError(f"cannot write {name!r}: a name must not contain the character NUL")


def check_regular(path: Path) -> None:
    """For a file that is changed in place: refuse what is there and is no file, such as a device."""
    check_name(path)
    try:
        _check_kind(path, os.stat(path).st_mode)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _cannot_write(path, error) from None


def spare_folders(output: Path) -> tuple[Path, ...]:
    """Where a release is saved that cannot be written to its own place: beside it, or among temporary files, which may be on
    another disk. Who makes a release again looks there first."""
    return output.parent, Path(gettempdir())


def open_own(path: Path) -> IO[str]:
    """Open a file that only marks something, such as a lock, or make it. Nothing in it is changed, and a link is not followed:
    whoever can write to the folder could let it lead to any file."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        place = os.open(path, flags, 0o666)
    except OSError as error:
        is_link = path.is_symlink()
        raise OutputError(
            f"cannot write to {path.parent}: {f'{path.name} is a link' if is_link else error.strerror}"
        ) from None
    try:
        _check_kind(path, os.fstat(place).st_mode)
    except OutputError:
        os.close(place)
        raise
    return os.fdopen(place, "r+", encoding="utf-8")


def make_folder(folder: Path) -> None:
    check_name(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {folder}: {error.strerror}") from None


def is_file(path: str | Path) -> bool:
    """Whether there is a file to read. `Path.is_file` raises system errors for a name that is too long
    or a folder without permission; here they are mistakes in the input."""
    return stat.S_ISREG(_mode(path))


def is_folder(path: str | Path) -> bool:
    """The same for a folder."""
    return stat.S_ISDIR(_mode(path))


def exists(path: str | Path) -> bool:
    """The same for anything."""
    return _mode(path) != NOTHING


def _mode(path: str | Path) -> int:
    try:
        return os.stat(path).st_mode
    except OSError as error:
        if error.errno in NOT_THERE:
            return NOTHING
        raise InputError(f"cannot read {path!s:.200}: {error.strerror}") from None
    except ValueError:
        raise InputError(f"cannot read {str(path)!a}: no file can have this name") from None


def is_same(first: Path, second: Path) -> bool:
    """Whether two names lead to one file or folder that is there: by links and other spellings too."""
    try:
        return first.samefile(second)
    except (OSError, ValueError):
        return False


def lies_in(path: Path, folder: Path) -> bool:
    """Whether a file that may not be there yet has its place below a folder."""
    here = Path(os.path.realpath(path.parent))
    return any(is_same(place, folder) for place in (here, *here.parents))


# What is read ---------------------------------------------------------------------------------------


def _check_not_read(path: Path, given: str | Path) -> None:
    source = Path(given)
    if os.path.lexists(path) and any(is_same(path, file) for file in _files_of(source)):
        raise OutputError(
            f"cannot write {path}: it is also the input ({given}), which would be lost. Give another name"
        )
    if lies_in(path, source) or _matches(path, source):
        raise OutputError(
            f"cannot write {path}: it would lie inside the input ({given}). Give another folder"
        )


def _files_of(source: Path) -> Iterator[Path]:
    """All files behind a name, whatever they are called."""
    try:
        if source.is_dir():
            yield from source.rglob("*")
        elif source.exists():
            yield source
        elif has_magic(str(source)):
            yield from map(Path, iglob(str(source), recursive=True, include_hidden=True))
    except (OSError, ValueError):
        return  # which is told where it is read


def _matches(path: Path, pattern: Path) -> bool:
    """Whether a file would be read by a pattern, once it is there."""
    if not has_magic(str(pattern)) or os.path.lexists(pattern) or "\0" in str(pattern):
        return False
    parts = Path(os.path.abspath(pattern)).parts
    plain = next(number for number, part in enumerate(parts) if has_magic(part))
    base = Path(os.path.realpath(Path(*parts[:plain])))
    place = Path(os.path.realpath(path.parent)) / path.name
    return place.is_relative_to(base) and _match(place.relative_to(base).parts, parts[plain:])


def _match(names: Sequence[str], patterns: Sequence[str]) -> bool:
    """As `glob` does; `**` stands for any number of folders, also none."""
    if not patterns:
        return not names
    if patterns[0] == "**":
        return _match(names, patterns[1:]) or (bool(names) and _match(names[1:], patterns))
    return bool(names) and fnmatchcase(names[0], patterns[0]) and _match(names[1:], patterns[1:])


# What is there already ------------------------------------------------------------------------------


def _check_existing(path: Path, permission: Permission) -> os.stat_result | None:
    """Refuse to write over what must stay. Returns what may go, None if nothing is there."""
    _check_not_open(path)
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _cannot_write(path, error) from None
    _check_kind(path, found.st_mode)
    if not permission.overwrite:
        raise OutputError(
            f"cannot write {path}: it already exists. Give another name, or --overwrite to replace it "
            "(in Python overwrite=True)"
        )
    if not found.st_mode & 0o222:  # which the superuser could still write to
        raise OutputError(f"cannot write {path}: it is read-only")
    _check_content(path, permission)
    return found


def _check_not_open(path: Path) -> None:
    """SQLite would write an old journal into a new file, and break it."""
    if path.suffix.lower() != GEOPACKAGE:
        return
    for end in JOURNALS:
        journal = path.with_name(path.name + end)
        if os.path.lexists(journal):
            raise OutputError(
                f"cannot write {path}: {journal.name} beside it belongs to a program that has it open, or that "
                "was broken off. Close the program, or give another name"
            )


def _check_kind(path: Path, mode: int) -> None:
    for is_kind, kind in KINDS:
        if is_kind(mode):
            raise OutputError(f"cannot write {path}: it is {kind}. Give the name of a file")


def _check_content(path: Path, permission: Permission) -> None:
    try:
        with open(path, "rb+", buffering=0) as file:  # so is tried whether we may change it
            start = file.read(APPLICATION.stop) or b""
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from None
    if start.startswith(SQLITE_STARTS) and start[APPLICATION] == BUDGET_FILE:
        raise OutputError(f"cannot write {path}: it is a budget file, which must never be replaced")
    # A damaged release may start in any way: a budget knows it by its name.
    if start.startswith(PARQUET_STARTS) or permission.budget is not None:
        _check_release(path, permission)


def _check_release(path: Path, permission: Permission) -> None:
    from htf.release.file import charged_entry, is_release

    if is_release(path) and not permission.by_release:
        raise OutputError(
            f"cannot write {path}: it is a release, which has cost budget and cannot be made again. "
            "Give another name, or delete it yourself"
        )
    if permission.budget is not None:
        try:
            permission.budget.may_overwrite(path)
        except InputError as error:
            raise OutputError(str(error)) from None
    elif (entry := charged_entry(path)) is not None:
        raise OutputError(
            f"cannot write {path}: it is a release that was charged to a budget, as entry {entry}, and "
            "cannot be made again. Give another name; or withdraw it with `htf budget withdraw`, and "
            "name that --budget"
        )


# Writing --------------------------------------------------------------------------------------------


def _new_beside(path: Path) -> Path:
    """A name of a short, fixed length in the same folder; with the same ending, which some formats
    insist on."""
    suffix = path.suffix if len(path.suffix) <= LONGEST_SUFFIX else ""
    return path.parent / f"{UNFINISHED}{secrets.token_hex(4)}{suffix}"


def _try_folder(path: Path) -> None:
    """Write a file there, and remove it: whatever is in the way of that is found out now."""
    probe = _new_beside(path)
    try:
        with open(probe, "xb") as file:  # buffered: a plain write may end early without an error
            file.write(PROBE)
    except OSError as error:
        raise _cannot_write(path, error) from None
    finally:
        _remove(probe)


def _move(unfinished: Path, path: Path, permission: Permission) -> None:
    """Nothing is replaced that came there meanwhile and must stay."""
    before = _check_existing(path, permission)
    if before is not None:
        _keep_owner(unfinished, before)
    if permission.overwrite:
        os.replace(unfinished, path)
        return
    try:
        os.link(unfinished, path)  # unlike a rename, never replaces anything
    except FileExistsError:
        raise _came_meanwhile(path) from None
    except OSError:
        _claim(unfinished, path)


def _claim(unfinished: Path, path: Path) -> None:
    """For file systems without hard links: take the name first, with an empty file, then replace that.
    If the machine stops between the two, the empty file is left."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        raise _came_meanwhile(path) from None
    try:
        os.replace(unfinished, path)
    except BaseException:
        _remove(path)
        raise


def _keep_owner(unfinished: Path, before: os.stat_result) -> None:
    """A file that is replaced keeps its owner and its mode, as far as we may set them."""
    with suppress(OSError, AttributeError):  # Windows knows no owners
        os.chown(unfinished, before.st_uid, before.st_gid)
    with suppress(OSError):
        os.chmod(unfinished, before.st_mode & 0o777)


def _remove(path: Path) -> None:
    """Whether that works or not does not change what has been written."""
    with suppress(OSError):
        path.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Else a power cut could take back the new name. Some file systems know no such thing."""
    with suppress(OSError):
        place = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(place)
        finally:
            os.close(place)


def _came_meanwhile(path: Path) -> OutputError:
    return OutputError(
        f"cannot write {path}: another process wrote it in the meantime. Give another name"
    )


def _cannot_write(path: Path, error: OSError) -> OutputError:
    reason = error.strerror or "is the disk full?"
    if error.errno in (errno.ENOENT, errno.ENOTDIR) and not path.parent.is_dir():
        reason = f"there is no folder {path.parent}"
    elif error.errno in (errno.EACCES, errno.EPERM):
        reason = "the folder does not allow it"
    return OutputError(f"cannot write {path}: {reason}")
