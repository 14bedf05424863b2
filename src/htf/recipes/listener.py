"""Who hears of a release while it is made: a screen, or nobody."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any


def _nothing(_: Any) -> None:
    pass


@dataclass(frozen=True)
class Listener:
    """Who hears of a release while it is made. None of it holds an exact count, but remarks are for the curator alone."""

    step: Callable[[str], None] = _nothing  # what is done now
    reading: Callable[[str], AbstractContextManager[Callable[[float], None]]] = lambda _: (
        nullcontext(_nothing)
    )
    remark: Callable[[str], None] = _nothing  # about the data, for the curator's eyes
    found: Callable[[str], None] = _nothing  # what follows from noisy numbers
