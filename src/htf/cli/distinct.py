"""`htf release --distinct`: a table of different people, bought before the map. For the curator, who has the data."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from htf.base import numerals
from htf.base.options import option
from htf.cli.points import Points
from htf.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from htf.curator.noise import NoiseSource
    from htf.privacy.budget import BudgetFile
    from htf.privacy.distinct import DistinctCounts
    from htf.privacy.epsilon import Epsilon

AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class DistinctOptions:
    """The options of `htf release` about a table of different people."""

    distinct: str | None = field(
        default=None,
        metadata=option(
            "With --user: add a table of different people in each box of a grid of N x N boxes, or of NX x NY.",
            "N|NX,NY",
        ),
    )
    distinct_boxes: str | None = field(
        default=None,
        metadata=option(
            "Count each person in at most M boxes of that table. auto finds M with noise.  [default: auto]",
            "M|auto",
        ),
    )
    distinct_share: str | None = field(
        default=None,
        metadata=option("Share of epsilon that is spent on that table.  [default: 0.2]", "SHARE"),
    )


@dataclass(frozen=True, slots=True)
class DistinctPlan:
    """The table to make, from checked options."""

    grid: tuple[int, int]
    max_boxes: int | None  # None: found with noise
    price: Epsilon

    def measure(
        self,
        points: Points,
        noise: NoiseSource,
        budget: BudgetFile | None,
        label: str,
        progress: Callable[[float], None],
        tell: Callable[[str], None],
    ) -> DistinctCounts:
        """Read the people in each box, charge, and draw the noise."""
        from htf.curator.distinct import measure_distinct
        from htf.ingest.points import read_people

        people = read_people(
            points.source, points.domain, points.reading, self.grid, progress=progress, tell=tell
        )
        return measure_distinct(
            people, self.price, max_boxes=self.max_boxes, noise=noise, budget=budget, label=label
        )


def plan_distinct(
    points: Points, epsilon: Epsilon, options: DistinctOptions
) -> DistinctPlan | None:
    """What was asked for, or None. Refuses what cannot become a table, before anything is read or charged."""
    from htf.privacy.distinct import NOT_PEOPLE, check_grid_fits, check_max_boxes

    if options.distinct is None:
        for name in ("distinct_boxes", "distinct_share"):
            if getattr(options, name) is not None:
                flag = f"--{name.replace('_', '-')}"
                raise InputError(
                    f"{flag} is about a table of different people: ask for it with --distinct N"
                )
        return None
    if points.reading.user is None:
        raise InputError(NOT_PEOPLE)
    grid = _read_grid(options.distinct)
    check_grid_fits(grid, points.domain)
    boxes = options.distinct_boxes or AUTO
    most = None if boxes == AUTO else check_max_boxes(_read_whole(boxes), grid)
    return DistinctPlan(grid, most, _price(epsilon, options.distinct_share or "0.2"))


def _read_grid(text: str) -> tuple[int, int]:
    """`16` or `32,16` boxes."""
    from htf.privacy.distinct import check_grid

    try:
        numbers = [numerals.whole(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 2):
        raise InputError(
            "--distinct takes the number of boxes along both axes, or one for each, as in 16 or 32,16, got "
            f"{numerals.shown(text)}"
        )
    return check_grid((numbers[0], numbers[-1]))


def _read_whole(text: str) -> int:
    try:
        return numerals.whole(text)
    except ValueError:
        raise InputError(
            f"--distinct-boxes takes a whole number, or {AUTO}, got {numerals.shown(text)}"
        ) from None


def _price(epsilon: Epsilon, text: str) -> Epsilon:
    """A share of epsilon, rounded down."""
    from htf.privacy.epsilon import Epsilon

    try:
        share = numerals.fraction(text)
    except ValueError:
        share = Fraction(0)
    price = Epsilon(int(epsilon.units * share)) if 0 < share < 1 else Epsilon(0)
    if price.units < 1000:  # so that it can be divided
        raise InputError(
            "--distinct-share is the share of epsilon for the table of different people, between 0 and 1 such as 0.2, got "
            f"{numerals.shown(text)}"
        )
    return price
