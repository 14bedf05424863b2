"""Keeps values that a process makes once, and that a forked child must make again.

Threads do not survive a fork: a child inherits a pool that looks alive, and waits for ever for threads that
only its parent has. A check made by the parent says nothing about the child either.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")


def once_per_process(function: Callable[P, T]) -> Callable[P, T]:
    """Cache the results of `function`, as `functools.cache` does, but forget them in a forked child.

    Every pool of threads that is kept, and every check that a process makes once, goes through here.
    """
    kept = cache(function)
    if hasattr(os, "register_at_fork"):  # where processes can fork at all
        os.register_at_fork(after_in_child=kept.cache_clear)
    return cast("Callable[P, T]", kept)
