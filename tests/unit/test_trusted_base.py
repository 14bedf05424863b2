"""docs/architecture.md lists what the privacy proof rests on: every such file, with its true size."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import htf
from figures import lines_of_code

SOURCE = Path(htf.__file__).parent
PAGE = (Path(__file__).parents[2] / "docs/architecture.md").read_text()
LISTED = {name: int(n) for name, n in re.findall(r"^\| `([\w/]+\.py)` \| (\d+) \|", PAGE, re.M)}


def test_every_file_of_the_curator_and_of_privacy_is_listed() -> None:
    there = {
        path.relative_to(SOURCE).as_posix()
        for folder in ("curator", "privacy")
        for path in (SOURCE / folder).glob("*.py")
        if lines_of_code(path.read_text())
    }
    assert there <= set(LISTED)
    assert {"frame/tree.py", "ingest/people.py", "publication.py"} <= set(LISTED)


def test_sizes_are_true() -> None:
    found = {name: lines_of_code((SOURCE / name).read_text()) for name in LISTED}
    wrong = [
        f"{name} has {lines} lines of code, not {LISTED[name]}"
        for name, lines in found.items()
        if lines != pytest.approx(LISTED[name], rel=0.1, abs=2)
    ]
    assert wrong == []


def test_lines_are_counted_right() -> None:
    text = '"""One."""\n\nx = 1  # two\n\n\ndef f():\n    """Three\n    four."""\n    return (\n        x\n    )\n'
    assert lines_of_code(text) == 5
