"""`htf release` with zones and categories: what it makes, and what it refuses before anything is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely

from htf import BudgetFile, InputError, Release, verify
from htf.cli.main import run
from htf.recipes.maps import read_axes
from htf.recipes.recipe import Recipe

WEST, SOUTH = 2_600_000, 1_200_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nine tracts in three districts, and trips between them."""
    monkeypatch.chdir(tmp_path)
    squares = [
        shapely.box(WEST + 100 * x, SOUTH + 100 * y, WEST + 100 * x + 100, SOUTH + 100 * y + 100)
        for x in range(3)
        for y in range(3)
    ]
    columns = {"tract": [f"t{n}" for n in range(9)], "district": [f"d{n % 3}" for n in range(9)]}
    layer = geopandas.GeoDataFrame({**columns, "city": "c"}, geometry=squares, crs="EPSG:2056")
    layer.to_file("zones.gpkg")
    layer.to_crs("EPSG:4326").to_file("degrees.geojson")
    draw = np.random.default_rng(1)
    ends = draw.uniform((WEST - 20, SOUTH - 20) * 2, (WEST + 320, SOUTH + 320) * 2, (500, 4))
    trips = pd.DataFrame(ends, columns=["x", "y", "dest_x", "dest_y"])
    trips["rider"] = draw.integers(0, 60, 500)
    trips["offence"] = draw.choice(["Theft", "Assault", "Arson", ""], 500)
    trips.to_parquet("trips.parquet")
    Path("offences.csv").write_text("offence,group\nTheft,goods\nAssault,people\n")
    return tmp_path


def asked(*arguments: Any) -> list[str]:
    start = ["release", "trips.parquet", "--epsilon", "1", "--noise", "fast", "--mechanism", "hb"]
    return [*start, "-o", "out.parquet", *map(str, arguments)]


ZONES = ("--zones", "zones.gpkg", "--by", "tract")
TRIPS = ("--x", "x", "--y", "y", "--dest", "x=dest_x", "--dest", "y=dest_y")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((*ZONES, "--within", "district,city"), "over 9 zones"),
        ((*ZONES, "--other", "zone", "--user", "rider"), "over 10 zones"),
        ((*ZONES, *TRIPS), "over 9 x 9 zones"),
        ((*ZONES, *TRIPS, "--dest", "zones=same", "--dest", "by=city"), None),
        ((*ZONES, *TRIPS, "--dest", "zones=degrees.geojson"), "over 9 x 9 zones"),
        ((*ZONES, "--crs", "EPSG:4326", "--read", "points-crs=EPSG:2056"), "over 9 zones"),
        ((*ZONES, "--category", "offence=offences.csv", "--other", "offence"), "over 9 zones"),
        ((*ZONES, "--category", "kind:offence=Theft,Arson", "--user", "rider", "--max-records", "2", "--spend", "activity=0"), "over 9 zones"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("folder")
def test_releases(options: Any, told: str | None, capfd: pytest.CaptureFixture[str]) -> None:
    code = run(asked(*options))
    shown = capfd.readouterr()
    if told is None:  # nine tracts lie in one city: as names of zones, cities are no names
        assert "are named 'c' in the column 'city'" in shown.err
    else:
        assert code == 0, shown.err
        assert told in shown.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--zones", "zones.gpkg"), "give --by COLUMN"),
        (("--zones", "nowhere.gpkg", "--by", "tract"), "there is no file nowhere.gpkg"),
        ((*ZONES, "--bounds", "0,0,1,1", "--axis", "h:h:0:24:4"), "leave out --axis"),
        ((*ZONES, "--bounds", "0,0,1,1", "--spend", "zones=1"), "between 0 and 1"),
        ((*ZONES, "--bounds", "0,0,1,1"), "leave out --mechanism"),
        ((*ZONES, "--around", "0,0,1", "--bounds", "0,0,1,1"), "--around"),
        ((*ZONES, "--cells", "1024"), "leave out --cells, or give --bounds"),
        ((*ZONES, "--spend", "zones=0.2"), "give --zones and --bounds"),
        ((*ZONES, "--other", "keep"), "--other keep needs a list"),
        ((*ZONES, "--within", "ward"), "has no column 'ward'"),
        ((*ZONES, "--dest", "zones=same"), "give --dest x and --dest y"),
        (
            (*ZONES, "--prior", "trips.parquet", "--mechanism", "htf"),
            "leave --prior out with zones",
        ),
        ((*ZONES, "--user", "rider", "--distinct", "2"), "different people are counted"),
        (("--bounds", "0,0,1,1", "--by", "tract"), "--by needs zones: give --zones FILE"),
        (("--bounds", "0,0,1,1", "--dest", "zones=same"), "--dest zones needs zones"),
        ((*ZONES, "--category", "offence"), "--category takes NAME=LIST or NAME:COLUMN=LIST"),
        ((*ZONES, "--category", "offence=nowhere.txt"), "there is no file nowhere.txt"),
        ((*ZONES, "--other", "offence"), "--other offence needs a list"),
        ((*ZONES, "--category", "zone=a,b"), "axis names must differ"),
        ((), "or --zones FILE"),
    ],
)
def test_what_is_refused_before_points_are_read(
    options: Any, words: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "trips.parquet").write_text("reading this would be another error")
    assert run(asked(*options)) != 0
    assert words in capfd.readouterr().err.replace("\n", " ")
    assert not (folder / "out.parquet").exists()


