"""The zones that a map is inside of, as a purchase of its release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from htf.errors import InputError
from htf.privacy.epsilon import Epsilon
from htf.privacy.protection import Protection
from htf.privacy.purchase import Purchase, Rows

if TYPE_CHECKING:
    from htf.release.release import Release

INSIDE_ZONES = (
    "The release also counts {zones} zones of a public layer. This cost {price} of the epsilon of {epsilon}. The map and the "
    "zones were then fitted to each other from their noisy counts alone, so that the map adds up to the zones."
)


@dataclass(frozen=True, slots=True)
class ZonesBought(Purchase):
    """The zones that a map adds up to, a release of their own. `inside_zones` makes it a part of the map's.

    Attributes
    ----------
    release : Release
        The zones.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> matrix = htf.FrequencyMatrix.from_dense(domain, [[500, 20], [0, 30]])
    >>> from htf.privacy.zones_bought import ZonesBought
    >>> zones = ZonesBought(htf.publish(matrix, epsilon=1))
    >>> zones.kind, str(zones.epsilon)
    ('zones', '1')
    """

    kind: ClassVar[str] = "zones"
    name: ClassVar[str] = "the zones"
    words: ClassVar[tuple[str, ...]] = (INSIDE_ZONES,)

    release: Release

    @property
    def epsilon(self) -> Epsilon:  # type: ignore[override]
        """What the zones have cost each unit."""
        return self.release.own_epsilon

    @property
    def noise(self) -> str:  # type: ignore[override]
        """Where their noise came from."""
        return self.release.noise

    @property
    def private(self) -> bool:  # type: ignore[override]
        """Whether that noise was secret."""
        return self.release.private

    @property
    def budget_entry(self) -> str | None:  # type: ignore[override]
        """The entry of the budget file that was charged."""
        return self.release.budget_entry

    @property
    def charged_as(self) -> str:
        """How a budget file calls the charge: zones are measured by a mechanism of their own."""
        return self.release.mechanism

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
        >>> zones.check_fits(htf.Protection())
        """
        own = self.release.protection
        if protection != own:
            raise InputError(
                f"the zones count {own.told} and protect {own.spoken}, but the map counts "
                f"{protection.told} and protects {protection.spoken}: read both in the same way"
            )

    def to_dict(self) -> dict[str, Any]:
        """Describe the zones with plain values, for JSON.

        Returns
        -------
        dict
            The summary of their release.

        Examples
        --------
        >>> zones.to_dict()["epsilon"]
        '1'
        """
        return self.release.summary()

    def sentences(self, release: Release) -> list[str]:
        """What the statement says of it."""
        number = f"{self.release.domain.size:,}"
        return [INSIDE_ZONES.format(zones=number, price=self.epsilon, epsilon=release.epsilon)]

    def rows(self, release: Release) -> Rows:  # noqa: ARG002 - others need it
        """What was bought; `htf query --zones` shows its numbers."""
        axis = self.release.domain.axes[0]
        rows = [("zones", f"{self.release.domain.size:,}"), ("by", axis.name)]
        return Rows(f"Zones, for epsilon {self.epsilon}", ("name", ">value"), rows)
