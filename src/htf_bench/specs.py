"""Mechanisms as the command line names them: `kdtree:budget=uniform:height=12`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from htf.errors import InputError
from htf.frame.domain import Domain
from htf.mechanisms import make_mechanism, registry
from htf.mechanisms.base import Mechanism
from htf_bench.traditional import TRADITIONAL, Traditional

ZERO = "zero"  # the floor that answers nothing everywhere; of the bench, not a mechanism
UNIFORM = "uniform"  # the other floor: one noisy total
ALL = "all"
HEIGHT = "height"
# Heights at which a tree enters where the user must choose one. A quadtree's level halves two axes.
HEIGHTS = {"quadtree": range(4, 11), "kdtree": range(8, 19, 2)}
OTHER_HEIGHTS = range(4, 17, 2)
HALVINGS_PER_LEVEL = {"quadtree": 2}


@dataclass(frozen=True)
class BenchSpec:
    """What is tried: a mechanism, a floor, or what statistical offices did, and the settings that differ from the defaults."""

    mechanism: str
    settings: tuple[tuple[str, str], ...] = ()
    of_ladder: bool = field(default=False, compare=False)  # the best of several heights counts

    @classmethod
    def of(cls, mechanism: str, settings: Mapping[str, Any] | None = None) -> Self:
        """Checks the settings; two ways to say the same give the same."""
        if mechanism == ZERO:
            return cls(ZERO)
        given = {name: as_text(value) for name, value in (settings or {}).items()}
        if mechanism in TRADITIONAL:
            kind = TRADITIONAL[mechanism]
            made, usual = kind.read(given).parameters(), kind().parameters()
        else:
            making = make_mechanism(mechanism, **given)
            made = making.parameters()
            usual = {one["name"]: one["default"] for one in making.describe()["parameters"]}
        differing = [name for name in made if name in given and made[name] != usual[name]]
        return cls(mechanism, tuple((name, as_text(made[name])) for name in differing))

    def make(self) -> Mechanism:
        return make_mechanism(self.mechanism, **dict(self.settings))

    @property
    def label(self) -> str:
        return ":".join([self.mechanism, *(f"{name}={value}" for name, value in self.settings)])

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Every parameter; of a floor or an office's method, too."""
        if self.mechanism == ZERO:
            return {}
        return (traditional(self) or self.make()).parameters()

    @property
    def parameters_text(self) -> str:
        return json.dumps(self.parameters)

    @property
    def height(self) -> int | None:
        found = self.parameters.get(HEIGHT)
        return found if isinstance(found, int) else None

    @property
    def family(self) -> str:
        """The label without the height."""
        kept = [f"{name}={value}" for name, value in self.settings if name != HEIGHT]
        return ":".join([self.mechanism, *kept])


def as_text(value: Any) -> str:
    """As a setting is typed."""
    return "none" if value is None else str(value)


def read_specs(text: str, domain: Domain) -> list[BenchSpec]:
    """A list with commas; `all` stands for every mechanism there is."""
    found: list[BenchSpec] = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        found += all_specs(domain) if word == ALL else [read_spec(word)]
    if not found:
        raise InputError(f"--mechanisms takes names with commas, or {ALL}, got {text!r}")
    return with_floors(found)


def read_spec(text: str) -> BenchSpec:
    name, *settings = text.split(":")
    given: dict[str, str] = {}
    for setting in settings:
        parameter, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"a mechanism is NAME:PARAMETER=VALUE:…, got {text!r}")
        given[parameter] = value
    return BenchSpec.of(name, given)


def all_specs(domain: Domain) -> list[BenchSpec]:
    """Every mechanism with its defaults; trees without a height of their own, at several."""
    found: list[BenchSpec] = []
    for name in registry():
        found += height_ladder(name, {}, domain) if needs_a_height(name) else [BenchSpec.of(name)]
    return found


def height_ladder(
    name: str, settings: Mapping[str, Any], domain: Domain, heights: Sequence[int] | None = None
) -> list[BenchSpec]:
    """One mechanism at each height that the grid can use."""
    wanted = HEIGHTS.get(name, OTHER_HEIGHTS) if heights is None else heights
    deepest = deepest_height(domain) // HALVINGS_PER_LEVEL.get(name, 1)
    usable = [height for height in wanted if height <= deepest] or [deepest]
    specs = [BenchSpec.of(name, {**settings, HEIGHT: height}) for height in usable]
    return [replace(spec, of_ladder=True) for spec in specs]


def deepest_height(domain: Domain) -> int:
    """Halvings after which every node is one cell."""
    return sum((cells - 1).bit_length() for cells in domain.shape)


def needs_a_height(name: str) -> bool:
    """Whether the height is the user's to choose: known trees, and where it is a number by default."""
    parameters = registry()[name].describe()["parameters"]
    heights = [p for p in parameters if p["name"] == HEIGHT]
    return any(name in HEIGHTS or isinstance(p["default"], int) for p in heights)


def with_floors(specs: Sequence[BenchSpec]) -> list[BenchSpec]:
    """The two floors first, then the others, each once."""
    floors = [BenchSpec(ZERO), BenchSpec.of(UNIFORM)]
    return list(dict.fromkeys([*floors, *specs]))


def traditional(spec: BenchSpec) -> Traditional | None:
    """The method of statistical offices that a spec names, or None."""
    kind = TRADITIONAL.get(spec.mechanism)
    return None if kind is None else kind.read(dict(spec.settings))


def label_of(mechanism: str, parameters: str) -> str:
    """The short label of what a table of results calls by all its parameters."""
    if mechanism not in registry() and mechanism not in TRADITIONAL:
        return mechanism
    chosen: dict[str, Any] = json.loads(parameters)
    return BenchSpec.of(mechanism, chosen).label
