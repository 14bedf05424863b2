"""Makes a release of a recipe: checks, prices, charges, reads, measures and publishes. Sensitive.

The order is that of docs/decisions/0013-before-the-charge.md. Whatever can fail without the data fails in `prepare`; what
needs them is read before anything is charged, if the number of records to keep is known; noise comes after its charge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from htf.base import arguments, numerals
from htf.base.options import AUTO
from htf.curator.clipping import measure_clipped
from htf.curator.curator import rehearse
from htf.curator.distinct import PeopleByBox, measure_distinct
from htf.curator.frequency import FrequencyMatrix
from htf.curator.noise import NoiseSource, noise_from_text
from htf.curator.noise_check import check_noise
from htf.curator.rehearsal import load_loops
from htf.errors import BudgetError, InputError
from htf.estimation.prior import Prior, all_priors
from htf.frame.division import Division, has_name
from htf.frame.domain import Domain, IntArray
from htf.ingest import points
from htf.ingest.reading import Reading
from htf.mechanisms.base import Mechanism
from htf.privacy.activity import Activity
from htf.privacy.budget import BudgetFile, check_adds_up, still_charged
from htf.privacy.distinct import DistinctCounts, check_max_boxes
from htf.privacy.epsilon import Epsilon
from htf.privacy.protection import MOST_WEIGHT, PEOPLE, Protection, explain_people
from htf.privacy.purchases import Measured
from htf.privacy.zones_bought import ZonesBought
from htf.publication import default_mechanism, publish
from htf.recipes.listener import Listener
from htf.recipes.maps import map_files, read_axes, read_zones_around
from htf.recipes.quote import Quote
from htf.recipes.recipe import OF_MAP, Recipe
from htf.release.inside_zones import check_size, inside_zones
from htf.release.release import Release

T = TypeVar("T")
OF_RECORDS_ALONE = (Activity.kind, DistinctCounts.kind)  # no counts of cells say it
SEEN = 6.0  # scales of noise: a class with more people is not empty
FEWEST_PEOPLE = 2000  # for counts of records; docs/measurements.md has what was measured


class Reader(Protocol):
    """What counts the records of a source exactly: the functions of htf.ingest.points, or made-up records."""

    @property
    def read_matrix(self) -> Callable[..., FrequencyMatrix]: ...

    @property
    def read_records_of_each(self) -> Callable[..., IntArray]: ...

    @property
    def read_people(self) -> Callable[..., PeopleByBox]: ...


@dataclass(frozen=True)
class Prepared:
    """A release that is ready to be made, from a recipe that was checked."""

    recipe: Recipe
    quote: Quote
    domain: Domain
    reading: Reading
    mechanism: Mechanism
    noise: NoiseSource
    priors: tuple[Prior, ...]
    around: Domain | None = None  # the zones that the map is inside of
    division: Division | None = None  # of the table of different people
    max_boxes: int | None = None  # None: found with noise
    budget: BudgetFile | None = None
    listen: Listener = field(default_factory=Listener)
    reader: Reader = points

    @property
    def name(self) -> str:
        """The source for people. An address may hold a password, so none of it is shown."""
        source = self.recipe.source
        if not isinstance(source, (str, Path)):
            return "the data"
        return "the database" if "://" in str(source) else Path(source).name

    @property
    def paying(self) -> dict[str, Any]:
        """What every measurement is charged to, and its noise."""
        return {"noise": self.noise, "budget": self.budget, "label": self.recipe.label}

    def keeping(self, most: int) -> Prepared:
        """The same, with this many records kept per person."""
        return replace(self, reading=replace(self.reading, max_records=most))

    def simulate(self, made_up: Reader, epsilon: Epsilon, noise: str) -> Release:
        """The same release of made-up records, for some epsilon. Nothing is charged, and nobody hears of it."""
        recipe = replace(self.recipe, epsilon=str(epsilon))
        plan = replace(self, recipe=recipe, quote=recipe.quote(), noise=noise_from_text(noise))
        return replace(plan, reader=made_up, budget=None, listen=Listener()).make()

    def try_source(self) -> None:
        """Open the source as a release would, and count nothing."""
        points.check_source(self.recipe.source, self.domain, self.reading)

    def make(self) -> Release:
        """Read, charge, measure and publish."""
        # What can be read before the activity is charged may fail before. Only a number of records to keep that follows
        # from the activity makes the map wait.
        known = self.reading.max_records != AUTO
        matrix = self._read() if known else None
        by_box = None
        if self.division is not None:
            by_box = self._counted(self.reader.read_people, self.domain, self.division.given)
        activity, plan = None, self
        if (price := self.quote.prices.get(Activity.kind)) is not None:
            activity = self._measure_activity(price)
            if not known:
                plan = self.keeping(self._best(activity))
                activity = replace(activity, decides=True)
        matrix = plan._read() if matrix is None else matrix
        zones = None if self.around is None else plan._read(self.around)
        bought: list[Measured] = [] if activity is None else [activity]
        bought += plan._measure_others(matrix, by_box)
        return plan._publish(matrix, zones, bought)

    def _measure_others(
        self, matrix: FrequencyMatrix, by_box: PeopleByBox | None
    ) -> Iterator[Measured]:
        """What else is bought, in the order in which it is charged."""
        if by_box is not None:
            yield self._measure_distinct(self.quote.prices["distinct"], by_box)
        if (price := self.quote.prices.get("clipped")) is not None:
            yield measure_clipped(matrix, price, **self.paying)

    def _publish(
        self, matrix: FrequencyMatrix, around: FrequencyMatrix | None, bought: list[Measured]
    ) -> Release:
        epsilon, zones = self.quote.epsilon, None
        usual = {**self.paying, "progress": self.listen.step}
        if around is not None:
            price = self.quote.prices["zones"]
            zones, epsilon = publish(around, price, **usual), epsilon - price
        made = publish(matrix, epsilon, self.mechanism, prior=self.priors, bought=bought, **usual)
        if zones is None:
            return made
        self.listen.step("fitting the map to the zones")
        with still_charged(self.budget):
            return inside_zones(made, zones)

    def _read(self, domain: Domain | None = None) -> FrequencyMatrix:
        """The exact counts on the map, or in the zones that it is inside of."""
        if isinstance(self.recipe.source, FrequencyMatrix) and self.reader is points:
            return self.recipe.source
        return self._counted(self.reader.read_matrix, domain or self.domain)

    def _counted(self, read: Callable[..., T], domain: Domain, *more: Any) -> T:
        """What a function of the reader counts exactly, while the listener hears how far it is."""
        with self.listen.reading(self.name) as progress:
            told = {"progress": progress, "tell": self.listen.remark}
            return read(self.recipe.source, domain, self.reading, *more, **told)

    def _measure_activity(self, price: Epsilon) -> Activity:
        from htf.curator import contributions

        reading = self.reading
        limit = reading.max_weight or 1
        most = min(self.recipe.most_records * limit, max(MOST_WEIGHT, self.recipe.most_records))
        each = self._counted(self.reader.read_records_of_each, self.domain, most)
        people = contributions.RecordsPerPerson(each, reading.told_apart, reading.weight, limit)
        activity = contributions.measure_activity(people, price, per=reading.per, **self.paying)
        self._tell_of_activity(activity, most)
        return activity

    def _tell_of_activity(self, activity: Activity, most: int) -> None:
        if sum(activity.counted) < FEWEST_PEOPLE:
            self.listen.found(
                f"By the noisy activity there are fewer than about {FEWEST_PEOPLE:,} people. The total of their records is "
                "then very uncertain, and intervals may be too narrow: prefer counting split people (--count people)."
            )
        noise = 1 / float(activity.epsilon)
        if len(activity.ends) > 1 and activity.counted[-1] > SEEN * noise:
            self.listen.found(
                f"By the noisy activity, people have more than {activity.ends[-2]:,} {activity.things}. Whoever has more than "
                f"{most:,} counts as having that many, so totals may be too low: choose a larger --most-records next time."
            )
        self.listen.found(
            f"Up to about {3 * noise:,.0f} people with up to {most:,} {activity.things} each cannot be distinguished from none "
            "at this epsilon. "
            "Intervals allow for them, so they reach further up than down (--most-records)."
        )

    def _best(self, activity: Activity) -> int:
        """The number of records to keep per person: it follows from the noisy activity, so it costs nothing more.

        The mechanism may refuse what that leaves for each record. It takes what fewer leave: one was rehearsed.
        """
        from htf.estimation import activity as estimated

        most = estimated.best_max_records(activity, self.quote.left)
        while most > 1 and not self.keeping(most).is_accepted:
            most //= 2
        records = "record" if most == 1 else "records"
        self.listen.found(
            f"Keeping at most {most:,} {records} per person: by the noisy activity of people (epsilon "
            f"{activity.epsilon}), this number has the least expected error."
        )
        return most

    @property
    def is_accepted(self) -> bool:
        """Whether the mechanism takes what this number of records leaves for each."""
        try:
            self.rehearse(self.reading.protection)
        except (BudgetError, InputError):
            return False
        return True

    def _measure_distinct(self, price: Epsilon, by_box: PeopleByBox) -> DistinctCounts:
        found = measure_distinct(by_box, price, max_boxes=self.max_boxes, **self.paying)
        how = "found with noise" if found.decides else "as given"
        self.listen.found(
            f"Counting {found.quantity} in {found.told}, each person in at most "
            f"{found.max_boxes} ({how}), for epsilon {found.epsilon}."
        )
        return found

    def rehearse(self, unit: Protection) -> None:
        """Find out before the data are read what the mechanism, the noise or the installation would refuse
        whatever the data hold.

        Before it is found with noise, the limit per person is unknown. It may be 1.
        """
        check_noise(self.noise)
        load_loops()
        if self.reading.max_records in (None, AUTO):
            unit = replace(unit, max_records=1)
        rehearse(self.mechanism, self.domain, self.quote.left, unit, self.priors)
        if self.around is not None:
            from htf.mechanisms import make_mechanism

            check_size(self.domain)
            own = make_mechanism(default_mechanism(self.around))
            rehearse(own, self.around, self.quote.prices["zones"], unit)


def prepare(
    recipe: Recipe, budget: BudgetFile | None, noise: NoiseSource | str, listen: Listener | None
) -> Prepared:
    """Check everything that can be checked before the data are read and anything is charged."""
    if budget is not None:
        arguments.instance(
            budget, BudgetFile, "the budget", "open it with htf.BudgetFile(path, dataset)"
        )
    source = noise_from_text(noise) if isinstance(noise, str) else noise
    remedy = "or one of the texts opendp, fast and seeded:NUMBER"
    arguments.instance(source, NoiseSource, "noise", remedy)  # type: ignore[type-abstract]
    if recipe.source is None:
        raise InputError("say where the records are: name a file, or give source")
    found = planned(recipe, source, listen or Listener())
    _check_counts(found)
    _tell_what_counts(recipe, found.quote, found.listen)
    if budget is not None:
        _check_charge(found, budget)
    priors = _read_priors(recipe, found.reading, found.domain)
    found = replace(found, priors=priors, budget=budget)
    found.rehearse(found.quote.unit)
    return found


def planned(recipe: Recipe, noise: NoiseSource, listen: Listener) -> Prepared:
    """What a recipe says by itself: its map, its price, its mechanism. Its priors are not read yet."""
    domain, around, reading = read_map(recipe)
    _check_lists(recipe)
    quote, mechanism = recipe.quote(), recipe.made_by()
    mechanism.check_priors(list(recipe.prior))
    division, boxes = read_division(recipe, domain)
    return Prepared(
        recipe, quote, domain, reading, mechanism, noise, (), around, division, boxes, listen=listen
    )


def pinned(recipe: Recipe) -> Recipe:
    """The recipe without a source, and with its map as it is now: files of the map may change later. What no data of this
    map could be released by is refused."""
    found = planned(replace(recipe, source=None, label=""), noise_from_text("opendp"), Listener())
    found.rehearse(found.quote.unit)
    columns = None if found.reading.columns is None else tuple(found.reading.columns)
    nothing: dict[str, Any] = {n: Recipe.__dataclass_fields__[n].default for n in OF_MAP}
    of_map: dict[str, Any] = {"domain": found.domain, "inside": found.around, "columns": columns}
    return replace(found.recipe, **nothing, **of_map)


def _tell_what_counts(recipe: Recipe, quote: Quote, listen: Listener) -> None:
    """Say that split people are counted, and what they are, if nobody asked for it."""
    if quote.unit.count == PEOPLE and recipe.count is None:
        what = quote.unit.quantity
        listen.remark(
            f"Counting {what}. {explain_people(what)} To count records instead: --max-records K."
        )


def _check_counts(prepared: Prepared) -> None:
    """Refuse counts of another map or another unit than the recipe's, and what cannot be bought with counts alone."""
    source, prices = prepared.recipe.source, prepared.quote.prices
    if not isinstance(source, FrequencyMatrix):
        return
    if source.domain != prepared.domain:
        raise InputError("the counts are of another map: read them on the domain of this recipe")
    if beside := [kind for kind in (*OF_RECORDS_ALONE, ZonesBought.kind) if kind in prices]:
        raise InputError(
            f"counts alone cannot buy {' and '.join(beside)}, which is measured from records: give the records"
        )
    given, wanted = source.protection, prepared.quote.unit
    if given.name != wanted.name:
        raise InputError(f"this is for {wanted.name}, but the counts are for {given.name}")
    if given.told != wanted.told:
        raise InputError(f"this counts {wanted.told}, but the counts are of {given.told}")


