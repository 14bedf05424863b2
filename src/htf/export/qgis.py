"""A style for QGIS, which a GeoPackage carries in its table `layer_styles`: the layer opens in the colours of our maps.

Places whose 95 % interval includes zero are blank, as on every map of HTF. Changes have colours only where they are more
than noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from htf.errors import InputError
from htf.frame.domain import FloatArray
from htf.maps.scale import difference_limits

if TYPE_CHECKING:
    import pandas
    from geopandas import GeoDataFrame

STYLES = "layer_styles"  # the name that QGIS looks for
POLYGONS = {"Polygon", "MultiPolygon"}
# Of matplotlib's magma, reversed, from 0.03 to 0.93, and PuOr, reversed: those of `htf map`.
COLOURS = ("#fcf0b2", "#fea973", "#f2625d", "#bf3a77", "#802582", "#440f76", "#0b0924")
LESS, MORE = ("#4c1f7b", "#988dbe", "#dddfed"), ("#fde4c0", "#ee9b39", "#a85206")
BLANK, LINE = "#e9edf2", "#8a94a0"
# The first of these columns that a layer has is coloured.
SHOWN = ("density", "count", "different_people", "mean")
CHANGE, MARK = "change", "beyond_noise"
WIDTH = 0.05  # millimetres


class Rule(NamedTuple):
    """Which features have a colour, and what the legend says of it."""

    test: str
    label: str
    colour: str


NOISE = Rule("ELSE", "no more than noise", BLANK)


def style_table(layer: GeoDataFrame, name: str, geometry: str) -> pandas.DataFrame | None:
    """The row of `layer_styles` for a layer of polygons with counts; None for other layers."""
    import pandas

    rules = _rules(layer)
    if not rules or not set(layer.geom_type.dropna()) <= POLYGONS:
        return None
    row: dict[str, Any] = {
        "f_table_catalog": "",
        "f_table_schema": "",
        "f_table_name": name,
        "f_geometry_column": geometry,
        "styleName": "HTF",
        "styleQML": _qml(rules),
        "styleSLD": "",
        "useAsDefault": True,
        "description": "Colours of HTF. Blank: no more than noise.",
        "owner": "",
        # QGIS asks for the newest; the same release gives the same file.
        "update_time": pandas.Timestamp(0),
    }
    return pandas.DataFrame([row])


def _rules(layer: GeoDataFrame) -> list[Rule]:
    columns = set(map(str, layer.columns))
    if {CHANGE, MARK} <= columns:
        return _changing(layer)
    shown = next((name for name in SHOWN if name in columns), None)
    return _growing(layer, shown) if shown is not None and "low" in columns else []


def _growing(layer: GeoDataFrame, column: str) -> list[Rule]:
    """Classes that grow by about the same factor, up to the largest value that is more than noise."""
    values = _numbers(layer, column)
    ends = _classes(values[(_numbers(layer, "low") > 0) & (values > 0)])
    ranges = _ranges(f'"low" > 0 AND "{column}" > 0', f'"{column}"', ends)
    return [*(Rule(*one, colour) for one, colour in zip(ranges, COLOURS, strict=True)), NOISE]


def _changing(layer: GeoDataFrame) -> list[Rule]:
    """Three classes of falls, three of rises."""
    change, marked = _numbers(layer, CHANGE), layer[MARK].to_numpy(dtype=bool)
    _, most = difference_limits(change[np.isfinite(change)], marked[np.isfinite(change)])
    ends = (most / 10, most / 2)
    falls = [*_ranges(f'"{MARK}" AND -"{CHANGE}" > 0', f'-"{CHANGE}"', ends, "− ")]
    rises = _ranges(f'"{MARK}" AND "{CHANGE}" > 0', f'"{CHANGE}"', ends, "+ ")
    coloured = [*zip(falls[::-1], LESS, strict=True), *zip(rises, MORE, strict=True)]
    return [*(Rule(*one, colour) for one, colour in coloured), NOISE]


def _ranges(
    visible: str, size: str, ends: Sequence[float], sign: str = ""
) -> Iterator[tuple[str, str]]:
    """A test and a label for each range: below all ends, between two, and above all."""
    first, last = ends[0], ends[-1]
    yield f"{visible} AND {size} < {first!r}", f"{sign}below {first:,g}"
    for low, high in pairwise(ends):
        test = f"{visible} AND {size} >= {low!r} AND {size} < {high!r}"
        yield test, f"{sign}{low:,g} to {high:,g}"
    yield f"{visible} AND {size} >= {last!r}", f"{sign}{last:,g} and more"


def _classes(visible: FloatArray) -> list[float]:
    """The ends of all classes but the last, rounded to two digits."""
    if visible.size == 0:
        return [float(10**power) for power in range(len(COLOURS) - 1)]
    least, most = (float(one) for one in np.percentile(visible, [1.0, 99.7]))
    least = min(least, most / 10)
    steps = np.geomspace(least, most, len(COLOURS) + 1)[1:-1]
    return [float(f"{one:.2g}") for one in steps.tolist()]


def _numbers(layer: GeoDataFrame, column: str) -> FloatArray:
    try:
        return np.asarray(layer[column].to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        raise InputError(f"the column {column!r} of the layer must be numbers") from None


def _qml(rules: Sequence[Rule]) -> str:
    """A style with a rule for each colour."""
    from xml.sax.saxutils import quoteattr  # slow to load

    keys = "".join(
        f'<rule key="{{rule-{place}}}" filter={quoteattr(rule.test)} label={quoteattr(rule.label)} symbol="{place}"/>'
        for place, rule in enumerate(rules)
    )
    symbols = "".join(_symbol(str(place), rule.colour) for place, rule in enumerate(rules))
    return (
        "<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>"
        '<qgis styleCategories="Symbology"><renderer-v2 type="RuleRenderer" symbollevels="0">'
        f'<rules key="{{rules}}">{keys}</rules><symbols>{symbols}</symbols></renderer-v2></qgis>'
    )


def _symbol(name: str, colour: str) -> str:
    options = {
        "color": _rgba(colour),
        "outline_color": _rgba(LINE),
        "outline_style": "solid",
        "outline_width": str(WIDTH),
        "outline_width_unit": "MM",
        "style": "solid",
    }
    told = "".join(
        f'<Option name="{key}" value="{value}" type="QString"/>' for key, value in options.items()
    )
    return (
        f'<symbol name="{name}" type="fill" alpha="1"><layer class="SimpleFill" enabled="1" locked="0" pass="0">'
        f'<Option type="Map">{told}</Option></layer></symbol>'
    )


def _rgba(colour: str) -> str:
    return ",".join(str(int(colour[place : place + 2], 16)) for place in (1, 3, 5)) + ",255"
