"""Flipped bits in a budget file: what is spent never shrinks, and nothing goes beyond the cap.

`python tests/reliability/flips.py [EVERY]` tries every bit of a small file, or each EVERY-th.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from htf.curator.account import Account
from htf.curator.budget import JOURNALS, BudgetFile, read_accounts
from htf.errors import BudgetError, InputError

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


def main() -> None:
    every = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    fast = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=fast if fast.is_dir() else None) as name:
        folder = Path(name)
        make_budget(folder / "budget.sqlite")
        content = (folder / "budget.sqlite").read_bytes()
        outcomes, findings = try_flips(content, range(0, 8 * len(content), every), folder)
    print(f"{len(content)} bytes, each {every}-th bit:", dict(outcomes))
    for bit, wrong in findings:
        print(f"bit {bit}: {wrong}")
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
