"""The page that holds our claims against a public guideline: all that it names as evidence exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/evaluation.md").read_text("utf-8")
NAMED = re.compile(r"`((?:src|tests|docs|benchmarks)/[\w./-]+\.\w+|[A-Z]+\.md)(?:::(\w+))?`")
VERDICTS = {"holds", "in part", "no"}


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] != "point" and not row[0].startswith("---")]


@pytest.mark.parametrize(("file", "test"), sorted(set(NAMED.findall(PAGE))))
def test_what_is_named_exists(file: str, test: str) -> None:
    assert (ROOT / file).is_file()
    if test:
        assert f"def {test}(" in (ROOT / file).read_text("utf-8")


def test_every_claim_has_a_verdict_and_evidence() -> None:
    found = rows()
    assert len(found) > 20
    for point, verdict, claim, evidence, short in found:
        assert verdict in VERDICTS, point
        assert claim
        assert NAMED.search(evidence), point
        assert short or verdict == "holds", f"{point} does not say where it falls short"
        left = NAMED.sub("", evidence).replace(",", "").strip()
        assert left == "", f"evidence of {point} that is not looked up: {left}"
