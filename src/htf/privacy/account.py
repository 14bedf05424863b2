"""The budget of one data set: its charges, what remains, and which charges it refuses.

No file is touched here. `budget.py` keeps accounts in a file, `budget_store.py` reads and writes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from htf.errors import BudgetError, InputError
from htf.privacy.apart import ToldApart, check_same, spoken
from htf.privacy.epsilon import Epsilon
from htf.privacy.protection import OF_RECORDS, PERIODS, PERSON, Protection

ONE_RECORD = OF_RECORDS.name
UNITS = (ONE_RECORD, *(Protection(PERSON, per=per).name for per in (None, *PERIODS)))
PENDING, PUBLISHED, WITHDRAWN = "pending", "published", "withdrawn"


@dataclass(frozen=True, slots=True)
class Entry:
    """One charge to a budget. It stays pending until its release has been written.

    Attributes
    ----------
    id : str
        Random, and public.
    charged : str
        When it was charged, in UTC.
    mechanism : str
        Which mechanism was charged for.
    label : str
        What the curator called the charge.
    epsilon : Epsilon
        What was charged.
    unit : str
        What the epsilon protects.
    state : {"pending", "published", "withdrawn"}
        What became of the release.
    file : str, optional
        The name of the published file, without its folder.
    sha256 : str, optional
        The digest of the published file.
    withdrawn : str, optional
        When the release was withdrawn, in UTC. The charge still counts.

    Examples
    --------
    >>> import htf
    >>> pings = htf.BudgetFile.create("entry.sqlite", "pings", cap=2)
    >>> entry = pings.charge("0.5", "htf", "June")
    >>> entry.state
    'pending'
    """

    id: str
    charged: str  # when, in UTC
    mechanism: str
    label: str
    epsilon: Epsilon
    unit: str
    state: str = PENDING
    file: str | None = None  # the name of what was published, without its folder
    sha256: str | None = None
    withdrawn: str | None = None  # when, in UTC; a charge still counts

    def to_dict(self) -> dict[str, Any]:
        """Describe the entry with plain values, for JSON.

        Returns
        -------
        dict
            Every field by name.

        Examples
        --------
        >>> entry.to_dict()["epsilon"]
        '0.5'
        """
        return {**asdict(self), "epsilon": str(self.epsilon), "epsilon_units": self.epsilon.units}


@dataclass(frozen=True, slots=True)
class Account:
    """The budget of one data set, and what was charged to it.

    Attributes
    ----------
    dataset : str
        The name of the data.
    unit : str
        What an epsilon protects.
    relation : str
        How two data sets differ by one unit.
    cap : Epsilon
        The most that may be spent.
    created : str
        When the account was made, in UTC.
    closed : str, optional
        When it was closed, in UTC.
    entries : tuple of Entry
        All charges, oldest first.
    told_apart : str, optional
        By which columns people and their periods are told apart, as JSON, since the first charge.

    Examples
    --------
    >>> import htf
    >>> pings = htf.BudgetFile.create("account.sqlite", "pings", cap=2)
    >>> _ = pings.charge("0.5", "htf")
    >>> account = pings.account()
    >>> str(account.spent), str(account.left)
    ('0.5', '1.5')
    """

    dataset: str
    unit: str
    relation: str
    cap: Epsilon
    created: str
    closed: str | None
    entries: tuple[Entry, ...]
    told_apart: str | None = None  # of people, since the first charge

    @property
    def spent(self) -> Epsilon:
        """What all charges add up to."""
        return total(self.entries)

    @property
    def left(self) -> Epsilon:
        """What may still be charged."""
        return Epsilon(max(self.cap.units - self.spent.units, 0))

    @property
    def pending(self) -> tuple[Entry, ...]:
        """Charges whose release is still being made, or was interrupted. They count like all others."""
        return tuple(entry for entry in self.entries if entry.state == PENDING)

    def check(self, epsilon: Epsilon, unit: str = ONE_RECORD) -> None:
        """Refuse a charge that does not fit.

        Parameters
        ----------
        epsilon : Epsilon
            What would be charged.
        unit : str
            What it protects.

        Raises
        ------
        InputError
            If the account counts another unit.
        BudgetError
            If too little is left, or the account is closed.

        Examples
        --------
        >>> account.check(htf.Epsilon.of(1))
        """
        if unit != self.unit:
            raise InputError(
                f"{self.dataset!r} counts epsilon for {self.unit}, but this charge is for {unit}: "
                "epsilons of different units cannot be added. Use one unit for all releases of these data; "
                "docs/budget.md explains what using both would mean"
            )
        if self.closed is not None:
            raise BudgetError(
                f"{self.dataset!r} was closed on {self.closed}: it takes no more charges"
            )
        if epsilon > self.left:
            waiting = total(self.pending)
            of_it = f", {waiting} of it by pending charges" if waiting.units else ""
            raise BudgetError(
                f"epsilon {epsilon} is more than the budget of {self.dataset!r} allows: {self.left} of "
                f"{self.cap} remains ({self.spent} is spent{of_it})"
            )

    def check_told_apart(self, told_apart: ToldApart | None) -> None:
        """Refuse a charge whose people, or periods, are told apart in another way than those of earlier charges.

        Parameters
        ----------
        told_apart : ToldApart, optional
            How the charge tells them apart; None if it does not say.

        Raises
        ------
        InputError
            If that is another way.

        Examples
        --------
        >>> account.check_told_apart(None)  # records need not be told apart
        """
        check_same(self.told_apart, told_apart, self.unit, self.dataset)

    @property
    def people(self) -> str:
        """How people are told apart, in words; empty for records, and before the first charge."""
        return "" if self.told_apart is None else spoken(self.told_apart, self.unit)

    def to_dict(self) -> dict[str, Any]:
        """Describe the account with plain values, for JSON.

        Returns
        -------
        dict
            All fields, the sums and the entries.

        Examples
        --------
        >>> account.to_dict()["left"]
        '1.5'
        """
        exact = {name: getattr(self, name) for name in ("cap", "spent", "left")}
        return {
            "dataset": self.dataset,
            "unit": self.unit,
            "relation": self.relation,
            "told_apart": None if self.told_apart is None else json.loads(self.told_apart),
            **{name: str(value) for name, value in exact.items()},
            **{f"{name}_units": value.units for name, value in exact.items()},
            "created": self.created,
            "closed": self.closed,
            "entries": [entry.to_dict() for entry in self.entries],
        }


def total(entries: Iterable[Entry]) -> Epsilon:
    return Epsilon(sum(entry.epsilon.units for entry in entries))
