"""Flipped bits in a budget file: what is spent never shrinks, and nothing goes beyond the cap."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from htf.errors import BudgetError, InputError
from htf.privacy.account import Account
from htf.privacy.budget import JOURNALS, BudgetFile, read_accounts
from reliability.sandbox import Tally, sandbox

BITS = 20_000  # at scale 1, of some 200,000

FITS, BEYOND = "0.1", "0.3"  # of `pings`, which has 0.2 left
REFUSED, HARMLESS = "refused", "harmless"


def make_budget(path: Path) -> None:
    """Two accounts with charges in every state but published, which needs a release."""
    pings = BudgetFile.create(path, "pings", 1)
    for epsilon in ("0.5", "0.25", "0.05"):
        pings.charge(epsilon, "htf", "spring.parquet")
    trips = BudgetFile.create(path, "trips", 2, unit="one person")
    trips.charge("0.125", "max-records", "summer.parquet", unit="one person")
    trips.close()


def flip(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def bits_of_rows(content: bytes, words: Iterable[bytes]) -> list[int]:
    """Every bit from 24 bytes before to 24 bytes after these words: headers of rows and their neighbours."""
    found: set[int] = set()
    for word in words:
        place = content.find(word)
        while place >= 0:
            found.update(range(max(place - 24, 0), min(place + len(word) + 24, len(content))))
            place = content.find(word, place + 1)
    return [8 * byte + bit for byte in sorted(found) for bit in range(8)]


def try_flips(
    content: bytes, bits: Iterable[int], folder: Path
) -> tuple[Counter[str], list[tuple[int, str]]]:
    """How often each outcome came, and what must not happen, with its bit."""
    path, outcomes, findings = folder / "flipped.sqlite", Counter[str](), []
    path.write_bytes(content)
    truth = read_accounts(path)
    for bit in bits:
        _restore(path, flip(content, bit))
        try:
            outcome, wrong = _try_one(path, truth)
        except Exception as error:  # nothing but our own errors may come out
            outcome, wrong = "uncaught", f"{type(error).__name__}: {error}"
        outcomes[outcome] += 1
        if wrong:
            findings.append((bit, wrong))
    return outcomes, findings


def _restore(path: Path, content: bytes) -> None:
    for end in JOURNALS:
        path.with_name(path.name + end).unlink(missing_ok=True)
    path.write_bytes(content)


def _try_one(path: Path, truth: list[Account]) -> tuple[str, str]:
    try:
        shown = read_accounts(path)
    except InputError:
        shown = None
    if shown is not None and shown != truth:
        return "other accounts shown", f"{shown}"
    if _charge(path, BEYOND):
        return "charged beyond the cap", f"{BEYOND} was charged"
    if not _charge(path, FITS):
        return REFUSED, "" if shown is None else "it is shown, and no charge is accepted"
    if shown is None:
        return "charged though damaged", "it cannot be shown, and was charged"
    spent = [account.spent.units for account in read_accounts(path)]
    due = [truth[0].spent.units + 10**14, *(account.spent.units for account in truth[1:])]
    return HARMLESS, "" if spent == due else f"after the charge {spent} is spent, not {due}"


def _charge(path: Path, epsilon: str) -> bool:
    try:
        BudgetFile(path, "pings").charge(epsilon, "htf")
    except (InputError, BudgetError):
        return False
    return True


def campaign(scale: float, seed: int, folder: Path) -> list[Tally]:
    """Bits all over the file, and every so-many-th of those beside its rows; some by the commands too."""
    make_budget(folder / "budget.sqlite")
    content = (folder / "budget.sqlite").read_bytes()
    chance = random.Random(seed)
    number = min(max(int(BITS * scale), 50), 8 * len(content))
    bits = sorted(chance.sample(range(8 * len(content)), number))
    fast = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=fast if fast.is_dir() else None) as name:
        outcomes, findings = try_flips(content, bits, Path(name))
    library = Tally("budget file, one bit flipped")
    library.take(outcomes, [f"bit {bit}: {wrong}" for bit, wrong in findings])
    return [library, _by_command(content, bits[:: len(bits) // 50 + 1], folder)]


def _by_command(content: bytes, bits: Iterable[int], folder: Path) -> Tally:
    tally, path = Tally("budget file, one bit flipped, by htf budget"), folder / "flipped.sqlite"
    with sandbox() as box:
        for bit in bits:
            _restore(path, flip(content, bit))
            for command in ("show", "check"):
                ending = box.run("budget", command, path)
                said = f"bit {bit}: htf budget {command}: {ending.wrong}\n{ending.said}"
                tally.add(HARMLESS if ending.code == 0 else REFUSED, said if ending.wrong else "")
    return tally