@pytest.mark.usefixtures("folder")
def test_public_files_are_not_replaced(capfd: pytest.CaptureFixture[str]) -> None:
    geopandas.read_file("zones.gpkg").to_parquet("zones.parquet")
    arguments = asked("--zones", "zones.parquet", "--by", "tract", "--overwrite")
    arguments[arguments.index("out.parquet")] = "zones.parquet"
    assert run(arguments) != 0
    assert len(geopandas.read_parquet("zones.parquet")) == 9
    assert "zones.parquet" in capfd.readouterr().err


@pytest.mark.usefixtures("folder")
def test_the_map_of_options() -> None:
    zones = {"zones": Path("zones.gpkg"), "by": "tract", "x": "x", "y": "y"}
    recipe = Recipe(
        epsilon=1,
        **zones,  # type: ignore[arg-type]
        within="district, city",
        dest_x="a",
        dest_y="b",
        axes=("hour:h:0:24:24",),
        categories=("kind:k=u,v",),
    )
    domain, columns = read_axes(recipe)
    assert domain.names == ("zone", "dest_zone", "hour", "kind")
    assert domain.shape == (9, 9, 24, 2)
    assert domain.crs == "EPSG:2056"
    assert columns == ["x", "y", "a", "b", "h", "k"]
    for axis in domain.axes[:2]:
        assert axis.names is not None
        assert [level.name for level in axis.names.levels] == ["tract", "district", "city"]


def test_a_list_is_none_of_the_data(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Its names are published: with the records as a list of categories, every one of them would be."""
    (folder / "kinds.csv").write_text("offence,x,y\nTheft,2600050,1200050\nArson,2600060,1200060\n")
    (folder / "copy.csv").write_bytes((folder / "kinds.csv").read_bytes())
    for listed in ("kinds.csv", "copy.csv"):
        options = (*ZONES, "--x", "x", "--y", "y", "--category", f"offence={listed}")
        command = ["release", "kinds.csv", "--epsilon", "1", "-o", "out.parquet", *options]
        assert run(command) == 2
        assert (
            f"the layer or list {listed} is one of the files of the data" in capfd.readouterr().err
        )


BOTH = (
    "release", "trips.parquet", *ZONES, "--x", "x", "--y", "y", "--crs", "EPSG:2056", "--cells", "16", "--epsilon", "1",
    "--bounds", f"{WEST},{SOUTH},{WEST + 300},{SOUTH + 300}", "--budget", "b.sqlite", "--dataset", "d", "-o", "both.parquet",
)  # fmt: skip


@pytest.fixture
def budget(folder: Path) -> BudgetFile:  # noqa: ARG001
    return BudgetFile.create("b.sqlite", "d", 2)


@pytest.mark.usefixtures("folder")
def test_a_map_inside_zones(budget: BudgetFile, capfd: pytest.CaptureFixture[str]) -> None:
    """Charged twice, published once, and whole again after it was read."""
    assert run(list(BOTH)) == 0
    assert "inside 9 zones by htf, epsilon 1 for one record" in capfd.readouterr().out
    made, account = Release.load("both.parquet"), budget.account()
    assert [(one.mechanism, str(one.epsilon)) for one in account.entries] == [
        ("zones", "0.2"), ("htf", "0.8"),
    ]  # fmt: skip
    assert not account.pending
    assert made.zones is not None
    assert made.zones.budget_entry == account.entries[0].id
    assert all(check.passed for check in verify("both.parquet"))
    assert run(["query", "both.parquet", "--zone", "t4"]) == 0
    assert "t4" in capfd.readouterr().out
    assert run(["query", "both.parquet"]) == 0
    assert run(["map", "both.parquet", "--level", "tract", "-o", "zones.png"]) == 0
    assert run(["map", "both.parquet", "-o", "map.png"]) == 0


@pytest.mark.usefixtures("folder")
def test_too_many_cells_are_refused_before_the_charge(
    budget: BudgetFile, capfd: pytest.CaptureFixture[str]
) -> None:
    fine = [one if one != "16" else "9000" for one in BOTH]
    assert run(fine) == 2
    assert "at most 67,108,864 cells" in capfd.readouterr().err
    assert not budget.account().entries


@pytest.mark.usefixtures("folder")
def test_lost_entries_of_a_map_inside_zones(
    budget: BudgetFile, capfd: pytest.CaptureFixture[str]
) -> None:
    """As after a kill between writing the file and entering it: both charges are pending, and each can be entered."""

    def broken(*_: object) -> None:
        raise InputError("the disk is gone")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BudgetFile, "_publish", broken)
        assert run(list(BOTH)) == 2
    capfd.readouterr()
    pending = [one.id for one in budget.account().pending]
    assert len(pending) == 2
    for id_ in pending:
        budget.publish(id_, "both.parquet")
    assert not budget.account().pending
    with pytest.raises(InputError, match="published already"):
        budget.publish(pending[0], "both.parquet")
