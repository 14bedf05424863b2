"""`htf forecast` as a curator meets it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htf import Release
from htf.cli.forecast_shown import CITY_OFF
from htf.cli.main import run
from htf.publication import DEFAULT_MECHANISM

BOUNDS = "-74.3,40.4,-73.6,41.0"
SMALL = ("--points-about", "20000", "--cells", "64", "--runs", "2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("forecast")
    generator = np.random.default_rng(1)
    lon, lat = generator.normal(-74, 0.05, 30_000), generator.normal(40.7, 0.05, 30_000)
    pq.write_table(pa.table({"lon": lon, "lat": lat}), place / "points.parquet")
    for name, noise in (("past", "fast"), ("seeded", "seeded:42")):
        words = ["release", place / "points.parquet", "--bounds", BOUNDS, "--cells", 64]
        words += ["--epsilon", 1, "--noise", noise, "-o", place / f"{name}.parquet"]
        assert run(list(map(str, words))) == 0
    person = generator.zipf(1.5, 30_000) % 3000
    pq.write_table(pa.table({"lon": lon, "lat": lat, "who": person}), place / "visits.parquet")
    kinds = {
        "people": [],
        "scaled": ["--max-records", "auto"],
        "kept": ["--max-records", "20", "--spend", "activity=0"],
    }
    for name, kind in kinds.items():
        words = ["release", place / "visits.parquet", "--user", "who", "--bounds", BOUNDS]
        words += ["--cells", 64, "--epsilon", 1, "--noise", "fast", *kind]
        assert run(list(map(str, [*words, "-o", place / f"{name}.parquet"]))) == 0
    return place


def ask(capsys: pytest.CaptureFixture[str], *words: Any) -> tuple[str, str]:
    capsys.readouterr()
    code = run(["forecast", "--epsilon", "0.5", *map(str, words)])
    told = capsys.readouterr()
    assert code == 0, told.err
    return " ".join(told.out.split()), " ".join(told.err.split())


def test_the_made_up_city(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = ask(capsys, *SMALL)
    assert err == ""
    assert f"What to expect of {DEFAULT_MECHANISM} at epsilon 0.5 on 64 x 64 cells" in out
    assert "the made-up city" in out
    assert "spent no budget" in out
    assert "depends on the real data" in out
    for area in ("0.01 % squares at records", "10 % squares anywhere", "any rectangle"):
        assert area in out
    assert "Squares of 1 % of the map around records (2.8 x 2.8 km): off by about" in out
    assert "epsilon 0.25 epsilon 0.5 epsilon 1" in out
    assert "Epsilon 1 makes typical errors about" in out


def test_json_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(ask(capsys, *SMALL, "--mechanism", "htf", "--json")[0])
    assert told["simulation"] is True
    assert told["budget_spent"] == 0
    assert told["stand_in"]["kind"] == "city"
    assert told["stand_in"]["records"] == pytest.approx(20_000, rel=0.05)
    assert (told["mechanism"], told["grid"], told["runs"]) == ("htf", [64, 64], 2)
    assert [o["epsilon"] for o in told["outlooks"]] == ["0.25", "0.5", "1"]
    assert told["outlooks"][1]["error_compared"] == 1
    areas = {area["workload"]: area for area in told["outlooks"][1]["areas"]}
    assert list(areas) == [
        "data-0.01%", "data-0.1%", "data-1%", "data-5%", "2%", "6%", "10%", "random",
    ]  # fmt: skip
    assert areas["data-5%"]["typical_count"] > areas["data-1%"]["typical_count"] > 0
    for area in areas.values():
        assert area["median_error"]["mean"] < area["error_exceeded_by_5_percent"]["mean"]
        assert area["median_error"]["deviation_over_runs"] >= 0
    assert len(told["summary"]) == len(areas)


def test_like_an_earlier_release(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = ask(capsys, "--like", folder / "past.parquet", "--runs", 1)
    assert err == ""
    assert "Simulated once on the release past.parquet" in out
    assert "on 64 x 64 cells" in out
    assert "records were scattered at random" in out
    words = ("--like", folder / "past.parquet", "--runs", 1, "--json")
    own = json.loads(ask(capsys, *words)[0])
    total = Release.load(folder / "past.parquet").estimates.sum()
    assert own["stand_in"]["records"] == pytest.approx(total, rel=0.02)
    scaled = json.loads(ask(capsys, *words, "--points-about", 5000, "--cells", "32,16")[0])
    assert scaled["stand_in"]["records"] == pytest.approx(5000, rel=0.05)
    assert scaled["grid"] == [32, 16]


def test_a_release_that_is_not_private_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "NOT PRIVATE" in ask(capsys, "--like", folder / "seeded.parquet", "--runs", 1)[1]


def test_like_public_points(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--like", folder / "points.parquet", "--bounds", BOUNDS, "--cells", 64, "--runs", 1)
    out, err = ask(capsys, *words)
    warning = "points.parquet must be public and must NOT be the data that you will release"
    assert warning in err
    assert warning in out
    assert "30,000 records" in out
    told = json.loads(ask(capsys, *words, "--points-about", 7000, "--json")[0])
    assert told["stand_in"] == {"kind": "points", "name": "points.parquet", "records": 7000}
    assert warning in told["notes"][0]


PEOPLE = ("--cells", "64", "--runs", "2", "--people", "3000")
EACH = ("--records-per-person", "0.5:5,0.9:40,1:500")


def test_people_in_the_made_up_city(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = ask(capsys, *PEOPLE, *EACH, "--runs", 1)
    assert "3,000 different people with about" in out
    assert "Counted: split people. Errors are those against all split people." in out
    assert "there is no bias" in out
    assert "typical error, in split people" in out
    assert "It was assumed" not in out
    out, _ = ask(capsys, *PEOPLE, "--runs", 1)
    assert "It was assumed that half of them have up to 5 records" in out
    recipe = tmp_path / "days.toml"
    recipe.write_text('user = "who"\nper = "day"\ntime = "t"\n')
    out, _ = ask(capsys, recipe, *PEOPLE, "--runs", 1)
    assert "3,000 different person-days with about" in out
    assert "Counted: split person-days." in out


def test_records_of_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = ask(capsys, *PEOPLE, *EACH, "--max-records", 20, "--runs", 1)
    assert "Counted: records, at most 20 per person, scaled." in out
    assert "Where the error comes from" in out
    recipe = tmp_path / "kept.toml"
    recipe.write_text('user = "who"\nmax_records = 20\nspend = ["activity=0"]\n')
    told = json.loads(ask(capsys, recipe, *PEOPLE, *EACH, "--json")[0])
    assert told["counted"] == "records, at most 20 per person"
    assert told["stand_in"]["people"] == 3000
    assert told["outlooks"][1]["max_records"] == [20, 20]
    for area in told["outlooks"][1]["areas"]:
        assert area["median_bias"]["mean"] >= 0
        assert area["median_noise"]["mean"] >= 0
    told = json.loads(
        ask(capsys, *PEOPLE, *EACH, "--max-records", "auto", "--runs", 1, "--json")[0]
    )
    assert told["counted"].endswith("per person, scaled")


@pytest.mark.slow
def test_like_a_release_of_people(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = ask(capsys, "--like", folder / "people.parquet", "--runs", 1)
    assert "Counted: split people." in out
    assert "It was assumed" in out
    words = ("--like", folder / "people.parquet", "--runs", 1, "--json")
    people = len(set(pq.read_table(folder / "visits.parquet")["who"].to_pylist()))
    told = json.loads(ask(capsys, *words)[0])
    assert told["stand_in"]["people"] == pytest.approx(people, rel=0.05)
    told = json.loads(ask(capsys, *words, "--max-records", 5, *EACH)[0])
    assert told["counted"] == "records, at most 5 per person, scaled"
    out, _ = ask(capsys, "--like", folder / "scaled.parquet", "--runs", 1)
    assert "per person, scaled. Errors are those against all records." in out
    words = ("--like", folder / "scaled.parquet", "--runs", 1, "--json")
    told = json.loads(ask(capsys, *words, "--people", 500)[0])
    assert told["stand_in"]["people"] == 500
    words = ("--like", folder / "kept.parquet", "--runs", 1, "--json")
    told = json.loads(ask(capsys, *words, "--people", 3000, *EACH)[0])
    assert told["counted"] == "records, at most 20 per person"


def test_people_on_a_plain_stand_in(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place in (("past.parquet",), ("points.parquet", "--bounds", BOUNDS, "--cells", 64)):
        like = ("--like", folder / place[0], *place[1:])
        told = json.loads(ask(capsys, *like, "--runs", 1, "--people", 900, *EACH, "--json")[0])
        assert (told["counted"], told["stand_in"]["people"]) == ("split people", 900)


def test_nothing_is_written(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(folder.iterdir())
    ask(capsys, "--like", folder / "past.parquet", "--runs", 1)
    assert (list(tmp_path.iterdir()), sorted(folder.iterdir())) == ([], before)


def test_a_budget_too_small_beside_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = ask(capsys, *SMALL, "--epsilon", "0.02", "--mechanism", "htf-paper")
    assert "Epsilon 0.01 is not possible: " in out
    assert "epsilon 0.02 epsilon 0.04" in out


def mistakes(folder: Path) -> dict[str, tuple[list[Any], int, str]]:
    past, points = folder / "past.parquet", folder / "points.parquet"
    good = ["--epsilon", "0.5", "--runs", "1"]

    def but(*changes: Any) -> list[Any]:
        return [*good, *changes]

    return {
        "no epsilon": ([], 2, "--epsilon"),
        "bad epsilon": (but("--epsilon", "none"), 2, "got 'none'"),
        "bad cells": (but("--cells", "10x10"), 2, "got '10x10'"),
        "zero cells": (but("--cells", "0"), 2, "got 0"),
        "no points": (but("--points-about", "0"), 2, "--points-about"),
        "no runs": (but("--runs", "0"), 2, "--runs"),
        "no mechanism": (but("--mechanism", "magic"), 2, "no mechanism 'magic'; there are"),
        "a floor": (but("--mechanism", "zero"), 2, "no mechanism 'zero'; there are"),
        "no recipe": (but(folder / "no.toml"), 2, "cannot read"),
        "a picture of an epsilon": (but("-o", "a.png"), 2, "--output is for a target"),
        "no file": (but("--like", folder / "no.csv"), 2, "no.csv"),
        "points without a map": (but("--like", points), 2, "--bounds W,S,E,N"),
        "a map for a release": (but("--like", past, "--bounds", "0,0,1,1"), 2, "its own map"),
        "a finer grid": (but("--like", past, "--cells", "128"), 2, "a grid of 128 x 128 cells"),
        "elsewhere": (but("--like", points, "--bounds", "0,0,1,1"), 2, "none of the points"),
        "nobody": (but("--people", "0"), 2, "--people"),
        "a profile without people": (but(*EACH), 2, "with --people N"),
        "records without people": (but("--max-records", "20"), 2, "with --people N"),
        "kept, without people": (but("--like", folder / "kept.parquet"), 2, "the release is about"),
        "kept, without records": (
            but("--like", folder / "kept.parquet", "--people", "9"),
            2,
            "how many records each has",
        ),
        "people and points": (but(*PEOPLE, "--points-about", "9"), 2, "leave out --points-about 9"),
        "falling": (but(*PEOPLE, "--records-per-person", "0.5:9,1:3"), 2, "must not fall"),
        "bad limit": (but(*PEOPLE, *EACH, "--max-records", "some"), 2, "a whole number or auto"),
        "no budget": (
            but(*SMALL, "--mechanism", "htf-paper", "--epsilon", "0.01"),
            3,
            "The budget does not allow it",
        ),
        **recipes(folder, good),
    }


def recipes(folder: Path, good: list[Any]) -> dict[str, tuple[list[Any], int, str]]:
    """Recipes that cannot be forecast."""
    people = 'user = "who"\n'
    wrong = {
        "no parameter": ('settings = ["size=3"]', (), "no parameter 'size'; it has"),
        "a system without bounds": ('crs = "EPSG:2056"', (), "is that of --bounds"),
        "no column": (
            f'x = "e"\ny = "lat"\nbounds = "{BOUNDS}"',
            ("--like", folder / "points.parquet"),
            "no column 'e'",
        ),
        "other periods": (
            f'{people}per = "day"\ntime = "t"',
            ("--like", folder / "people.parquet"),
            "about person-days: say roughly",
        ),
        "no number to keep": (f'{people}count = "records"', PEOPLE, "--max-records K"),
        "people and a limit": (
            f'{people}count = "people"\nmax_records = 3', PEOPLE, "leave out --max-records 3",
        ),
        "bad share": (
            f'{people}max_records = 5\nspend = ["activity=1"]', (*PEOPLE, *EACH),
            "--spend activity takes a share of epsilon",
        ),
        "auto without a share": (
            f'{people}max_records = "auto"\nspend = ["activity=0"]', (*PEOPLE, *EACH),
            "give --spend activity a share above 0",
        ),
        "a share for people": (
            f'{people}spend = ["activity=0.2"]', PEOPLE, "--spend activity=0.2: the activity is for counting records",
        ),
        "bad count": (f'{people}count = "cows"', PEOPLE, "cows"),
    }  # fmt: skip
    found = {}
    for name, (text, words, says) in wrong.items():
        path = folder / f"{name}.toml"
        if folder != Path():  # the names of the cases are asked before there is a folder
            path.write_text(text)
        found[name] = ([path, *good, *words], 2, says)
    return found


@pytest.mark.parametrize("case", list(mistakes(Path())))
def test_mistakes_are_named(case: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words, code, says = mistakes(folder)[case]
    assert run(["forecast", *map(str, words)]) == code
    told = capfd.readouterr()
    assert says in " ".join(told.err.split())
    assert "Traceback" not in told.err + told.out
    assert told.out == ""


def aim(
    capsys: pytest.CaptureFixture[str], target: str, *words: Any, code: int = 0
) -> tuple[str, str]:
    capsys.readouterr()
    found = run(["forecast", "--target", target, *map(str, words)])
    told = capsys.readouterr()
    assert found == code, told.err
    return " ".join(told.out.split()), " ".join(told.err.split())


@pytest.mark.parametrize("page", ["forecast.md", "known-limits.md"])
def test_the_docs_say_how_far_off_the_city_may_be(page: str) -> None:
    words = " ".join((Path(__file__).parents[2] / "docs" / page).read_text("utf-8").split())
    assert f"{CITY_OFF} the target" in words


CITY = ("--points-about", "20000", "--cells", "64", "--runs", "1")


def test_a_target_finds_its_epsilon_and_draws_the_curve(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (*CITY, "--bounds", BOUNDS, "-o", tmp_path / "curve.svg")
    out, _ = aim(capsys, "10 % in squares of 3 km", *words)
    found = re.search(r"The least epsilon for 10 % in squares of 3 km: about ([0-9.]+)", out)
    assert found is not None
    assert f"Epsilon {found[1]} for one record: a guess of 50 %" in out
    assert "stretched over the bounds" in out
    assert f"real errors at this epsilon may be {CITY_OFF} the target. Use --like" in out
    drawn = (tmp_path / "curve.svg").read_bytes()
    assert b"<svg" in drawn
    assert "already exists" in aim(capsys, "10 % in squares of 3 km", *words, code=2)[1]
    told = json.loads(aim(capsys, "10 % in squares of 3 km", *words, "--overwrite", "--json")[0])
    assert (tmp_path / "curve.svg").read_bytes() == drawn
    assert told["epsilon"] == found[1]
    assert told["meaning"]["epsilon"] == found[1]
    assert told["budget_spent"] == 0
    errors = [one["typical_error"] for one in told["curve"]]
    assert min(errors) < 0.1 < max(errors)


def test_a_target_like_a_release_of_people(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = aim(
        capsys, "5 people in squares of 10 km", "--like", folder / "people.parquet", "--runs", 1
    )
    assert "The least epsilon for 5 split people in squares of 10 km: about" in out
    assert "for one person" in out
    err = aim(capsys, "5 records in squares of 10 km", "--like", folder / "people.parquet", code=2)[
        1
    ]
    assert "the target is in records, but split people are counted" in err


def test_a_target_in_zones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    squares = [
        {"type": "Polygon", "coordinates": [[[x, y], [x + 0.1, y], [x + 0.1, y + 0.1], [x, y + 0.1], [x, y]]]}
        for x in (-74.1, -74.0, -73.9)
        for y in (40.6, 40.7)
    ]  # fmt: skip
    features = [
        {"type": "Feature", "properties": {"name": f"z{n}"}, "geometry": one}
        for n, one in enumerate(squares)
    ]
    layer = tmp_path / "zones.geojson"
    layer.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    words = (*CITY, "--bounds", BOUNDS, "--json")
    told = json.loads(aim(capsys, f"3 % in zones of {layer}", *words)[0])
    assert float(told["epsilon"]) > 0
    assert told["typical_count"] > 100
    zones = ("--points-about", 20_000, "--zones", layer, "--by", "name", "--json")
    told = json.loads(aim(capsys, "3 % in zones", *zones)[0])
    assert (told["mechanism"], told["grid"]) == ("zones", [6])
    assert float(told["epsilon"]) < 0.5
    assert "stretched over the zones" in aim(capsys, "3 % by name", *zones[:-1])[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--target", "soon"), "a target is '5 % in squares of 1 km'"),
        (("--target", "5 % in zones"), "needs their layer"),
        (("--target", "5 % by district"), "there is no level 'district'"),
        (("--target", "5 % in trips between squares of 1 km"), "are for trips on a map"),
        (("--target", "5 % in squares of 1 km", "--epsilon", "1"), "one of them"),
        ((), "one of them"),
        (("--target", "5 % in squares of 1 km", "-o", "a.txt"), ".png, .svg or .pdf"),
        (("--target", "5 % in squares of 1 m"), "smaller than the cells"),
    ],
)
def test_mistakes_of_targets_are_named(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["forecast", *words]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
