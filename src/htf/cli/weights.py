"""`htf release --weight`: how many records were cut at the largest weight, bought before the map. For the curator, who
has the data."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from htf.base import numerals
from htf.base.options import AUTO, option
from htf.errors import InputError

if TYPE_CHECKING:
    from htf.ingest.reading import Reading
    from htf.privacy.epsilon import Epsilon

USUAL_SHARE = "0.05"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightOptions:
    """The options of `htf release` about weights that do not describe the points."""

    clipped: str | None = field(
        default=None,
        metadata=option(
            "With --weight: share of epsilon that measures how many records are above the largest weight. 0: not "
            f"measured.  [default: {USUAL_SHARE}]",
            "SHARE",
        ),
    )


def price_of_clipped(
    reading: Reading, epsilon: Epsilon, options: WeightOptions, activity: Fraction
) -> Epsilon | None:
    """What measuring the cut records costs; None if they are not measured. Refuses options that do not go together."""
    from htf.privacy.epsilon import Epsilon

    if reading.weight is None:
        if options.clipped is not None:
            raise InputError(
                "--clipped is about records above a largest weight: give --weight COLUMN and --max-weight W"
            )
        return None
    if reading.max_records == AUTO or activity > 0:
        raise InputError(
            "counts with a weight cannot be scaled to all records, because the activity of people (--activity) says "
            "nothing of weights: give a number, as in --max-records 20, and --activity 0. Sums are then of the kept records"
        )
    try:
        share = numerals.fraction(options.clipped or USUAL_SHARE)
    except ValueError:
        share = Fraction(-1)
    if not 0 <= share < 1:
        raise InputError(
            "--clipped is a share of epsilon, from 0 to below 1 such as 0.05, got "
            f"{numerals.shown(str(options.clipped))}"
        )
    if share == 0:
        return None
    price = Epsilon(int(epsilon.units * share))
    if price.units == 0:
        raise InputError(
            f"--clipped {numerals.shown(share)} of --epsilon {epsilon} is less than 1e-15, the smallest epsilon: spend "
            "more, or do not measure it (--clipped 0)"
        )
    return price
