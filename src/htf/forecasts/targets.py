"""Targets of a forecast, such as `5 % in squares of 1 km`, and the questions that show whether they are reached.

| text | the error that it limits |
| --- | --- |
| `5 % in squares of 1 km` | the typical one in squares around records, relative to the true count |
| `20 records in squares of 500 m` | the same, in records |
| `5 % in squares of 1 % of the map`, `… of 8 cells` | for maps without a reference system |
| `5 % in trips between squares of 1 km` | the same where both ends are in such squares |
| `10 % in zones`, `10 % in zones of wards.gpkg` | the typical one in zones that hold a record, each zone counting once |
| `10 % by district`, `10 % by zone,dest_zone` | the same for a level of names; with several axes, in areas around records |

The typical error is the median, so half of the squares or zones are closer to the truth.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from htf.base.numerals import decimal
from htf.errors import InputError
from htf.forecasts.questions import ByNames, InZones, Kind, OfWorkload, ZonesAround
from htf.forecasts.simulation import Errors, Simulation
from htf.frame.areas import cell_metres, length_text
from htf.frame.domain import Domain
from htf.ingest.columns import DESTINATION
from htf.privacy.protection import RECORDS, SUM_OF, split_people

NUMBER = r"(?P<value>[0-9]+(?:[.,][0-9]+)?)"
KIND = r"(?P<kind>%|[^\W\d][\w -]*?)"
SIZE = r"(?P<size>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>km|m|metres?|meters?|cells?|%(?: of the map)?)"
SQUARES = rf"(?P<trips>trips between )?squares? of {SIZE}(?: around records)?"
TARGET = re.compile(
    rf"{NUMBER}\s*{KIND}\s*(?:\b(?:in|for|per) (?:(?P<zones>zones?)(?: of (?P<layer>.+))?|{SQUARES})|\bby (?P<by>\S.*))",
    re.IGNORECASE,
)
FORMS = (
    "'5 % in squares of 1 km', '20 records in squares of 500 m', '5 % in squares of 1 % of the map', "
    "'5 % in squares of 8 cells', '10 % in zones' or '10 % by district'"
)
METRES = {"km": 1000.0, "m": 1.0, "metre": 1.0, "meter": 1.0}
LARGEST_SHARE = 10.0  # of the true count: a larger error than 1000 % is no target


@dataclass(frozen=True, slots=True)
class Target:
    """An error that is not to be exceeded, and where."""

    limit: float  # a share of the true count, or a number of what is counted
    is_relative: bool
    size: float | None = None  # of squares
    unit: str = ""  # m, cells or %
    counted: str | None = None  # what the limit is a number of, if it is not relative
    trips: bool = False  # both ends of trips are in squares
    layer: Path | None = None  # of zones, if they are not those of the release
    by: str = ""  # names; neither these nor squares: zones

    @classmethod
    def read(cls, text: str) -> Target:
        """The target that a text on the command line names."""
        found = TARGET.fullmatch(" ".join(text.replace("\u00a0", " ").split()).rstrip("."))
        if found is None:
            raise InputError(f"a target is {FORMS}, got {text!r}")
        kind = found["kind"].lower()
        is_relative = kind in ("%", "per cent", "percent")
        limit = decimal(found["value"].replace(",", ".")) / (100 if is_relative else 1)
        if not 0 < limit <= (LARGEST_SHARE if is_relative else 1e12):
            raise InputError(f"the error of a target is above 0, and at most 1000 %, got {text!r}")
        counted = None if is_relative else _plural(kind)
        if found["size"] is None:
            layer = None if found["layer"] is None else Path(found["layer"])
            return cls(limit, is_relative, counted=counted, layer=layer, by=found["by"] or "")
        word = found["unit"].lower().rstrip("s")
        unit = "m" if word in METRES else "cells" if word == "cell" else "%"
        size = decimal(found["size"]) * METRES.get(word, 1)
        if not size > 0:
            raise InputError(f"squares have a size above 0, got {text!r}")
        return cls(limit, is_relative, size, unit, counted, trips=found["trips"] is not None)

    @property
    def place(self) -> str:
        """As sentences call it."""
        if self.size is None:
            return f"areas by {self.by}" if self.by else "zones"
        kinds = {"m": length_text(self.size), "%": f"{self.size:g} % of the map"}
        size = kinds.get(self.unit, f"{self.size:g} cell{'' if self.size == 1 else 's'}")
        return f"{'trips between ' if self.trips else ''}squares of {size}"

    def kind(self, plan: Simulation) -> Kind:
        """The questions that show whether it is reached."""
        domain = plan.prepared.domain
        if self.size is not None:
            words = "target", self.place, f"{self.place} around records"
            return OfWorkload.around(*words, self._sides(domain))
        if self.by:
            return ByNames.of(domain, self.by)
        if self.layer is not None:
            from htf.query.polygon_files import read_layer
            from htf.query.shapes import need_shapely, read_shapes

            shapes = read_shapes(read_layer(self.layer), domain)
            return InZones.of(tuple(need_shapely().to_wkb(shapes)), domain)
        if domain.outlined:
            return replace(ByNames.of(domain, domain.names[domain.outlined[0]]), place="zones")
        if plan.prepared.around is not None:
            return ZonesAround("zones", "zones", "zones", domain=plan.prepared.around)
        raise InputError(
            "a target in zones needs their layer: write 'in zones of FILE', or give the release zones (--zones)"
        )

    def _sides(self, domain: Domain) -> tuple[float | None, ...]:
        """How many cells wide squares are, along each axis. Other axes than those of the ground are whole."""
        if not domain.has_map or (self.trips and domain.names[2:4] != DESTINATION):
            what = "trips on a map" if self.trips else "a map of two axes"
            raise InputError(
                f"{self.place} are for {what}, and this release has {', '.join(domain.names)}: ask by one of these"
            )
        sides, size = domain.shape[:2], float(self.size or 0)
        if self.unit == "%":
            wide = tuple((size / 100) ** 0.5 * cells for cells in sides)
        elif self.unit == "cells":
            wide = (size, size)
        else:
            metres = cell_metres(domain)
            if metres is None:
                raise InputError(
                    "the map has no reference system, so metres are not known on it: give one in the recipe (crs), or squares "
                    "of so many cells"
                )
            wide = (size / metres[0], size / metres[1])
        if min(wide) < 0.999:
            raise InputError(
                f"{self.place} are smaller than the cells of this map{_size_of_cells(domain)}: ask about larger squares, "
                "or give more --cells"
            )
        if any(side > cells for side, cells in zip(wide, sides, strict=True)):
            raise InputError(f"{self.place} are larger than the map: ask about smaller squares")
        found = wide * 2 if self.trips else wide
        return (*found, *[None] * (domain.dimensions - len(found)))

    def check_counted(self, quantity: str) -> None:
        """Refuse a target in split people where records are counted, and the other way round."""
        if (self.counted or "").lower() not in ("", quantity.lower()):
            raise InputError(
                f"the target is in {self.counted}, but {quantity} are counted: give it in {quantity} or in %"
            )

    def told(self, quantity: str) -> str:
        limit = f"{100 * self.limit:g} %" if self.is_relative else f"{self.limit:g} {quantity}"
        return f"{limit} in {self.place}"

    def error(self, errors: Errors) -> float:
        return errors.relative if self.is_relative else errors.absolute


def _plural(kind: str) -> str:
    """What is counted, as in `20 records`, `20 people`, `20 person-days` or `20 passengers`, where these are a weight."""
    if kind in ("record", "records"):
        return RECORDS
    people, _, per = kind.removeprefix("split ").partition("-")
    if people in ("people", "person", "persons"):
        return split_people(per.rstrip("s") or None)
    return SUM_OF + kind


def _size_of_cells(domain: Domain) -> str:
    metres = cell_metres(domain)
    return "" if metres is None else f", {metres[0]:.3g} x {metres[1]:.3g} m"
