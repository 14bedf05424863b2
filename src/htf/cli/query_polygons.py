"""The part of `htf query` for --polygons: counts of the polygons in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from htf.cli.query_means import load_counts, means_rule, show_means
from htf.cli.screen import progress_bar, say, say_json, show_answers, warn_if_not_private
from htf.cli.types import FileName
from htf.errors import InputError, MissingExtraError
from htf.files import check_output, is_file, is_folder
from htf.query.columns import Answers, describe_columns, label_answers
from htf.query.texts import read_where

if TYPE_CHECKING:
    import geopandas
    import pyarrow as pa

    from htf.frame.domain import FloatArray
    from htf.query.ratios import Ratios
    from htf.query.where import Where
    from htf.release.release import Release

PARQUET = (".parquet", ".geoparquet")
LABEL = "label"
PLAIN = (".csv", ".xlsx", ".json")  # without the outlines
FORMATS = "GeoJSON, GeoParquet, GeoPackage, FlatGeobuf and shapefiles (also zipped)"
MOST_NAMED = 5
RULE = (
    "One row per polygon of the file {file}, with its own columns and what the release answers for it. "
    "{columns}"
)

polygons_option = click.option(
    "--polygons",
    "polygons_file",
    type=FileName(),
    help=f"File of polygons: {FORMATS}.",
)
by_option = click.option(
    "--by",
    multiple=True,
    metavar="NAME",
    help="A row for each step or name of an axis, or for each name of a level, e.g. hour or district. Can be repeated. With --polygons: the column that "
    "names them.  [default there: the only column of text]",
)


def query_polygons(
    release_file: Path,
    polygons_file: Path,
    by: tuple[str, ...],
    per: Path | None,
    where: tuple[str, ...],
    as_json: bool,
    output: Path | None,
    overwrite: bool,
) -> None:
    """Count the polygons in a file and show, print or write one answer per polygon."""
    from htf.export.answers import check_layer, to_json
    from htf.export.provenance import provenance
    from htf.release.release import Release

    if output is not None:
        inputs = (release_file, polygons_file, *(() if per is None else (per,)))
        check_layer_output(output, inputs, overwrite)
    if len(by) > 1:
        raise InputError(f"polygons are named by one column, got --by {' --by '.join(by)}")
    ranges = read_where(where)
    release = Release.load(release_file)
    counts = None if per is None else load_counts(per, release)
    with progress_bar() as bar:
        task = bar.add_task(f"reading {polygons_file.name}", total=None)
        frame = read_layer(polygons_file)
        named = label_column(frame, by[0] if by else None, polygons_file)
        labels = labels_of(frame, named)
        if output is not None:
            check_layer(output, frame.crs)
        bar.update(task, description=f"counting {len(frame):,} polygons")
        answers, rule = _answer(release, counts, frame, ranges, polygons_file.name)
    report_odd(release, frame, labels, answers.inside)
    table = _as_table(frame, named, labels, answers)
    if as_json:
        say_json(to_json(table))
    elif output is None:
        _show(labels, answers)
    if output is not None:
        write_layer(provenance(release, rule), frame, table, output, overwrite)
        say(f"Wrote {output}: {len(frame):,} answers.", err=True)
    if isinstance(answers, Answers):
        _hint_at_zones(release, answers)
    for one in (release, counts):
        if one is not None:
            warn_if_not_private(one)


def _answer(
    release: Release,
    counts: Release | None,
    frame: geopandas.GeoDataFrame,
    ranges: Where,
    file: str,
) -> tuple[Answers | Ratios, str]:
    """The answers for polygons, or their means where there are counts to divide by, and how they were computed."""
    from htf.export.provenance import told_where
    from htf.query.polygons import count_polygons
    from htf.query.ratios import divide, mean_of

    asked = [release] if counts is None else [release, counts]
    found = [
        count_polygons(one.domain, one.derived.answering_index, frame.geometry, where=ranges)
        for one in asked
    ]
    if counts is None:
        rule = RULE.format(file=file, columns=describe_columns(release.quantity))
        return label_answers(found[0], release), rule + told_where(ranges)
    means = divide(found[0], found[1], mean_of(release.protection))
    rows = f"One row per polygon of the file {file}, with its own columns"
    return means, means_rule(rows, means, counts) + told_where(ranges)


def _show(labels: list[str], answers: Answers | Ratios) -> None:
    if isinstance(answers, Answers):
        show_answers(["polygon"], [labels], answers)
    else:
        show_means(["polygon"], [labels], answers)


def _hint_at_zones(release: Release, answers: Answers) -> None:
    from htf.query.zone_hint import zone_hint

    hint = zone_hint(release, answers)
    if hint is not None:
        say(hint, err=True)


def check_layer_output(output: Path, inputs: tuple[Path, ...], overwrite: bool) -> None:
    from htf.export.answers import check_ending
    from htf.export.vector import check_layer_name

    check_ending(output)
    if output.suffix.lower() in PLAIN:
        check_output(output, overwrite=overwrite, inputs=inputs)
    else:
        check_layer_name(output, overwrite=overwrite, inputs=inputs)


def read_layer(path: Path) -> geopandas.GeoDataFrame:
    try:
        import geopandas
        import pyogrio
    except ImportError as error:
        raise MissingExtraError(str(error.name), "geo", "Reading polygons") from None
    import pyarrow as pa

    unreadable = pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError
    if is_folder(path):
        raise InputError(
            f"{path} is a folder: name the file in it, such as the .shp of a shapefile"
        )
    if not is_file(path):
        raise InputError(f"there is no file {path}")
    try:
        if path.suffix.lower() in PARQUET:
            frame = geopandas.read_parquet(path)
        else:
            frame = geopandas.read_file(path, layer=_only_layer(path))
    except (*unreadable, ValueError, pa.ArrowException, OSError) as error:
        # GDAL adds advice about its own tools.
        reason = str(error).partition("\n")[0].partition("; It might help")[0]
        raise InputError(
            f"cannot read polygons from {path}: {reason.rstrip('.')}. The formats are {FORMATS}"
        ) from None
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise InputError(f"{path} has two columns {str(twice[0])!r}: rename one of them")
    return frame


def _only_layer(path: Path) -> str:
    """The only layer with geometry. A GeoPackage from QGIS, for one, may hold tables of styles too."""
    import pyogrio

    layers = [str(name) for name, kind in pyogrio.list_layers(path) if kind is not None]
    if not layers:
        raise InputError(f"{path} has no geometry, but polygons are needed")
    if len(layers) > 1:
        raise InputError(
            f"{path} has several layers ({', '.join(layers)}): save the one to count as a separate file"
        )
    return layers[0]


def label_column(frame: geopandas.GeoDataFrame, by: str | None, path: Path) -> str | None:
    """The column that names the polygons. By default it is the only column of text."""
    columns = [str(name) for name in frame.columns if name != frame.geometry.name]
    if by is None:
        texts = [name for name in columns if _is_text(frame[name])]
        return texts[0] if len(texts) == 1 else None
    if by not in columns:
        names = ", ".join(map(repr, columns)) or "none"
        raise InputError(f"{path} has no column {by!r}; its columns are {names}")
    return by


def labels_of(frame: geopandas.GeoDataFrame, by: str | None) -> list[str]:
    """The values of that column, or row numbers counted from 0."""
    if by is None:
        return [str(number) for number in range(len(frame))]
    pairs = zip(frame[by].tolist(), frame[by].isna(), strict=True)
    return ["" if missing else str(value) for value, missing in pairs]


def _is_text(column: Any) -> bool:
    values = column.dropna()
    return len(values) > 0 and all(isinstance(value, str) for value in values)


def report_odd(
    release: Release, frame: geopandas.GeoDataFrame, labels: list[str], inside: FloatArray
) -> None:
    """Say what may be a mistake: an answer of 0 looks like any other."""
    import numpy as np
    import shapely

    shapes = frame.geometry
    missing = (shapes.isna() | shapes.is_empty).to_numpy()
    crossed = ~(shapes.is_valid.to_numpy() | missing)
    outside = (inside == 0) & (shapely.area(shapes.to_numpy()) > 0) & inside.any()
    for what, rows in (
        ("Repaired, because their outlines cross themselves", crossed),
        ("Counted as 0, because they have no outline", missing),
        ("Counted as 0, because they lie off the map", outside),
    ):
        if rows.any():
            numbers = np.flatnonzero(rows)
            names = ", ".join(labels[row] or f"row {row}" for row in numbers[:MOST_NAMED])
            more = ", …" if len(numbers) > MOST_NAMED else ""
            say(f"{what}: {len(numbers):,} of {len(frame):,} polygons ({names}{more}).", err=True)
    if not missing.all() and not inside.any():
        reason = (
            "their file names no reference system, so the map's was assumed"
            if shapes.crs is None
            else f"their file says that they are in {shapes.crs.name}"
        )
        say(f"No polygon lies on the map ({release.domain.crs}); {reason}.", err=True)


def _as_table(
    frame: geopandas.GeoDataFrame, by: str | None, labels: list[str], answers: Answers | Ratios
) -> pa.Table:
    """Labels, all columns of the layer, and the answers. If the labels come from a column `label`, it is
    not repeated."""
    from htf.query.frames import attributes, join_columns

    given = {n: column for n, column in attributes(frame).items() if n != by or n != LABEL}
    return join_columns({LABEL: labels}, given, answers.to_labelled_columns())


def write_layer(
    about: dict[str, Any],
    frame: geopandas.GeoDataFrame,
    table: pa.Table,
    output: Path,
    overwrite: bool,
) -> None:
    from htf.export.answers import write_shapes, write_table

    if output.suffix.lower() in PLAIN:
        write_table(table, output, about, overwrite=overwrite)
    else:
        shapes = frame.geometry.to_numpy()
        write_shapes(table, shapes, frame.crs, output, about, "polygons", overwrite=overwrite)