def _check_charge(prepared: Prepared, budget: BudgetFile) -> None:
    """Refuse before the data are read what the charge would refuse anyway."""
    check_adds_up(prepared.noise.private, prepared.mechanism.parameters())
    account, quote = budget.account(), prepared.quote
    if quote.unit.name == account.unit:  # else that is refused below
        account.check_told_apart(prepared.recipe.told_apart)
    if not budget.resumes:  # what is left does not pay for that: it was charged before
        account.check(quote.epsilon, quote.unit.name)


def read_map(recipe: Recipe) -> tuple[Domain, Domain | None, Reading]:
    """The map, the zones that it is inside of, and how to read the records onto it."""
    from htf.ingest.columns import default_columns, inputs

    if recipe.domain is not None:
        domain = arguments.instance(recipe.domain, Domain, "domain", "see htf.Domain")
        needed, columns = len(inputs(domain)), recipe.columns
        if columns is None and needed > 1:
            columns = [recipe.x, recipe.y, *default_columns(domain)[2:]]
        return domain, recipe.inside, _checked(recipe.reading(columns))
    domain, wanted = read_axes(recipe)
    return domain, read_zones_around(recipe, domain), _checked(recipe.reading(wanted))


def _checked(reading: Reading) -> Reading:
    """Refuse now what the reader would refuse too, perhaps after minutes."""
    from htf.frame.crs import name_of_crs
    from htf.ingest.engines import read_memory

    if reading.crs is not None:
        name_of_crs(reading.crs)
    if reading.memory is not None:
        read_memory(reading.memory)
    return reading


