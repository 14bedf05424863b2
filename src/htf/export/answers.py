"""An answer as a file: the analyst's own columns, the question, and the numbers of the release.

| ending | boxes and zones | polygons |
| --- | --- | --- |
| .csv, .xlsx, .json | a table | a table |
| .parquet | a table | GeoParquet |
| .geojson, .gpkg, .fgb | a layer | a layer |
| .png, .svg, .pdf | of a series: a picture over its periods | the same |
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from htf.base.extras import need
from htf.base.figures import PICTURES
from htf.errors import InputError
from htf.export.provenance import provenance
from htf.export.tables import SHEET, need_openpyxl, write_table
from htf.export.vector import WRITERS, write_layer, write_rows
from htf.query.answer import Answer
from htf.query.columns import CHANGES, MEANS, PEOPLE
from htf.release.file import digests

TABLES = (".csv", ".xlsx", ".json", ".parquet")
LAYERS = tuple(ending for ending in WRITERS if ending != ".parquet")
LAYER_NAMES = {"box": "boxes", "zone": "zones", "polygon": "polygons"}


def check_ending(path: Path, *, of_series: bool = False) -> None:
    """Refuse a file whose format is unknown or cannot be written, before anything is counted."""
    known = (*TABLES, *LAYERS, *(PICTURES if of_series else ()))
    if path.suffix.lower() not in known:
        raise InputError(
            f"cannot tell the format of {path.name!r}: the name must end in one of {', '.join(known)}"
        )
    if path.suffix.lower() == SHEET:
        need_openpyxl()


def check_layer(path: Path, crs: Any, has_map: bool = True) -> None:
    """Refuse a layer that this map cannot have, before anything is counted."""
    suffix = path.suffix.lower()
    if suffix not in LAYERS:
        return
    if not has_map:
        raise InputError(
            f"a layer needs a map with axes x and y, but this one has none: write one of {', '.join(TABLES)}"
        )
    if suffix == ".geojson" and crs is None:
        raise InputError(
            "GeoJSON is in longitude and latitude by its standard, and there is no reference system to "
            "turn them from: write .gpkg or .csv"
        )
    need(f"Writing {suffix}", "geopandas", "pyogrio")


def about_answer(answer: Answer, plan: Sequence[str] = ()) -> dict[str, Any]:
    """The provenance of an answer. `plan` is what a series says of its budget."""
    last = answer.releases[-1]
    about = provenance(last, answer.rule)
    about |= {"quantity": answer.quantity, "counted": answer.counted}
    everyone = [*answer.releases, *(one for part in answer.parts for one in part.releases)]
    about["private"] = all(release.private for release in everyone)
    if plan:
        about["statement"] = f"{' '.join(plan)} The last release says: {last.statement}"
    others = {CHANGES: "compared_with", MEANS: "divided_by"}
    if answer.kind in others:
        other = answer.parts[1].releases[-1]
        about[others[answer.kind]] = {
            "release_digest": digests(other),
            "statement": other.statement,
        }
    return about


def write_answer(
    answer: Answer, path: Path, plan: Sequence[str] = (), *, overwrite: bool = False
) -> None:
    """Write an answer in the format of the file's ending."""
    suffix, about = path.suffix.lower(), about_answer(answer, plan)
    of_polygons = answer.asked is not None and answer.asked.what == "polygon"
    if suffix in PICTURES:
        from htf.series.plot import draw_periods

        draw_periods(answer, path, overwrite=overwrite)
    elif suffix in LAYERS or (of_polygons and suffix == ".parquet"):
        write_layer(answer.to_geopandas(), path, about, layer_name(answer), overwrite=overwrite)
    else:
        write_table(answer.to_arrow(), path, about, overwrite=overwrite)


def export_answer(
    answer: Answer, path: Path, plan: Sequence[str] = (), *, overwrite: bool = False
) -> None:
    """Write an answer as a layer. Formats without shapes, which need no GIS package, have its table."""
    about = about_answer(answer, plan)
    write_rows(answer.to_arrow, answer.to_geopandas, path, about, "zones", overwrite=overwrite)


def layer_name(answer: Answer) -> str:
    if answer.kind in (CHANGES, PEOPLE):
        return "changes" if answer.kind == CHANGES else "distinct"
    return "answers" if answer.asked is None else LAYER_NAMES[answer.asked.what]
