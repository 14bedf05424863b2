"""What an epsilon means: its odds, its units, and the list of values that others use."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from htf import Epsilon, InputError, Protection
from htf.privacy.meaning import (
    CUSTOMARY,
    DEPLOYMENTS,
    GUESSES,
    Meaning,
    belief_text,
    highest_belief,
)

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "epsilon.md"


def meaning(epsilon: str, **protection: object) -> Meaning:
    return Meaning(Epsilon.of(epsilon), Protection(**protection))  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("before", GUESSES)
def test_odds_change_by_the_factor(epsilon: float, before: float) -> None:
    after = highest_belief(epsilon, before)
    assert after / (1 - after) == pytest.approx(math.exp(epsilon) * before / (1 - before))


def test_the_largest_epsilon_has_a_belief() -> None:
    assert highest_belief(1000, 0.01) == 1
    assert highest_belief(1000, 0) == 0
    assert belief_text(highest_belief(1000, 0.01)) == "nearly 100 %"


@pytest.mark.parametrize("before", [-0.1, 1.1, math.nan, "half"])
def test_beliefs_are_probabilities(before: object) -> None:
    with pytest.raises(InputError):
        highest_belief(1, before)  # type: ignore[arg-type]


def test_a_whole_person_is_protected_at_once() -> None:
    told = meaning("1", unit="person", max_records=20)
    assert "that someone is in the data becomes at most 73 %" in told.odds
    assert told.together is None
    assert told.to_dict()["several_units"] is None


def test_records_of_one_person_add_up() -> None:
    told = meaning("0.5")
    assert "Epsilon 0.5 for one record" in told.odds
    assert "10 records" in str(told.together)
    assert "epsilon 5: 50 % becomes at most 99.3 %" in str(told.together)
    assert told.to_dict()["several_units"]["epsilon"] == "5"


@pytest.mark.parametrize(("per", "number"), [("day", 30), ("week", 4), ("month", 12)])
def test_periods_of_one_person_add_up(per: str, number: int) -> None:
    told = meaning("0.1", unit="person", count="people", shares=256, per=per)
    assert f"in the data of one {per} becomes" in told.odds
    assert f"{number} such {per}s" in str(told.together)


def test_warns_only_above_what_is_customary() -> None:
    assert meaning(str(CUSTOMARY)).warning is None
    assert f"above {CUSTOMARY}" in str(meaning(f"{CUSTOMARY}.000000000000001").warning)
    assert "can become 99.7 %" in str(meaning("8").warning)


def test_values_of_others_stand_around_ours() -> None:
    assert [one.epsilon for one in DEPLOYMENTS] == sorted(one.epsilon for one in DEPLOYMENTS)
    for epsilon in ("0.01", "1", "2", "100"):
        assert meaning(epsilon).usual.count(" for ") >= 2
    assert "0.2 for a person" in meaning("0.01").usual
    assert "34.9" in meaning("100").usual
    assert "2.64" in meaning("2.5").usual


def test_the_page_has_every_value_with_its_unit() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    for one in DEPLOYMENTS:
        number = re.compile(rf"(?<![\d.]){re.escape(f'{one.epsilon:g}')}(?![\d.]\d)")
        row = [line for line in rows if one.what in line and number.search(line)]
        assert len(row) == 1, one.what
        assert one.unit in row[0]


def test_json_holds_plain_values() -> None:
    told = json.loads(json.dumps(meaning("2").to_dict()))
    assert told["beliefs"][0] == {"before": 0.5, "at_most": pytest.approx(0.8808, abs=1e-4)}
    assert [one.to_dict()["source"] for one in DEPLOYMENTS].count("") == 0
