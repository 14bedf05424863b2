"""Zones that a map is inside of, as a part of its price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from htf.errors import InputError
from htf.privacy.epsilon import Epsilon
from htf.privacy.protection import Protection


@dataclass(frozen=True, slots=True)
class ZonesBought:
    """What the zones have cost that a map is inside of. `Release.bought` lists it.

    Attributes
    ----------
    epsilon : Epsilon
        What they have cost each unit.
    noise : str
        Where their noise came from.
    private : bool
        Whether that noise was secret.
    budget_entry : str, optional
        The entry of the budget file that was charged.
    protection : Protection
        The unit of the zones, and what they count.

    Examples
    --------
    >>> import htf
    >>> htf.ZonesBought.option
    '--zones'
    """

    charged_as: ClassVar[str] = "zones"
    option: ClassVar[str] = "--zones"

    epsilon: Epsilon
    noise: str
    private: bool
    budget_entry: str | None
    protection: Protection

    def check_fits(self, protection: Protection) -> None:
        """Refuse a map that protects another unit, or counts another quantity.

        Parameters
        ----------
        protection : Protection
            That of the map.

        Raises
        ------
        InputError
            If it is not that of the zones.

        Examples
        --------
        >>> of_people = htf.Protection("person", count="people", shares=256)
        >>> zones = htf.ZonesBought(htf.Epsilon.of(1), "opendp", True, None, of_people)
        >>> zones.check_fits(of_people)
        """
        if protection != self.protection:
            raise InputError(
                f"the zones count {self.protection.told} and protect {self.protection.spoken}, but the map counts "
                f"{protection.told} and protects {protection.spoken}: read both in the same way"
            )
