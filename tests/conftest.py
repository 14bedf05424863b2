"""Settings of all tests: the same random examples every time, and no deadline on a busy machine."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
