"""What a release is made of, as one record: the source, the map, the unit, what is counted and bought, and the price.

The command line, Python, a file (htf.recipes.files) and a series fill the same record. Its fields are declared here or, where
another module needs them too, taken over from there, so that every name, default and help text stands once.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from htf.base import arguments
from htf.base.options import AUTO, DEST, DISTINCT, OPTION, USUAL_MOST_RECORDS, option
from htf.errors import InputError
from htf.ingest.reading import Reading, check_columns
from htf.privacy.epsilon import Epsilon
from htf.recipes.maps import CELLS, SAME, map_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from htf.curator.noise import NoiseSource
    from htf.frame.domain import Domain
    from htf.mechanisms.base import Mechanism
    from htf.privacy.apart import ToldApart
    from htf.privacy.budget import BudgetFile
    from htf.recipes.listener import Listener
    from htf.recipes.make import Prepared
    from htf.recipes.quote import Quote
    from htf.release.release import Release

HOME = "home"  # in the metadata of a field that is declared in Reading: by which name
Text = Any  # a text, or a number or several that mean the same
Texts = Any  # several texts; a dictionary of what stands on both sides of =
TEXT_OR_NUMBERS = "a text or numbers"
LISTS = ("axes", "categories", "other", "settings", "spend", "prior")
# Shares of epsilon; docs/measurements.md has what was measured of each.
USUAL_SHARES = {"activity": "0.1", "distinct": "0.2", "clipped": "0.05", "zones": "0.2"}
SPEND = (
    "Share of epsilon for one purchase beside the map. activity: with --max-records, how many records people have, so "
    "that counts are of all records [{activity}; 0, usual with --weight: count kept records]. distinct: the table of --distinct [{distinct}]. "
    "clipped: with --weight, how many records are above the largest weight [{clipped}; may be 0]. zones: for a map inside "
    "zones [{zones}]."
).format(**USUAL_SHARES)


def same_as(name: str) -> Any:
    """A field about records, which is declared elsewhere."""
    (found,) = (one for one in fields(Reading) if one.name == name)
    return field(default=found.default, metadata={**found.metadata, HOME: name})


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a release is made of. It is filled by name; a field that is not given has the default of `htf release`.

    The options of `htf release` have the same names and meanings, with - for _. Texts are as on the command line; pairs and
    lists of numbers may also be tuples, `spend` and `settings` dictionaries.

    Parameters
    ----------
    epsilon : Epsilon, str, int, float, Decimal or Fraction
        The whole privacy budget of the release, purchases included.
    source : str, Path, or data
        Where the records are: what `read_points` takes, or the counts that it has made. No release carries it.
    domain, inside : Domain, optional
        The map, and the zones that it is inside of, in place of `bounds` and the other fields about it.
    columns : list of str, optional
        With `domain`: the column of each axis, two for zones. None in it means that the name is guessed.

    Raises
    ------
    InputError
        If a field is wrong, or fields do not go together.

    Examples
    --------
    >>> import htf
    >>> recipe = htf.Recipe(source="visits.csv", bounds=(0, 0, 1, 1), user="who", epsilon=1)
    >>> recipe.quote().unit.quantity
    'split people'
    """

    source: Any = field(default=None, repr=False)  # data, or an address; None: said later
    domain: Domain | None = None
    inside: Domain | None = None
    columns: Any = None
    x: str | None = option("Column of the x axis, e.g. longitude.  [default: guessed]", "COLUMN")
    y: str | None = option("Column of the y axis, e.g. latitude.  [default: guessed]", "COLUMN")
    bounds: Text | None = option(
        "Bounds of the map. Choose them without looking at the data.", "W,S,E,N"
    )
    around: Text | None = option("Or: a square of KM km around a point.", "LAT,LON,KM")
    cells: Text | None = option(f"Cells of the grid per side.  [default: {CELLS}]", "N|NX,NY")
    zones: Path | str | None = option(
        "Or: a public layer of zones (GeoPackage, GeoJSON, shapefile, GeoParquet). Counts are then of zones, not "
        "of cells of a grid. With --bounds or --around: of both, a map that adds up to the zones.",
        "FILE",
    )
    by: str | None = option("With --zones: column of the layer that names zones.", "COLUMN")
    within: Text | None = option(
        "With --zones: columns that name the zones above them, from the lowest up.", "COLUMN,…"
    )
    crs: str | None = option(
        "Reference system of the map and its bounds.  [default: that of the zones, else degrees, OGC:CRS84]",
        "CRS",
    )
    dest_x: str | None = option(
        "Column of the destination's x, as a further axis.", "COLUMN", group=DEST
    )
    dest_y: str | None = option(
        "Column of the destination's y, as a further axis.", "COLUMN", group=DEST
    )
    dest_zones: str | None = option(
        "The layer of destinations.  [default: same, the layer of --zones]",
        f"FILE|{SAME}",
        group=DEST,
    )
    dest_by: str | None = option(
        "Column of that layer that names zones.  [default: --by]", "COLUMN", group=DEST
    )
    dest_within: Text | None = option(
        "Columns of that layer that name the zones above them.  [default: none; --within for the same layer]",
        "COLUMN,…",
        group=DEST,
    )
    axes: Texts = option(
        "One more axis. COLUMN may be hour(T), weekday(T) or day(T) of a column T of times.",
        "NAME:COLUMN:LOW:HIGH:CELLS",
        flag="--axis",
        default=(),
    )
    categories: Texts = option(
        "One more axis, of names from a public list: names with commas between them, a .txt file with one on each "
        "line, or a .csv file whose first line names levels, as in offence,group. Never take it from the data.",
        "NAME[:COLUMN]=LIST",
        flag="--category",
        default=(),
    )
    other: Texts = option(
        "Count values that are not in the list of this category under the name `other`; or, for zone, points in no "
        "zone under the name `elsewhere`. Without it such records are left out.",
        "NAME|zone",
        default=(),
    )
    encoding: str | None = same_as("encoding")
    decimal: str = same_as("decimal")
    skip_lines: int | None = same_as("skip_lines")
    skip_last: int | None = same_as("skip_last")
    table: str | None = same_as("table")
    sql: str | None = same_as("sql")
    engine: str = same_as("engine")
    memory: str | None = same_as("memory")
    points_crs: str | None = same_as("crs")
    user: str | None = same_as("user")
    count: str | None = same_as("count")
    per: str | None = same_as("per")
    max_records: int | str | None = same_as("max_records")
    once_per: str | None = same_as("once_per")
    weight: str | None = same_as("weight")
    max_weight: int | None = same_as("max_weight")
    time: str | None = same_as("time")
    time_unit: str = same_as("time_unit")
    time_format: str | None = same_as("time_format")
    utc_offset: int | str = same_as("utc_offset")
    since: int | str | None = same_as("since")
    until: int | str | None = same_as("until")
    allow_empty: bool = same_as("allow_empty")
    epsilon: Text | None = option("Privacy budget of the release. Required.")
    spend: Texts = option(SPEND, "NAME=SHARE", default=())
    most_records: int = option(
        "For the activity of people: someone with more than N records counts as having N, in totals too. Choose N "
        "without looking at the data, and no larger than needed: intervals allow for a few such people whom noise "
        "may hide.",
        "N",
        default=USUAL_MOST_RECORDS,
    )
    distinct: Text | None = option("The grid.", group=DISTINCT)
    distinct_boxes: Text | None = option("The most boxes of a person.", group=DISTINCT)
    mechanism: Any = option(
        "See `htf mechanisms`.  [default: htf; zones where the first axis has named cells]"
    )
    settings: Texts = option(
        "Set a parameter of the mechanism.", "NAME=VALUE", flag="--set", default=()
    )
    prior: Texts = option(
        "Public weights, points or release. Never these points. May be given several times.",
        "FILE",
        default=(),
    )
    label: str = ""  # of the charges in a budget file

    def __post_init__(self) -> None:
        for one in fields(self):
            object.__setattr__(self, one.name, _normal(one, getattr(self, one.name)))
        if self.epsilon is None:
            raise InputError("say how much to spend: give --epsilon (in Python: epsilon)")
        if self.mechanism is not None and not isinstance(self.mechanism, str):
            from htf.mechanisms.base import Mechanism

            remedy = "give its name, or make one with htf.make_mechanism"
            arguments.instance(self.mechanism, Mechanism, "mechanism", remedy)  # type: ignore[type-abstract]
        _ = self.total
        self.reading()
        self._check_map()

    def _check_map(self) -> None:
        if all(one is None for one in (self.domain, self.inside, self.columns)):
            return
        from htf.frame.domain import Domain

        for name in ("domain", "inside"):
            if getattr(self, name) is not None:
                arguments.instance(getattr(self, name), Domain, name, "see htf.Domain")
        if self.columns is not None:
            check_columns(self.columns)
        if self.domain is None:
            for name in ("inside", "columns"):
                if getattr(self, name) is not None:
                    raise InputError(f"{name} goes with a domain: give domain too")
            return
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(self.columns))
        for name in given_fields(self):
            if name in (OF_MAP if self.columns is not None else OF_MAP[2:]):
                raise InputError(f"the map is given as a domain: leave out {name}")

    @property
    def total(self) -> Epsilon:
        """The whole price, as an Epsilon."""
        return Epsilon.of(str(self.epsilon))

    @property
    def is_map_inside(self) -> bool:
        """Whether both a map and zones are asked for."""
        is_flat = self.bounds is not None or self.around is not None
        return self.inside is not None or (self.zones is not None and is_flat)

    @property
    def told_apart(self) -> ToldApart | None:
        """By which columns people and periods are told apart; None where a program has counted and does not say."""
        from htf.curator.frequency import FrequencyMatrix

        if isinstance(self.source, FrequencyMatrix):
            return self.source.told_apart
        return self.reading().told_apart

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the source; none if it is a server, or data in memory."""
        from htf.ingest.sources import files_behind

        is_name = isinstance(self.source, (str, Path))
        return files_behind(str(self.source)) if is_name else ()

    @property
    def inputs(self) -> list[str | Path]:
        """Every file, folder or pattern that the recipe names, which no output may replace."""
        from htf.ingest.prior import split_key

        source = [self.source] if isinstance(self.source, (str, Path)) else []
        priors = [split_key(one)[0] for one in self.prior if isinstance(one, str)]
        named = [*source, *priors, *map_files(self)]
        return [one for one in named if "://" not in str(one)]

    def reading(self, columns: Any = None) -> Reading:
        """The fields about records, with the columns that the axes of the map come from."""
        about = {one.name: one.metadata[HOME] for one in fields(self) if HOME in one.metadata}
        return Reading(columns, **{home: getattr(self, name) for name, home in about.items()})

    def made_by(self) -> Mechanism:
        """The mechanism, with its parameters. Needs no map: whether its first axis has names follows from the fields."""
        from htf.mechanisms import make_mechanism
        from htf.publication import DEFAULT_FOR_NAMES, DEFAULT_MECHANISM, default_mechanism

        if self.mechanism is not None and not isinstance(self.mechanism, str):
            return self.mechanism  # type: ignore[no-any-return]
        usual = DEFAULT_MECHANISM
        if self.domain is not None:
            usual = default_mechanism(self.domain)
        elif self.zones is not None and not self.is_map_inside:
            usual = DEFAULT_FOR_NAMES
        return make_mechanism(self.mechanism or usual, **read_settings(self.settings))

    def pinned(self) -> Recipe:
        """The recipe for many sources: without one, and with its map as it is now, whatever becomes of files of zones.

        Returns
        -------
        Recipe
            The same with a domain, and columns, in place of the fields about the map.

        Raises
        ------
        InputError
            If no data could be released by this recipe.

        Examples
        --------
        >>> recipe.pinned().domain.names
        ('x', 'y')
        """
        from htf.recipes.make import pinned

        return pinned(self)

    def quote(self) -> Quote:
        """Say what the release will cost, without its data. No file is opened.

        Returns
        -------
        Quote
            The unit, the price of each purchase, and what is left for the map.

        Raises
        ------
        InputError
            If the fields do not go together, or the prices leave nothing for the map.

        Examples
        --------
        >>> str(recipe.quote())
        'epsilon 1 for one person: map 1'
        """
        from htf.recipes.quote import quote_of

        return quote_of(self)

    def prepare(
        self,
        *,
        budget: BudgetFile | None = None,
        noise: NoiseSource | str = "opendp",
        listen: Listener | None = None,
    ) -> Prepared:
        """Check everything that can be checked before the data are read and anything is charged.

        Parameters
        ----------
        budget : BudgetFile, optional
            The budget to charge.
        noise : NoiseSource or str
            As in `publish`.
        listen : Listener, optional
            Who hears of progress, and of what the curator should know.

        Returns
        -------
        Prepared
            What is ready to be made, once.

        Raises
        ------
        InputError
            If something is wrong.

        Examples
        --------
        >>> str(recipe.prepare().quote.left)
        '1'
        """
        from htf.recipes.make import prepare

        return prepare(self, budget, noise, listen)

    def make(
        self,
        *,
        budget: BudgetFile | None = None,
        noise: NoiseSource | str = "opendp",
        progress: Callable[[str], None] | None = None,
    ) -> Release:
        """Make the release: read, measure what is bought, find the number of records to keep, and publish.

        Parameters
        ----------
        budget : BudgetFile, optional
            The budget to charge before any noise is drawn. Write the release with its `save`.
        noise : NoiseSource or str
            As in `publish`.
        progress : callable, optional
            Called with the name of each step.

        Returns
        -------
        Release
            What may be published.

        Raises
        ------
        InputError
            If something is wrong with the recipe or its data. Nothing is charged then, or the error says what was.
        BudgetError
            If epsilon or the budget does not suffice.

        Examples
        --------
        >>> import numpy as np
        >>> visits = {"lon": np.full(500, 0.5), "lat": np.full(500, 0.5), "who": np.arange(500) // 2}
        >>> of_people = htf.Recipe(
        ...     source=visits, bounds=(0, 0, 1, 1), cells=16, user="who", max_records="auto", epsilon=1)
        >>> of_people.make(noise="seeded:1").quantity
        'records'
        """
        from htf.recipes.listener import Listener

        arguments.function(progress, "progress")
        listen = None if progress is None else Listener(step=progress)
        return self.prepare(budget=budget, noise=noise, listen=listen).make()


NAMES = [one.name for one in fields(Recipe)]
OF_MAP = NAMES[NAMES.index("x") : NAMES.index("encoding")]  # the fields about the map


def _normal(one: Field[Any], value: Any) -> Any:
    """The one form of a value, in which recipes from everywhere are equal."""
    if one.name in LISTS:
        return _listed(one.name, value)
    if value is None and one.default is None:
        return None
    read = one.metadata[OPTION].read if OPTION in one.metadata else None
    if read is not None and isinstance(value, str):
        return read(value)
    form = FORMS.get(str(one.type).removesuffix(" | None"))
    return value if form is None else form(value, one.name)


def _text(value: Any, name: str) -> str:
    """A text; a number, or several with commas between them; an epsilon."""
    if isinstance(value, (Path, Epsilon)):
        return str(value)
    parts = value if isinstance(value, (tuple, list)) else [value]
    if not parts:
        raise arguments.unfit(name, TEXT_OR_NUMBERS, value)
    return ",".join(_plain(part, name) for part in parts)


def _number(value: Any, name: str) -> Any:
    if isinstance(value, str) and value == AUTO and name == "max_records":
        return value
    return arguments.whole(value, name)


FORMS = {
    "str": arguments.text, "Text": _text, "int": _number, "int | str": _number, "bool": arguments.flag,
    "Path | str": arguments.path,
}  # fmt: skip


def _listed(name: str, value: Any) -> tuple[Any, ...]:
    if isinstance(value, Mapping):
        return tuple(
            f"{arguments.text(key, name)}={_plain(one, name)}" for key, one in value.items()
        )
    given = (value,) if isinstance(value, (str, Path)) else arguments.items(value, name, "a list")
    return tuple(_entry(one, name) for one in given)


def _entry(value: Any, name: str) -> Any:
    if isinstance(value, Path):
        return str(value)
    if name == "prior" and not isinstance(value, str):
        from htf.estimation.prior import Prior

        return arguments.instance(value, Prior, name, "give the name of a file, or htf.read_prior")
    return arguments.text(value, name)


def _plain(part: Any, name: str) -> str:
    if isinstance(part, str):
        return part
    if not arguments.is_number(part):
        raise arguments.unfit(name, TEXT_OR_NUMBERS, part)
    arguments.number(part, name)
    return str(part)


def read_settings(settings: Iterable[str]) -> dict[str, str]:
    """Parameters of a mechanism, from texts such as `height=6`."""
    return read_pairs("--set", "NAME=VALUE", settings)


def read_pairs(
    flag: str, form: str, texts: Iterable[str], names: Container[str] | None = None
) -> dict[str, str]:
    """Values by their names, of which there may be a few only, from texts with = between them."""
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or (names is not None and name not in names):
            raise InputError(f"{flag} takes {form}, got {text!r}")
        if name in values:
            raise InputError(f"{flag} {name} is given twice")
        values[name] = value
    return values


def given_fields(recipe: Recipe) -> dict[str, Any]:
    """The fields that are not as usual."""
    usual = {one.name: None if one.default is MISSING else one.default for one in fields(recipe)}
    values = {one.name: getattr(recipe, one.name) for one in fields(recipe)}
    return {name: value for name, value in values.items() if value != usual[name]}
