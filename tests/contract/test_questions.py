"""Every kind of question, asked of every kind of release and of series: `ask`, the short forms and the command agree."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pytest
import shapely

import htf
from htf import Axis, Domain, FrequencyMatrix, InputError, Names, Question, Release, Series
from htf.cli.main import run
from htf.query.answer import Answer
from zoning import OFFENCES, layer, zoned

SIDE, NUMBER = 16, 4000
BOUNDS = (4.0, 52.0, 4.6, 52.2)  # of the layer too
BOXES = [[4.0, 52.0, 4.3, 52.2], [4.1, 52.05, 4.55, 52.15]]
DRAW = np.random.default_rng(3)
PLACES = {
    "lon": DRAW.uniform(4, 4.6, NUMBER),
    "lat": DRAW.uniform(52, 52.2, NUMBER),
    "hour": DRAW.uniform(0, 24, NUMBER),
    "who": DRAW.integers(0, 500, NUMBER),
    "riders": DRAW.integers(1, 5, NUMBER),
}


def publish(*axes: Axis, seed: int = 1, **options: Any) -> Release:
    domain = Domain((*Domain.from_bounds(*BOUNDS, cells=SIDE).axes, *axes), "OGC:CRS84")
    columns = ["lon", "lat", *(["hour"] if axes else [])]
    matrix = htf.read_points(PLACES, domain, columns, **options)
    return htf.publish(matrix, 1, noise=f"seeded:{seed}")


def with_names(axis: Axis, *, seed: int = 1) -> Release:
    domain = Domain((*Domain.from_bounds(*BOUNDS, cells=4).axes, axis), "OGC:CRS84")
    counts = np.random.default_rng(4).poisson(40, domain.shape)
    matrix = FrequencyMatrix.from_dense(domain, counts)
    return htf.publish(matrix, 1, "hb", noise=f"seeded:{seed}")


def people_by_box() -> Release:
    domain = Domain.from_bounds(*BOUNDS, cells=SIDE)
    people = htf.read_people_by_box(PLACES, domain, 4, ["lon", "lat"], user="who")
    distinct = htf.measure_distinct(people, "0.5", noise="seeded:1")
    matrix = htf.read_points(PLACES, domain, ["lon", "lat"], user="who")
    return htf.publish(matrix, 2, bought=[distinct], noise="seeded:2")


def inside() -> Release:
    domain = Domain.from_bounds(*BOUNDS, cells=SIDE)
    of_map = htf.read_points(PLACES, domain, ["lon", "lat"])
    of_zones = htf.read_points(
        PLACES, Domain((Axis.named("zone", layer()),), "OGC:CRS84"), ["lon", "lat"]
    )
    zones = htf.publish(of_zones, "0.5", "zones", noise="seeded:1")
    return htf.inside_zones(htf.publish(of_map, "0.5", noise="seeded:2"), zones)


RELEASES: dict[str, Callable[[], Release]] = {
    "map": publish,
    "hours": lambda: publish(Axis("hour", 0, 24, 4)),
    "categories": lambda: with_names(Axis.named("offence", OFFENCES)),
    "trips": lambda: with_names(Axis("dest_x", 4, 4.6, 4)),
    "people": lambda: publish(user="who"),
    "kept records": lambda: publish(user="who", max_records=3),
    "different people": people_by_box,
    "weights": lambda: publish(weight="riders", max_weight=4),
    "zones": zoned,
    "hours of zones": lambda: zoned("hours"),
    "categories of zones": lambda: zoned("kinds"),
    "trips between zones": lambda: zoned("trips"),
    "a map inside zones": inside,
    "names": lambda: htf.publish(
        FrequencyMatrix.from_dense(
            Domain((Axis.named("kind", Names.of({"kind": ["tram", "bus"]})),)), [70, 30]
        ),
        1,
        "singular",
        noise="seeded:1",
    ),
}
made = cache(lambda name: RELEASES[name]())


@dataclass(frozen=True)
class Asked:
    """A kind of question: in Python, by a short form if there is one, and on the command line."""

    question: Callable[[], Question]
    options: list[str]
    short: Callable[[Release], Any] | None = None
    where: dict[str, Any] | None = None


def squares() -> geopandas.GeoDataFrame:
    shapes = [shapely.box(*box) for box in BOXES]
    return geopandas.GeoDataFrame({"name": ["west", "middle"]}, geometry=shapes, crs="OGC:CRS84")


BOX_OPTIONS = [part for box in BOXES for part in ("--box", ",".join(map(str, box)))]
HOURS = {"hour": (6, 12)}
QUESTIONS = {
    "boxes": Asked(lambda: Question.boxes(BOXES), BOX_OPTIONS, lambda r: r.count(BOXES)),
    "boxes of a file": Asked(
        lambda: Question.boxes("boxes.csv"), ["--boxes", "boxes.csv"], lambda r: r.count(BOXES)
    ),
    "boxes in hours": Asked(
        lambda: Question.boxes(BOXES, HOURS), [*BOX_OPTIONS, "--where", "hour=6:12"], lambda r: r.count(BOXES, HOURS)
    ),
    "boxes by hour": Asked(
        lambda: Question.boxes(BOXES, by=["hour"]), [*BOX_OPTIONS, "--by", "hour"],
        lambda r: r.count([[*b[:2], h, *b[2:], h + 6] for b in BOXES for h in (0, 6, 12, 18)]),
    ),
    "a category": Asked(
        lambda: Question.boxes(BOXES, {"offence": "Violent"}), [*BOX_OPTIONS, "--where", "offence=Violent"],
        lambda r: r.count(BOXES, {"offence": "Violent"}),
    ),
    "polygons": Asked(
        lambda: Question.polygons(squares(), labels=["west", "middle"]), ["--polygons", "squares.gpkg"],
        lambda r: r.count_polygons(squares()),
    ),
    "zones by name": Asked(
        lambda: Question.zones("District 2", "Tract 03"), ["--zone", "District 2", "--zone", "Tract 03"]
    ),
    "a level": Asked(
        lambda: Question.by("district"), ["--level", "district"], lambda r: r.table("district")
    ),
    "every zone": Asked(lambda: Question.by("zone"), ["--by", "zone"], lambda r: r.table("zone")),
    "hours": Asked(lambda: Question.by("hour"), ["--by", "hour"], lambda r: r.table("hour")),
    "groups": Asked(lambda: Question.by("group"), ["--by", "group"], lambda r: r.table("group")),
    "kinds": Asked(lambda: Question.by("kind"), ["--by", "kind"], lambda r: r.table("kind")),
    "different people": Asked(
        Question.different_people, ["--distinct"], lambda r: r.count_distinct()
    ),
}  # fmt: skip
MAPS = ["map", "hours", "categories", "trips", "people", "kept records", "different people", "weights", "a map inside zones"]  # fmt: skip
ZONES = ["zones", "hours of zones", "categories of zones", "trips between zones", "a map inside zones"]  # fmt: skip
FITTING = {
    **dict.fromkeys(("boxes", "boxes of a file", "polygons"), MAPS),
    **{name: ["hours"] for name in ("boxes in hours", "boxes by hour")},
    "a category": ["categories"],
    **dict.fromkeys(("zones by name", "a level", "every zone"), ZONES),
    "hours": ["hours", "hours of zones"],
    "groups": ["categories", "categories of zones"],
    "kinds": ["names"],
    "different people": ["different people"],
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(",".join(map(str, box)) + "\n" for box in BOXES)
    Path("boxes.csv").write_text(f"west,south,east,north\n{rows}")
    squares().to_file("squares.gpkg")


def same(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> bool:
    """Whether rows agree in the columns that both have, and have all numbers."""
    names = set(one[0]) & set(other[0])
    assert {"low", "high"} <= names
    assert len(one) == len(other)
    return all(
        mine[name] == pytest.approx(theirs[name], rel=1e-9, nan_ok=True)
        for mine, theirs in zip(one, other, strict=True)
        for name in names
        if isinstance(mine[name], float)
    )


@pytest.mark.parametrize("kind", RELEASES)
def test_a_release_answers_what_fits_it_and_refuses_the_rest(
    kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    release = made(kind)
    release.save("release.parquet")
    answered = set()
    for name, asked in QUESTIONS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                answer = release.ask(asked.question())
            except InputError as error:
                says = str(error).split(":")[0]
                answer = None
            except UserWarning:  # four numbers may also be the cells of two axes
                assert release.domain.dimensions == 2
                assert not release.domain.has_map
                continue
        if answer is None:
            assert run(["query", "release.parquet", *asked.options, "--json"]) == 2, name
            assert says in capfd.readouterr().err
            continue
        answered.add(name)
        assert answer.releases[0].counted == release.counted
        told = answer.to_arrow().to_pylist()
        if asked.short is not None:
            short = asked.short(release)
            assert same(
                told, (short.to_arrow() if isinstance(short, Answer) else short).to_pylist()
            )
        assert run(["query", "release.parquet", *asked.options, "--json"]) == 0, name
        assert json.loads(capfd.readouterr().out) == told, name
        assert run(["query", "release.parquet", *asked.options]) == 0, name
        capfd.readouterr()
    assert answered == {name for name, kinds in FITTING.items() if kind in kinds}


@pytest.mark.parametrize("kind", [name for name in RELEASES if name != "different people"])
def test_answers_can_be_subtracted(kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    """From themselves, where nothing changed; of releases with other noise, by the command too."""
    release = made(kind)
    release.save("one.parquet")
    release.save("other.parquet")
    for name in (name for name, kinds in FITTING.items() if kind in kinds):
        question = QUESTIONS[name].question()
        changes = release.ask(question).minus(release.ask(question))
        assert not changes.change.any()
        assert not changes.beyond_noise.any()
        assert np.all((changes.low < 0) & (changes.high > 0))
        files = ["compare", "one.parquet", "other.parquet"]
        assert run([*files, *QUESTIONS[name].options, "--json"]) == 0
        assert json.loads(capfd.readouterr().out) == changes.to_arrow().to_pylist()


def test_different_people_are_neither_subtracted_nor_divided() -> None:
    table = made("different people").count_distinct()
    with pytest.raises(InputError, match="only counts can be subtracted"):
        table.minus(table)
    with pytest.raises(InputError, match="a mean is made of two counts"):
        table.per(table)


@pytest.mark.parametrize("name", ["boxes", "polygons", "a level", "every zone"])
def test_sums_are_divided_by_counts(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Of a map, and of zones."""
    axes = (Axis.named("zone", layer()),) if name in ("a level", "every zone") else ()
    domain = Domain(axes) if axes else Domain.from_bounds(*BOUNDS, cells=SIDE)
    weighed = htf.read_points(PLACES, domain, ["lon", "lat"], weight="riders", max_weight=4)
    records = htf.read_points(PLACES, domain, ["lon", "lat"])
    sums = htf.publish(weighed, 1, "hb", noise="seeded:1")
    counts = htf.publish(records, 1, "hb", noise="seeded:2")
    asked = QUESTIONS[name]
    means = sums.ask(asked.question()).per(counts.ask(asked.question()))
    assert means.counted == "mean of riders, at most 4 per record"
    assert np.all((means.low < 2.7) & (means.high > 2.3))  # about 2.5 everywhere
    sums.save("sums.parquet")
    counts.save("counts.parquet")
    assert run(["query", "sums.parquet", "--per", "counts.parquet", *asked.options, "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == means.to_arrow().to_pylist()


@pytest.mark.parametrize("name", ["boxes", "boxes of a file", "polygons", "zones by name", "a level"])  # fmt: skip
def test_a_series_answers_like_its_releases(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    zones = name in ("zones by name", "a level")
    domain = Domain((Axis.named("zone", layer()),), "OGC:CRS84") if zones else publish().domain
    series = Series.create("s", htf.Recipe(domain=domain, epsilon=4), "month", releases=4)
    for month, times in (("2026-01", 1), ("2026-02", 3), ("2026-03", 3)):
        points = {key: np.tile(PLACES[key], times) for key in ("lon", "lat")}
        series.add(htf.read_points(points, domain, ["lon", "lat"]), month, noise="fast")
    asked = QUESTIONS[name]
    answer, again = series.ask(asked.question()), asked.question()
    per_period = [series.release(period).ask(again) for period in series.periods]
    assert answer.count.tolist() == [n for one in per_period for n in one.count.tolist()]
    assert [*dict.fromkeys(answer.periods["period"])] == series.periods
    changes = answer.changes()
    assert changes.change[: len(per_period[0])].tolist() == [
        *(per_period[1].count - per_period[0].count)
    ]
    assert changes.beyond_noise[: len(per_period[0])].all()
    assert len(answer.to_geopandas()) == len(answer)
    for options, expected in (([], answer), (["--change"], changes)):
        assert run(["query", "s", *asked.options, *options, "--json"]) == 0
        assert json.loads(capfd.readouterr().out) == expected.to_arrow().to_pylist()
        assert run(["query", "s", *asked.options, *options]) == 0
        assert run(["query", "s", *asked.options, *options, "-o", "p.png", "--overwrite"]) == 0
        capfd.readouterr()
    with pytest.raises(InputError, match="of a series and the other of a release"):
        answer.minus(series.release("2026-01").ask(again))
