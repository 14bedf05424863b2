"""What a release bought beside its map for a part of its epsilon: one protocol for every kind. Public.

A release carries its purchases as `bought`. Whoever charges, writes, words, checks or shows a release goes through that
tuple, and need not know which kinds there are. The measurement of each is in htf.curator, and its share of epsilon is
settled in htf.recipes.quote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, runtime_checkable

from htf.errors import InputError
from htf.privacy.epsilon import Epsilon

if TYPE_CHECKING:
    from htf.frame.domain import Domain
    from htf.privacy.protection import Protection
    from htf.release.release import Release

T = TypeVar("T")


@dataclass(frozen=True)
class Rows:
    """A purchase as a table for people."""

    title: str
    headers: tuple[str, ...]  # a number's begins with >
    rows: Sequence[tuple[object, ...]]


@runtime_checkable
class Purchase(Protocol):
    """Something that was measured for a part of the epsilon of a release, beside its map."""

    kind: ClassVar[str]  # in files, in budget files and on the command line
    name: ClassVar[str]  # in sentences
    words: ClassVar[tuple[str, ...]]  # all that `sentences` and `known` may say: the wording's mark

    @property
    def epsilon(self) -> Epsilon:
        """What it has cost each unit."""

    @property
    def noise(self) -> str:
        """Where its noise came from."""

    @property
    def private(self) -> bool:
        """Whether that noise was secret."""

    @property
    def budget_entry(self) -> str | None:
        """The entry of the budget file that was charged."""

    @property
    def charged_as(self) -> str:
        """How a budget file calls the charge, in place of a mechanism."""

    def check_fits(self, protection: Protection) -> None:
        """Refuse a release of another unit, or that counts something else."""

    def check_map(self, domain: Domain) -> None:
        """Refuse a map on which it cannot lie."""

    def to_dict(self) -> dict[str, Any]:
        """Describe it with plain values, for JSON."""

    def sentences(self, release: Release) -> list[str]:
        """What the statement says of it, a paragraph each."""

    def known(self) -> str:
        """What is public beforehand because of it, to go on a list; empty for nothing."""

    def rows(self, release: Release) -> Rows:
        """What `htf info` shows of it."""


P = TypeVar("P", bound=Purchase)


def find(bought: Sequence[object], kind: type[T]) -> T | None:
    """The purchase of one kind, if there is one."""
    return next((one for one in bought if isinstance(one, kind)), None)


def in_order(bought: Sequence[P], kinds: Sequence[type[Purchase]]) -> tuple[P, ...]:
    """The same in the order of kinds, so that releases of the same purchases are equal. Refuses two of a kind."""
    if len({one.kind for one in bought}) < len(bought):
        names = " and ".join(one.name for one in bought)
        raise InputError(f"a release carries one purchase of each kind, got {names}")
    return tuple(sorted(bought, key=lambda one: kinds.index(type(one))))
