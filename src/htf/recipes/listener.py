"""Who hears of a release while it is made: a screen, or nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass


@contextmanager
def _silent(_: str) -> Iterator[Callable[[float], None]]:
    yield lambda _: None


def _nothing(_: str) -> None:
    pass


@dataclass(frozen=True)
class Listener:
    """Who hears of a release while it is made. None of it holds an exact count, but remarks are for the curator alone."""

    step: Callable[[str], None] = _nothing  # what is done now
    reading: Callable[[str], AbstractContextManager[Callable[[float], None]]] = _silent
    remark: Callable[[str], None] = _nothing  # about the data, for the curator's eyes
    found: Callable[[str], None] = _nothing  # what follows from noisy numbers
