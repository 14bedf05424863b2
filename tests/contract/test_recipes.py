"""One recipe, filled in four ways: by the command line, in Python, from a file, by a series. They make the same release."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import htf
from htf import InputError, Recipe, Release
from htf.base.options import words_of
from htf.cli.main import run
from htf.privacy.purchases import PURCHASES
from htf.recipes.files import NAMES, NOT_IN_FILES, load_recipe, save_recipe, to_toml
from htf.recipes.quote import OFFERS

BOUNDS = (0.0, 0.0, 1.0, 1.0)
FEW: dict[str, Any] = {"bounds": BOUNDS, "cells": 16, "epsilon": 1}
# What can be published, by name: the fields of its recipe beside the source.
RECIPES: dict[str, dict[str, Any]] = {
    "records": FEW,
    "people": {**FEW, "user": "who"},
    "kept": {**FEW, "user": "who", "max_records": 3, "spend": {"activity": "0.2"}},
    "auto": {**FEW, "user": "who", "max_records": "auto"},
    "not scaled": {**FEW, "user": "who", "max_records": 3, "spend": {"activity": 0}},
    "different": {**FEW, "user": "who", "distinct": 4},
    "days": {**FEW, "user": "who", "per": "day", "time": "at"},
    "weights": {**FEW, "weight": "w", "max_weight": 5},
    "hours": {**FEW, "axes": ["hour:hour(at):0:24:4"], "time": "at", "utc_offset": "+02:00"},
    "kinds": {**FEW, "categories": ["kind=a,b"], "other": ["kind"]},
    "zones": {"zones": "zones.geojson", "by": "name", "epsilon": 1},
    "inside": {**FEW, "zones": "zones.geojson", "by": "name", "spend": {"zones": "1/4"}},
    "trips": {**FEW, "cells": 4, "dest_x": "lon2", "dest_y": "lat2"},
    "rival": {**FEW, "mechanism": "ag", "settings": {"c2": 5}},
    "since": {**FEW, "time": "at", "since": "2026-01-02"},
}  # fmt: skip


@pytest.fixture
def points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """People with records on a few days, and a layer of four zones. Their folder is the current one."""
    monkeypatch.chdir(tmp_path)
    chance, n = np.random.default_rng(3), 1500
    days = chance.integers(0, 4, n) * 86_400_000_000 + chance.integers(0, 86_400_000_000, n)
    start = 1_767_225_600_000_000  # 2026-01-01
    columns = {
        **{name: chance.uniform(0, 1, n) for name in ("lon", "lat", "lon2", "lat2")},
        "who": chance.integers(0, 300, n), "w": chance.integers(0, 9, n),
        "kind": chance.choice(["a", "b", "c"], n), "at": pa.array(start + days, pa.timestamp("us")),
    }  # fmt: skip
    pq.write_table(pa.table(columns), "secret-visits.parquet")
    features = [
        {
            "type": "Feature",
            "properties": {"name": f"{x}{y}"},
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[x / 2, y / 2], [x / 2 + 0.5, y / 2], [x / 2 + 0.5, y / 2 + 0.5], [x / 2, y / 2 + 0.5], [x / 2, y / 2]]],
            },
        }
        for x in range(2)
        for y in range(2)
    ]  # fmt: skip
    Path("zones.geojson").write_text(
        json.dumps({"type": "FeatureCollection", "features": features})
    )
    return Path("secret-visits.parquet")


def recipe(name: str) -> Recipe:
    return Recipe(source="secret-visits.parquet", **RECIPES[name])


def as_options(name: str) -> list[str]:
    """The same fields as options."""
    given, words = dict(RECIPES[name]), []
    if "weight" in given:
        given["weight"] = f"{given['weight']}:{given.pop('max_weight')}"
    if "since" in given:
        given["since"] += ","
    for field, value in given.items():
        values = [value]
        if isinstance(value, dict):
            values = [f"{key}={one}" for key, one in value.items()]
        elif isinstance(value, list):
            values = value
        elif isinstance(value, tuple):
            values = [",".join(map(str, value))]
        words += [word for one in values for word in words_of(Recipe, field, one)]
    return words


@pytest.mark.parametrize("name", RECIPES)
def test_every_way_of_filling_it_makes_the_same_release(name: str, points: Path) -> None:
    noise = ["--noise", "seeded:5"]
    saved = ["--save-recipe", "saved.toml"]
    assert run(["release", str(points), *as_options(name), *noise, *saved, "-o", "a.parquet"]) == 0
    assert run(["release", "saved.toml", *noise, "-o", "b.parquet"]) == 0
    by_options, by_file = Release.load("a.parquet"), Release.load("b.parquet")
    made = recipe(name).make(noise="seeded:5")
    assert by_options == by_file == made
    assert all(check.passed for check in htf.verify("a.parquet"))


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_survives_a_round_trip(name: str, points: Path) -> None:
    save_recipe(recipe(name), Path("r.toml"))
    again = load_recipe(Path("r.toml"))
    assert again == recipe(name)
    assert points.name in Path("r.toml").read_text()


def test_every_field_survives_a_round_trip(tmp_path: Path) -> None:
    """Odd texts too: quotes, lines, other scripts."""
    odd = 'a "b"\\ c\n\t\x7f é 漢'
    whole = Recipe(
        source="x.csv", bounds="0,0,1,1", cells=(8, 16), user=odd, per="day", time="t", count="people", utc_offset="-05:30",
        since="2026-01-02", until="2026-02-02T03:04:05", axes=[f"{odd}:c:0:1:2"], allow_empty=True, skip_lines=2,
        prior=["a.parquet", "b.csv"], spend={}, settings={"growth": 2.5}, epsilon="1/3",
    )  # fmt: skip
    save_recipe(whole, tmp_path / "r.toml")
    assert load_recipe(tmp_path / "r.toml") == whole
    assert 'since = "2026-01-02T00:00:00"' in to_toml(whole)


@pytest.mark.parametrize("name", RECIPES)
def test_a_quote_opens_no_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where there is nothing
    quote = recipe(name).quote()
    assert sum((one.units for one in quote.prices.values()), quote.left.units) == 10**15
    assert set(quote.prices) <= set(OFFERS)


@pytest.mark.parametrize("name", RECIPES)
def test_a_release_costs_what_was_quoted(name: str, points: Path) -> None:
    assert points.exists()
    asked = recipe(name)
    quote, made = asked.quote(), asked.make(noise="seeded:1")
    assert {one.kind: one.epsilon for one in made.bought} == quote.prices
    assert made.epsilon == quote.epsilon
    if asked.max_records != "auto":
        assert made.protection == quote.unit


def test_every_purchase_is_offered() -> None:
    assert list(OFFERS) == [kind.kind for kind in PURCHASES]


@pytest.mark.parametrize("name", ["people", "inside", "since"])
def test_a_release_says_nothing_of_its_source(name: str, points: Path) -> None:
    recipe(name).make(noise="fast").save("r.parquet")
    content = Path("r.parquet").read_bytes()
    told = json.dumps(pq.read_schema("r.parquet").metadata[b"htf"].decode())
    assert b"secret-visits" not in content
    assert "secret-visits" not in told
    assert str(points.resolve().parent) not in told


def test_data_in_memory_need_no_file(tmp_path: Path) -> None:
    visits = {"lon": np.full(60, 0.5), "lat": np.full(60, 0.5), "who": np.arange(60) // 3}
    asked = Recipe(source=visits, domain=htf.Domain.from_bounds(*BOUNDS, cells=8), user="who", epsilon=1)  # fmt: skip
    assert asked.make(noise="seeded:1").quantity == "split people"
    with pytest.raises(InputError, match="cannot be a file"):
        save_recipe(replace(asked, source="visits.csv"), tmp_path / "r.toml")
    with pytest.raises(InputError, match="the source of this recipe is an object of Python"):
        to_toml(Recipe(source=visits, **FEW))
    with pytest.raises(InputError, match="leave out cells"):
        replace(asked, cells=4)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cell = 16\nepsilon = 1", "a recipe has no cell. Its names are"),
        ("epsilon = 1\n[map]\nbounds = [0, 0, 1, 1]", "a recipe has no map"),
        ("epsilon = ", "is no recipe"),
        ("epsilon = true", "epsilon must be"),
        ("epsilon = 1\ncells = [[1]]", "cells must be"),
        ("epsilon = 1\nallow_empty = 1", "allow_empty must be"),
        ("epsilon = 1\nmax_records = 'some'\nuser = 'who'", "max_records"),
        ("bounds = [0, 0, 1, 1]", "give --epsilon"),
        ("epsilon = 1\nbounds = [0, 0, 1, 1]", "say where the records are"),
        ("epsilon = 1\nspend = {activities = 0.1}\nsource = 'a.csv'\nbounds = [0, 0, 1, 1]", "--spend takes NAME=SHARE"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file_is_named(
    text: str, says: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.toml").write_text(text)
    assert run(["release", str(tmp_path / "r.toml"), "-o", str(tmp_path / "o.parquet")]) == 2
    assert says in " ".join(capfd.readouterr().err.split())


def test_options_take_the_place_of_what_a_file_says(points: Path) -> None:
    assert points.exists()
    save_recipe(recipe("kept"), Path("r.toml"))
    asked = ["release", "r.toml", "--noise", "seeded:5", "-o", "o.parquet"]
    assert run([*asked, "--epsilon", "2", "--max-records", "4"]) == 0
    made = Release.load("o.parquet")
    assert (str(made.epsilon), made.protection.max_records) == ("2", 4)
    assert str(made.activity.epsilon) == "0.4"  # type: ignore[union-attr]


def test_a_recipe_is_neither_written_over_nor_lost(
    points: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("there.toml").write_text("mine")
    asked = ["release", str(points), *as_options("records"), "--noise", "fast", "-o", "o.parquet"]
    for name, says in (("there.toml", "already exists"), ("r.json", "takes the name of a .toml")):
        assert run([*asked, "--save-recipe", name]) != 0
        assert says in capfd.readouterr().err
    assert Path("there.toml").read_text() == "mine"
    assert not Path("o.parquet").exists()


def test_names_in_files_are_those_of_the_fields() -> None:
    assert set(NAMES) == {one.name for one in fields(Recipe)} - set(NOT_IN_FILES)
    with pytest.raises(TypeError, match="bound"):
        Recipe(source="a.csv", epsilon=1, bound=BOUNDS)  # type: ignore[call-arg]


# --- what a recipe must not do ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('source = "a.csv"\nepsilon = 1\nlabel = "../../x"', "a recipe has no label"),
        ("source = {lon = [0.5], lat = [0.5]}\nepsilon = 1", "name of a file or an address"),
        ("source = true", "name of a file or an address"),
        ("epsilon = " + "[" * 5000, "is no recipe"),
        ("epsilon = " + "1" * 5000, "is no recipe"),
    ],
)
def test_recipe_files_hold_nothing_else(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        load_recipe(path)


def test_no_recipe_file_holds_a_password(tmp_path: Path) -> None:
    address = "postgresql://someone:secret@host/data"
    recipe = htf.Recipe(source=address, sql="SELECT 1", bounds=(0, 0, 1, 1), epsilon=1)
    with pytest.raises(InputError, match="leave it out") as error:
        save_recipe(recipe, tmp_path / "r.toml")
    assert "secret" not in str(error.value) + repr(recipe)
    assert not (tmp_path / "r.toml").exists()
    save_recipe(replace(recipe, source="postgresql://someone@host/data"), tmp_path / "r.toml")


def test_a_recipe_does_not_show_its_data() -> None:
    data = {"lon": [0.123456], "lat": [0.5], "who": ["alice"]}
    recipe = htf.Recipe(source=data, bounds=(0, 0, 1, 1), epsilon=1)
    shown = repr(recipe) + repr(recipe.prepare(noise="seeded:1"))
    assert "alice" not in shown
    assert "0.123456" not in shown


@pytest.mark.parametrize("most_records", [1, 2])
@pytest.mark.parametrize("max_records", [1, "auto"])
def test_few_records_of_a_person_are_enough(most_records: int, max_records: int | str) -> None:
    data = {"lon": [0.5] * 300, "lat": [0.5] * 300, "who": [str(i) for i in range(300)]}
    recipe = htf.Recipe(
        source=data, bounds=(0, 0, 1, 1), cells=4, user="who", epsilon=1,
        max_records=max_records, most_records=most_records,
    )  # fmt: skip
    release = recipe.make(noise="seeded:1")
    assert all(check.passed for check in htf.verify(release))


def test_a_prior_of_another_map_costs_nothing(tmp_path: Path) -> None:
    data = {"lon": [0.5] * 300, "lat": [0.5] * 300, "who": [str(i) for i in range(300)]}
    elsewhere = htf.Domain.from_bounds(5, 5, 6, 6, cells=4)
    points = tmp_path / "prior.csv"
    points.write_text("lon,lat\n5.5,5.5\n")
    prior = htf.read_prior(str(points), elsewhere, ["lon", "lat"])
    budget = htf.BudgetFile.create(tmp_path / "budget.sqlite", "visits", "3", unit="one person")
    recipe = htf.Recipe(
        source=data, bounds=(0, 0, 1, 1), cells=4, user="who", epsilon=1, max_records="auto", prior=[prior]
    )  # fmt: skip
    with pytest.raises(InputError, match="prior"):
        recipe.make(budget=budget, noise="fast")
    assert str(budget.account().spent) == "0"