def _check_lists(recipe: Recipe) -> None:
    """Refuse a layer of zones or a list of categories that is a file of the data: its names would be published."""
    from htf.privacy.origins import check_not_data, mark_files

    if lists := map_files(recipe):
        data = mark_files(recipe.files)
        for one in mark_files(lists):
            check_not_data(one, data, "layer or list")


def read_division(recipe: Recipe, domain: Domain) -> tuple[Division | None, int | None]:
    """What a table of different people divides the map into, and in how many of these a person counts; None where that
    is found."""
    if recipe.distinct is None:
        if recipe.distinct_boxes is not None:
            raise InputError(
                "distinct_boxes is about a table of different people: ask for it with --distinct N (in Python: distinct)"
            )
        return None, None
    division = _division(recipe.distinct, domain)
    number = division.number(domain)
    boxes = recipe.distinct_boxes or AUTO
    return division, None if boxes == AUTO else check_max_boxes(_whole(boxes), division, number)


def _division(text: str, domain: Domain) -> Division:
    """A grid where the text is numbers; else names."""
    try:
        numbers = [numerals.whole(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) in (1, 2):
        return Division((numbers[0], numbers[-1]))
    if numbers or not any(has_name(domain, one.strip()) for one in (text, *text.split(","))):
        raise InputError(
            "--distinct takes the number of boxes along both axes, or one for each, as in 16 or 32,16, or the name of a "
            f"level or axis{_names(domain)}; and the most of a person after it, as in 16:4; got {numerals.shown(text)}"
        )
    return Division(by=text)


def _names(domain: Domain) -> str:
    levels = [one.name for axis in domain.axes if axis.names for one in axis.names.levels]
    return f" ({', '.join(dict.fromkeys([*levels, *domain.names]))})"


def _whole(text: str) -> int:
    try:
        return numerals.whole(text)
    except ValueError:
        raise InputError(
            f"--distinct N:M takes a whole number M, or {AUTO}, got {numerals.shown(text)} (in Python: distinct_boxes)"
        ) from None


def _read_priors(recipe: Recipe, reading: Reading, domain: Domain) -> tuple[Prior, ...]:
    """Read them before the data, so that their mistakes show before any budget is spent. Compare them with the
    files of the data here too, because reading all of them takes long."""
    from htf.ingest.prior import LON_LAT, read_prior
    from htf.privacy.origins import check_not_data, mark_files

    named = (reading.columns or LON_LAT)[:2]
    columns = [name or default for name, default in zip(named, LON_LAT, strict=True)]
    found = []
    for one in recipe.prior:
        prior = one if isinstance(one, Prior) else read_prior(one, domain, columns)
        prior.check_map(domain)
        check_not_data(prior.file, mark_files(recipe.files))
        found.append(prior)
    return all_priors(tuple(found))
