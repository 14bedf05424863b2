"""Zones that a map is inside of, as a part of its price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from htf.errors import InputError
from htf.privacy.epsilon import Epsilon
from htf.privacy.protection import Protection


@dataclass(frozen=True, slots=True)
class ZonesBought:
    """Zones as what was measured before the map: htf.privacy.protection.Bought."""

    charged_as: ClassVar[str] = "zones"
    option: ClassVar[str] = "--zones"

    epsilon: Epsilon
    noise: str
    private: bool
    budget_entry: str | None
    protection: Protection

    def check_fits(self, protection: Protection) -> None:
        """Refuse a map that protects another unit, or counts another quantity."""
        if protection != self.protection:
            raise InputError(
                f"the zones count {self.protection.told} and protect {self.protection.spoken}, but the map counts "
                f"{protection.told} and protects {protection.spoken}: read both in the same way"
            )
