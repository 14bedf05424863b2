"""The helpers of the tests that decide whether a test runs, and how long it waits."""

from __future__ import annotations

import pytest

import support
from support import require, wait_for


def test_a_missing_program_skips_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HTF_REQUIRE_ALL", raising=False)
    with pytest.raises(pytest.skip.Exception, match="install Debian's tools-of-no-one"):
        require("no-such-program", "tools-of-no-one")
    monkeypatch.setenv("HTF_REQUIRE_ALL", "1")
    with pytest.raises(pytest.fail.Exception, match="no-such-program is missing"):
        require("no-such-program", "tools-of-no-one")
    assert require("sh", "dash").endswith("sh")


def test_a_condition_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([0, "", "yes"])
    assert wait_for(lambda: next(answers)) == "yes"
    monkeypatch.setattr(support, "PATIENCE", 0.0)
    with pytest.raises(pytest.fail.Exception, match="waited in vain"):
        wait_for(lambda: False)
