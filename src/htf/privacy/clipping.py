"""How many records had a weight above the largest one, found with noise. Public, and part of its release.

Where records count by a weight, larger weights than the limit are cut. How much is cut off cannot be measured: one
record could change it by any amount. But how many records are cut can. Proof: docs/proofs/weights.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, ClassVar

from htf.base import arguments
from htf.errors import InputError
from htf.privacy.apart import ToldApart
from htf.privacy.epsilon import UNITS_PER_EPSILON, Epsilon
from htf.privacy.protection import RECORDS, Protection
from htf.privacy.purchase import FromCurator, Rows

if TYPE_CHECKING:
    from htf.release.release import Release

MOST_CLIPPED = 2**62  # records and noise
OUTSIDE = 0.025  # how often noise on one of the two numbers may be larger: both ends hold at 95 %

CLIPPED = (
    "How many {things} have a weight above {most}, and so count as {most}, was measured with noise, for {price} of the "
    "epsilon of {epsilon}: {share}. How much was cut off from them is not known: sums may be lower than the truth."
)
CLIPPED_SHARE = "about {share} of {things} (between {low} and {high})"
CLIPPED_HIDDEN = "the noise is too large to tell"


def check_price(price: Epsilon, protection: Protection) -> None:
    """Refuse less than a unit of epsilon for each record or share that a unit of protection has: noise then fits 64 bits."""
    least = Epsilon(protection.most_records)
    if price < least:
        raise InputError(
            f"the number of cut records costs at least {least} where {protection.name} may have {protection.most_records:,} "
            f"records or shares, got {price}: spend more, or leave it out"
        )


@dataclass(frozen=True, slots=True)
class Clipped(FromCurator):
    """How many records were cut at the largest weight, found with noise. `measure_clipped` makes one.

    Attributes
    ----------
    within : int
        The noisy number of records that count with their whole weight. It may be negative.
    above : int
        The noisy number of records whose weight is larger, and counts as the largest. It may be negative.
    protection : Protection
        The unit, the weight and its limit, as they were when it was measured.
    epsilon : Epsilon
        What it has cost each unit.
    noise : str
        Where the noise came from.
    private : bool
        Whether that noise was secret.
    budget_entry : str, optional
        The entry of the budget file that was charged. It is not in the file of a release.
    told_apart : ToldApart, optional
        By which columns people were told apart, as far as it is known. It is not in the file of a release.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> taxis = {"lon": [0.5] * 500, "lat": [0.5] * 500, "passengers": [2] * 480 + [9] * 20}
    >>> matrix = htf.read_points(taxis, domain, weight="passengers", max_weight=6)
    >>> clipped = htf.measure_clipped(matrix, 1, noise="seeded:1")
    >>> clipped.within, clipped.above
    (482, 22)
    """

    kind: ClassVar[str] = "clipped"
    name: ClassVar[str] = "the number of cut records"
    words: ClassVar[tuple[str, ...]] = (CLIPPED, CLIPPED_SHARE, CLIPPED_HIDDEN)

    within: int
    above: int
    protection: Protection
    epsilon: Epsilon  # for one unit
    noise: str
    private: bool
    budget_entry: str | None = field(default=None, compare=False)  # not in the file of a release
    told_apart: ToldApart | None = field(default=None, compare=False)  # nor is this

    def __post_init__(self) -> None:
        for name in ("within", "above"):
            number = arguments.whole(getattr(self, name), f"the records {name} the largest weight")
            if abs(number) > MOST_CLIPPED:
                raise InputError("numbers of cut records are not beyond 2**62")
            object.__setattr__(self, name, number)
        arguments.instance(self.protection, Protection, "the protection of cut records")
        if self.protection.weight is None:
            raise InputError("records without weights cannot be cut: name the column of weights")
        self._check_paid()

    @property
    def things(self) -> str:
        """What was counted: records, or shares of people."""
        return RECORDS if self.protection.count == RECORDS else "shares of people"

    @property
    def share(self) -> tuple[float, float, float] | None:
        """The share of records that were cut, and the ends of its 95 % interval; None where noise hides all records."""
        reach = self._reach
        if self.within + self.above <= reach:
            return None
        within, above = max(self.within, 0), max(self.above, 0)
        low, high = max(self.above - reach, 0), max(self.above + reach, 0)
        return (
            above / max(within + above, 1),
            low / max(low + self.within + reach, 1),
            high / max(high + max(self.within - reach, 0), 1),
        )

    @property
    def _reach(self) -> int:
        """The smallest r such that noise is beyond it with a probability of at most OUTSIDE.

        Discrete Laplace noise with p = exp(-rate) is beyond r with the probability 2 p^(r + 1) / (1 + p).
        """
        rate = self.epsilon.units / UNITS_PER_EPSILON / self.protection.most_records
        return max(math.ceil(-math.log(OUTSIDE / 2 * (1 + math.exp(-rate))) / rate) - 1, 0)

    def check_fits(self, protection: Protection) -> None:
        """Refuse a release of another weight, limit or unit.

        Parameters
        ----------
        protection : Protection
            What the release protects and counts.

        Raises
        ------
        InputError
            If it is about something else.

        Examples
        --------
        >>> clipped.check_fits(matrix.protection)
        """
        arguments.instance(protection, Protection, "protection", "see htf.Protection")
        names = [one.name for one in fields(Protection) if one.name != "of_query"]
        if any(getattr(self.protection, name) != getattr(protection, name) for name in names):
            raise InputError(
                f"cut records were measured for {self.protection.name} and the {self.protection.told}, but the release "
                f"is for {protection.name} and counts {protection.told}: measure them with the matrix of the release"
            )

    def sentences(self, release: Release) -> list[str]:
        """What the statement says of it."""
        share = CLIPPED_HIDDEN
        if self.share is not None:
            found, low, high = (f"{100 * one:.2g} %" for one in self.share)
            share = CLIPPED_SHARE.format(share=found, low=low, high=high, things=self.things)
        most, price = self.protection.max_weight, self.epsilon
        return [
            CLIPPED.format(
                share=share, price=price, epsilon=release.epsilon, most=most, things=self.things
            )
        ]

    def rows(self, release: Release) -> Rows:  # noqa: ARG002 - others need it
        """The noisy numbers of records, for people."""
        weight, most = self.protection.weight, f"{self.protection.max_weight:,}"
        rows = [
            (f"up to {most}", f"{self.within:,}"),
            (f"above {most}, counted as {most}", f"{self.above:,}"),
        ]
        if self.share is not None:
            share, low, high = (f"{100 * one:.2g} %" for one in self.share)
            rows.append((f"share above {most}", f"{share} ({low} to {high})"))
        title = f"{self.things.capitalize()} by {weight}, for epsilon {self.epsilon}"
        return Rows(title, (f"{weight} of a record", f">{self.things}, with noise"), rows)
