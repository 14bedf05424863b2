"""The helpers of the tests that decide whether a test runs."""

from __future__ import annotations

import pytest

from support import require


def test_a_missing_program_skips_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HTF_REQUIRE_ALL", raising=False)
    with pytest.raises(pytest.skip.Exception, match="install Debian's tools-of-no-one"):
        require("no-such-program", "tools-of-no-one")
    monkeypatch.setenv("HTF_REQUIRE_ALL", "1")
    with pytest.raises(pytest.fail.Exception, match="no-such-program is missing"):
        require("no-such-program", "tools-of-no-one")
    assert require("sh", "dash").endswith("sh")
