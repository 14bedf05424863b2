"""What a release bought beside its map for a part of its epsilon: one protocol for every kind. Public.

A release carries its purchases as `bought`. Whoever charges, writes, words, checks or shows a release goes through that
tuple, and need not know which kinds there are. The measurement of each is in htf.curator, and its share of epsilon is
settled in htf.recipes.quote.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from htf.base import arguments
from htf.errors import InputError
from htf.privacy.apart import ToldApart, check_told_apart
from htf.privacy.epsilon import Epsilon, epsilon_from_text

if TYPE_CHECKING:
    from htf.frame.domain import Domain
    from htf.privacy.protection import Protection
    from htf.release.release import Release

T = TypeVar("T")
NOT_WRITTEN = ("budget_entry", "told_apart")  # fields that are for the curator alone
IF_GIVEN = {"if_given": True}  # of a field: it is written only where it is not the default


@dataclass(frozen=True)
class Rows:
    """A purchase as a table for people."""

    title: str
    headers: tuple[str, ...]  # a number's begins with >
    rows: Sequence[tuple[object, ...]]


class Purchase(ABC):
    """Something that was measured for a part of the epsilon of a release, beside its map."""

    __slots__ = ()
    kind: ClassVar[str]  # in files, in budget files and on the command line
    name: ClassVar[str]  # in sentences
    words: ClassVar[tuple[str, ...]]  # all that `sentences` and `known` may say: the wording's mark
    epsilon: Epsilon  # what it has cost each unit
    noise: str  # where its noise came from
    private: bool  # whether that noise was secret
    budget_entry: str | None  # of the budget file that was charged

    @property
    def charged_as(self) -> str:
        """How a budget file calls the charge, in place of a mechanism."""
        return self.kind

    @abstractmethod
    def check_fits(self, protection: Protection) -> None:
        """Refuse a release of another unit, or that counts something else."""

    def check_map(self, domain: Domain) -> None:  # noqa: B027
        """Refuse a map on which it cannot lie."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Describe it with plain values, for JSON."""

    @abstractmethod
    def sentences(self, release: Release) -> list[str]:
        """What the statement says of it, a paragraph each."""

    def known(self) -> str:
        """What is public beforehand because of it, to go on a list; empty for nothing."""
        return ""

    @abstractmethod
    def rows(self, release: Release) -> Rows:
        """What `htf info` shows of it."""


class FromCurator(Purchase):
    """What the purchases have in common that the curator measures by itself: all but their noisy numbers.

    Each is a dataclass with the fields `epsilon`, `noise`, `private`, `budget_entry` and `told_apart`. All fields but the
    last two are written to files, in their order; those marked `IF_GIVEN` only where they say something.
    """

    __slots__ = ()
    told_apart: ToldApart | None  # by which columns the people that were measured are

    def _check_paid(self, *parts: str) -> None:
        """Check the fields in common; `parts` are further epsilons, which may be 0."""
        for one in ("epsilon", *parts):
            what = f"the {one} of {self.name}"
            found = arguments.instance(getattr(self, one), Epsilon, what, "see Epsilon.of")
            if one not in parts and found.units <= 0:
                raise InputError(f"{what} must be positive")
        arguments.text(self.noise, f"the noise of {self.name}")
        arguments.flag(self.private, "private")
        entry = f"the budget entry of {self.name}"
        arguments.optional(arguments.text, self.budget_entry, entry)
        check_told_apart(self.told_apart)

    def to_dict(self) -> dict[str, Any]:
        """Describe it with plain values, for JSON.

        Returns
        -------
        dict
            What `from_dict` takes.

        Examples
        --------
        >>> clipped.to_dict()["above"]
        22
        """
        written, usual = _written(type(self)), _usual(type(self))
        given = {name: getattr(self, name) for name in written}
        return {
            name: _plain(one)
            for name, one in given.items()
            if name not in usual or one != usual[name]
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Make one from what `to_dict` gave.

        Parameters
        ----------
        data : mapping
            All fields by name, except the budget entry.

        Returns
        -------
        FromCurator
            One of the same class.

        Raises
        ------
        InputError
            If something is missing or wrong.

        Examples
        --------
        >>> from htf.privacy.clipping import Clipped
        >>> Clipped.from_dict(clipped.to_dict()) == clipped
        True
        """
        written, given = _written(cls), arguments.mapping(data, cls.name, "a dictionary")
        known = arguments.fields({**_usual(cls), **given}, cls.name, list(written))
        return cls(**{name: _read(known[name], kind) for name, kind in written.items()})


def _written(kind: type) -> dict[str, str]:
    """The fields that are written to files, and their types."""
    return {one.name: str(one.type) for one in fields(kind) if one.name not in NOT_WRITTEN}


def _usual(kind: type) -> dict[str, Any]:
    """The fields that are left out where they have these values."""
    return {
        one.name: one.default for one in fields(kind) if IF_GIVEN.items() <= one.metadata.items()
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Epsilon):
        return str(value)
    if isinstance(value, tuple):
        return list(value)
    return value.to_dict() if hasattr(value, "to_dict") else value


def _read(value: Any, kind: str) -> Any:
    """The inverse of `_plain`. Each class turns lists into tuples, and checks them."""
    from htf.privacy.protection import Protection

    if kind == "Epsilon":
        return epsilon_from_text(value)
    return Protection.from_dict(value) if kind == "Protection" else value


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
