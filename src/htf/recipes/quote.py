"""What a recipe costs, without its data: the unit, the price of each purchase, and what is left for the map.

Every price is computed here and nowhere else. A dry run, the question before a charge, the forecast and the making of a
release all read the same `Quote`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from htf.base import numerals
from htf.base.options import AUTO
from htf.errors import InputError
from htf.estimation.activity import MOST_KEPT
from htf.privacy.activity import LEAST_PRICE, Activity, check_kept
from htf.privacy.clipping import Clipped, check_price
from htf.privacy.distinct import NOT_PEOPLE, DistinctCounts
from htf.privacy.epsilon import Epsilon
from htf.privacy.protection import MOST_WEIGHT, PERSON, RECORDS, Protection, epsilon_per_share
from htf.privacy.zones_bought import ZonesBought
from htf.recipes.recipe import USUAL_SHARES, read_pairs

if TYPE_CHECKING:
    from htf.ingest.reading import Reading
    from htf.recipes.recipe import Recipe

NO_TABLE = "it is about a table of different people: ask for it with --distinct N"
NO_WEIGHT = "it is about records above a largest weight: give --weight COLUMN:W"
NO_ZONES = "it is for a map inside zones: give --zones and --bounds"
LEAST_TO_DIVIDE = Epsilon(1000)  # a table of different people divides its price


@dataclass(frozen=True)
class Offer:
    """One kind of purchase: when a recipe buys it, and for which share of epsilon."""

    kind: str
    may_be_zero: bool
    least: Epsilon
    refuse: Callable[[Recipe], str]  # why a recipe cannot buy it; empty if it can

    @property
    def usual(self) -> str:
        """The share where none is given."""
        return USUAL_SHARES[self.kind]

    def share(self, recipe: Recipe, given: str | None) -> Fraction:
        """The share that the recipe spends on it; 0 where it buys none."""
        if why := self.refuse(recipe):
            if given is not None:
                raise InputError(f"--spend {self.kind}={given}: {why}")
            return Fraction(0)
        return self.read(self.usual if given is None else given)

    def read(self, text: str) -> Fraction:
        """A share of epsilon from text."""
        try:
            share = numerals.fraction(text)
        except ValueError:
            share = Fraction(-1)
        if 0 < share < 1 or (share == 0 and self.may_be_zero):
            return share
        reach = "from 0 to below 1" if self.may_be_zero else "between 0 and 1"
        raise InputError(
            f"--spend {self.kind} takes a share of epsilon, {reach} such as {self.usual}, got {numerals.shown(text)}"
        )

    def price(self, epsilon: Epsilon, share: Fraction) -> Epsilon:
        """That share of epsilon, unless it is too small to measure anything."""
        price = Epsilon(int(epsilon.units * share))  # rounded down
        if share > 0 and price < self.least:
            other = f", or leave it out (--spend {self.kind}=0)" if self.may_be_zero else ""
            raise InputError(
                f"--spend {self.kind}={numerals.shown(share)} of --epsilon {epsilon} is less than {self.least}, the smallest: "
                f"spend more{other}"
            )
        return price


def _no_activity(recipe: Recipe) -> str:
    reading, said = recipe.reading(), "the activity is for counting records of people"
    if reading.user is None:
        return f"{said}: leave it out, or name the column of people with --user and count records (--max-records K)"
    if reading.counted != RECORDS:
        return f"{said}, and here split people are counted: leave it out, or count records (--max-records K)"
    return ""


def _without(name: str, why: str) -> Callable[[Recipe], str]:
    """Refuses a recipe in which this is not given."""
    return lambda recipe: why if getattr(recipe, name) in (None, False) else ""


OFFERS = {
    one.kind: one
    for one in (
        Offer(Activity.kind, True, LEAST_PRICE, _no_activity),
        Offer(DistinctCounts.kind, False, LEAST_TO_DIVIDE, _without("distinct", NO_TABLE)),
        Offer(Clipped.kind, True, Epsilon(1), _without("weight", NO_WEIGHT)),
        Offer(ZonesBought.kind, False, Epsilon(1), _without("is_map_inside", NO_ZONES)),
    )
}


@dataclass(frozen=True)
class Quote:
    """What a recipe will cost. It depends on no data.

    Attributes
    ----------
    unit : Protection
        What epsilon protects. Where the number of records to keep is found with noise, it is the largest there can be.
    epsilon : Epsilon
        The whole price.
    prices : dict of str to Epsilon
        The price of each purchase, by its kind.
    left : Epsilon
        What is left for the map.

    Examples
    --------
    >>> import htf
    >>> recipe = htf.Recipe(source="visits.csv", bounds=(0, 0, 1, 1), user="who", max_records="auto", epsilon=1)
    >>> quote = recipe.quote()
    >>> str(quote.prices["activity"]), str(quote.left)
    ('0.1', '0.9')
    """

    unit: Protection
    epsilon: Epsilon
    prices: Mapping[str, Epsilon]
    left: Epsilon

    def __str__(self) -> str:
        parts = [f"{kind} {price}" for kind, price in self.prices.items()]
        return f"epsilon {self.epsilon} for {self.unit.name}: {', '.join([*parts, f'map {self.left}'])}"


def quote_of(recipe: Recipe) -> Quote:
    """Computes what `Recipe.quote` returns, and refuses what cannot become a release."""
    reading, epsilon = recipe.reading(), recipe.total
    form = f"NAME=SHARE, where NAME is one of {', '.join(OFFERS)}"
    given = read_pairs("--spend", form, recipe.spend, OFFERS)
    shares = {kind: offer.share(recipe, given.get(kind)) for kind, offer in OFFERS.items()}
    _check_together(recipe, reading, shares, given)
    prices = {kind: OFFERS[kind].price(epsilon, share) for kind, share in shares.items() if share}
    left = epsilon
    for price in prices.values():
        if price >= left:
            raise InputError(
                f"what --spend buys ({', '.join(prices)}) costs shares of epsilon: together they leave nothing for the map"
            )
        left -= price
    unit = _unit(recipe, reading, left, prices)
    if Clipped.kind in prices:
        check_price(prices[Clipped.kind], unit)
    return Quote(unit, epsilon, prices, left)


def _check_together(
    recipe: Recipe, reading: Reading, shares: dict[str, Fraction], given: Mapping[str, str]
) -> None:
    """Refuse purchases that do not go with each other, or with what is counted. Settles what weights leave out."""
    finds = reading.max_records == AUTO
    if reading.weight is not None and "activity" not in given and not finds:
        shares["activity"] = Fraction(0)  # sums are of the kept records unless it is asked for
    if finds and reading.user is not None and shares["activity"] == 0:
        raise InputError(
            "--max-records auto follows from the activity of people: give --spend activity a share above 0"
        )
    if recipe.distinct is not None and reading.user is None:
        raise InputError(NOT_PEOPLE)
    if shares["zones"]:
        _check_inside(recipe, shares)


def _check_inside(recipe: Recipe, shares: dict[str, Fraction]) -> None:
    from htf.estimation.homogeneous import FROM_LEAVES

    remedies = {
        "leave out --prior": bool(recipe.prior),
        "give --spend activity=0, or --count people": shares["activity"] > 0,
        "leave out --mechanism": FROM_LEAVES not in recipe.made_by().estimators,
    }
    for remedy, is_wrong in remedies.items():
        if is_wrong:
            raise InputError(
                f"a map inside zones is by the mechanism htf, and of what was counted: {remedy}"
            )


def _unit(
    recipe: Recipe, reading: Reading, left: Epsilon, prices: Mapping[str, Epsilon]
) -> Protection:
    """What epsilon will protect."""
    Protection(PERSON, recipe.most_records)
    if reading.max_records != AUTO:
        unit = reading.protection
        epsilon_per_share(left, unit)
        check_kept(unit.max_records, recipe.most_records if "activity" in prices else None)
        return unit
    if reading.user is None:
        raise InputError(
            f"--max-records {AUTO} limits the records per person: name the column of people with --user"
        )
    most = replace(
        reading, max_records=min(MOST_KEPT, MOST_WEIGHT // (reading.max_weight or 1))
    ).protection
    epsilon_per_share(left, most)  # before anything is spent
    return most
