"""Distinct people in a release: what is claimed, estimated, written, verified, charged and shown."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htf import (
    BudgetError,
    BudgetFile,
    Domain,
    Epsilon,
    InputError,
    PeopleByBox,
    Protection,
    Release,
    measure_distinct,
    publish,
    read_people_by_box,
    read_points,
    verify,
)
from htf.cli.main import run
from htf.curator.frequency import FrequencyMatrix
from htf.errors import ReleaseFileError
from htf.estimation.distinct import best_max_boxes, estimate_distinct
from htf.frame.grids import even_edges
from htf.privacy.distinct import DistinctCounts

DOMAIN = Domain.from_bounds(0, 0, 1, 1, 10)
SHARED = Protection("person", count="people", shares=256)


def people(grid: tuple[int, int] = (4, 3), per: str | None = None) -> PeopleByBox:
    boxes = grid[0] * grid[1]
    ranks = min(boxes, 6)
    counts = np.array(
        [[60 // (rank + 1) + box % 5 for box in range(boxes)] for rank in range(ranks)]
    )
    return PeopleByBox(grid, counts, per)


def matrix(protection: Protection = SHARED) -> FrequencyMatrix:
    cells = np.indices((10, 10), dtype=np.int32).reshape(2, -1)
    return FrequencyMatrix(DOMAIN, cells, np.full(100, 1700), protection)


def distinct(**options: Any) -> DistinctCounts:
    return measure_distinct(people(), **{"epsilon": "0.2", "noise": "fast", **options})


def made(
    table: DistinctCounts | None = None, protection: Protection = SHARED, **options: Any
) -> Release:
    given = {"epsilon": 1, "mechanism": "ug", "noise": "fast", **options}
    return publish(matrix(protection), bought=(table or distinct(),), **given)


def wrong(release: Release | Path) -> list[str]:
    return [check.name for check in verify(release) if not check.passed]


@pytest.fixture
def budget(tmp_path: Path) -> BudgetFile:
    return BudgetFile.create(tmp_path / "budget.sqlite", "pings", 2, unit="one person")


# --- the claim ---------------------------------------------------------------------------------------


def test_a_release_includes_the_price() -> None:
    plain = publish(matrix(), 1, "ug", noise="fast")
    release = made()
    assert release.epsilon == plain.epsilon
    assert release.record_epsilon == Epsilon.of("0.8") // 256
    assert release.bought == (release.distinct,)
    assert release.summary()["distinct"]["max_boxes"] == release.distinct.max_boxes  # type: ignore[union-attr]
    assert plain.distinct is None
    assert plain.summary()["distinct"] is None


@pytest.mark.parametrize(
    "protection", [SHARED, Protection("person", 5), Protection("person", 5, "all")]
)
def test_it_fits_whatever_is_counted_of_people(protection: Protection) -> None:
    assert wrong(made(protection=protection)) == []


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(
        InputError, match="only where a column names the person: name it with --user"
    ):
        made(protection=Protection())
    with pytest.raises(
        InputError, match="counted for one person in one day, but the release is for one person"
    ):
        made(measure_distinct(people(per="day"), 0.1, noise="fast"))
    with pytest.raises(InputError, match="11 boxes along 'x', but the map has only 10 cells"):
        made(measure_distinct(people((11, 2)), 0.1, noise="fast"))
    with pytest.raises(
        InputError, match=r"different people\) cost 1, which is part of the epsilon"
    ):
        made(distinct(epsilon=1))
    with pytest.raises(InputError, match="noise that is not secret"):
        made(distinct(noise="seeded:1"))
    line = Domain((DOMAIN.axes[0],))
    with pytest.raises(InputError, match="first two axes of a map, x and y, but this one has x"):
        distinct().check_map(line)
    with pytest.raises(InputError, match="has no table of different people"):
        publish(matrix(), 1, "ug", noise="fast").count_distinct()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"grid": (0, 3)}, "at least one box along each axis"),
        ({"grid": (65, 64)}, "at most 4,096 in all, got 65 x 64"),
        ({"grid": (4, 4)}, "16 numbers"),
        ({"max_boxes": 0}, "counts in 1 to 12 boxes"),
        ({"max_boxes": 13}, "counts in 1 to 12 boxes"),
        ({"counts": (1,)}, "12 numbers, none beyond"),
        ({"counts": (2**62 + 1,) * 12}, "12 numbers, none beyond"),
        ({"people": ()}, "7 numbers"),
        ({"people": (1,) * 8}, "7 numbers"),
        ({"people_epsilon": Epsilon(0)}, "a part is for the numbers of people"),
        ({"people_epsilon": Epsilon.of("0.2")}, "a part is for the numbers of people"),
        ({"per": "hour"}, "period"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        replace(distinct(max_boxes=3), **changes)


@pytest.mark.parametrize(
    ("grid", "counts", "says"),
    [
        (2, [[1, 2, 3]], "rows of 4 numbers"),
        (2, [[1, 2, 3, 4]] * 5, "1 to 4 rows"),
        (2, [[1, 2, 3, -4]], "must not be negative"),
        (2, [[1.5, 2, 3, 4]], "whole numbers, in rows"),
        (2, [1, 2, 3, 4], "whole numbers, in rows"),
        (2, [[1, 0, 0, 0], [1, 1, 0, 0]], "nobody has a second box without a first"),
        (2, [[2**40, 1, 0, 0]], "nor pass 2\\*\\*40"),
    ],
)
def test_exact_people_are_checked(grid: Any, counts: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        PeopleByBox(grid, counts)
    assert "500" not in repr(PeopleByBox((2, 1), [[500, 20], [0, 300]]))


# --- how many boxes, and what is missing --------------------------------------------------------------


def test_more_epsilon_counts_people_in_more_boxes() -> None:
    sizes = [500, 300, 200, 150, 150, 90, 80, 40, 20, 5, 2, 1]
    chosen = [best_max_boxes(sizes, 256, Epsilon.of(e)) for e in ("0.01", "0.1", "1", "10")]
    assert chosen == sorted(chosen)
    assert chosen[0] == 1
    assert chosen[-1] == 19
    assert best_max_boxes([-5] * 12, 256, Epsilon.of(1)) == 1  # noise alone
    assert best_max_boxes([10] * 2, 2, Epsilon.of(5)) == 2


def test_boxes_lie_as_even_as_cells_allow() -> None:
    table = made().count_distinct()
    x, y = even_edges((10, 10), (4, 3))
    assert np.allclose(table.west, np.repeat(x[:-1] / 10, 3))
    assert np.allclose(table.north, np.tile(y[1:] / 10, 4))
    assert np.allclose(((table.east - table.west) * (table.north - table.south)).sum(), 1)
    assert table.quantity == "different people"


@pytest.mark.parametrize("most", [1, 3, 12, None])
def test_tables_make_sense(most: int | None) -> None:
    for seed in range(20):
        found = distinct(max_boxes=most, noise=f"seeded:{seed}")
        table = estimate_distinct(found)
        assert np.all(table.low >= 0)
        assert np.all(table.low <= table.different_people)
        assert np.all(table.different_people <= table.high)
        assert np.all(table.std_error > 0)
        if most == 12:  # nobody can be missing
            assert np.array_equal(table.different_people, np.maximum(found.counts, 0))


def test_a_period_is_named() -> None:
    found = measure_distinct(people(per="week"), 0.2, noise="fast")
    assert found.quantity == "different person-weeks"
    release = made(found, replace(SHARED, per="week"))
    assert "a table of different person-weeks in a grid of 4 x 3 boxes" in release.statement
    assert "counts there once in each week" in release.statement


def test_the_statement_tells_what_was_chosen_by_whom() -> None:
    found, given = made(), made(distinct(max_boxes=5))
    assert "This cost 0.2 of the epsilon of 1, of which 0.04 went into" in found.statement
    assert f"the limit of {found.distinct.max_boxes} was chosen from that" in found.statement  # type: ignore[union-attr]
    assert "the grid of the table of different people; facts" in found.statement
    assert "was chosen from that" not in given.statement
    assert "and in how many of its boxes a person counts; facts" in given.statement
    assert "of which" not in made(distinct(max_boxes=12)).statement


# --- files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [None, 2, 12])
def test_a_file_is_the_release(most: int | None, tmp_path: Path) -> None:
    release, path = made(distinct(max_boxes=most)), tmp_path / "a.parquet"
    release.save(path)
    again = Release.load(path)
    assert again == release
    assert again.distinct == release.distinct
    assert wrong(path) == []
    assert release.distinct is not None
    assert again != replace(release, bought=(replace(release.distinct, counts=(7,) * 12),))


def test_the_largest_grid_fits_a_file(tmp_path: Path) -> None:
    domain = Domain.from_bounds(0, 0, 1, 1, 64)
    counts = np.full((2, 4096), 5)
    table = measure_distinct(PeopleByBox(64, counts), Epsilon(10**6), noise="fast")  # long numbers
    cells = np.indices((64, 64), dtype=np.int32).reshape(2, -1)
    release = publish(
        FrequencyMatrix(domain, cells, np.full(4096, 256), SHARED),
        1,
        "ug",
        noise="fast",
        bought=(table,),
    )
    release.save(tmp_path / "a.parquet")
    assert Release.load(tmp_path / "a.parquet") == release


def rewritten(path: Path, change: Any) -> None:
    table = pq.read_table(path)
    metadata = dict(table.schema.metadata)
    header = json.loads(metadata[b"htf"])
    change(header["distinct"])
    metadata[b"htf"] = json.dumps(header).encode()
    pq.write_table(table.replace_schema_metadata(metadata), path)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("grid", [4], "a pair of them, got 1"),
        ("grid", [10**6, 1], "at most 4,096 in all, got 1000000 x 1"),
        ("grid", [64, 65], "at most 4,096 in all"),
        ("grid", [12, 1], "12 boxes along 'x', but the map has only 10 cells"),
        ("max_boxes", 10**9, "in 1 to 12 boxes of a grid of 4 x 3, got 1000000000"),
        ("max_boxes", 0, "in 1 to 12 boxes of a grid of 4 x 3, got 0"),
        ("counts", [0] * 5000, "are 12 numbers, none beyond .*, got 5000"),
        ("counts", [0.5] * 12, "whole number"),
        ("counts", [0] * 11, "12 numbers"),
        ("people", [0] * 99, "are 7 numbers, none beyond .*, got 99"),
        ("people", [2**63 - 1] * 7, "none beyond 2"),
        ("epsilon", "1e9", "at most 1000, got '1e9'"),
        ("epsilon", "999", "leaves nothing for the map"),
        ("people_epsilon", "0.3", "a part is for"),
        ("people_epsilon", "0", "a part is for"),
        ("per", "decade", "one of"),
        ("per", "day", "counted for one person in one day"),
        ("decides", 1, "True or False, got 1"),
        ("noise", "x" * 2000, "at most 1,000 characters"),
        ("counts", [7] * 12, "was changed after it was written"),
        ("max_boxes", 3, "was changed after it was written"),
        ("more", 3, "not 'more'"),
    ],
)
def test_hostile_headers_are_refused(name: str, value: Any, says: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    made(distinct(max_boxes=4)).save(path)
    rewritten(path, lambda header: header.update({name: value}))
    with pytest.raises(ReleaseFileError, match=says):
        Release.load(path)


def test_a_number_of_boxes_that_noise_did_not_give_is_found() -> None:
    release = made()
    assert release.distinct is not None
    other = 1 if release.distinct.max_boxes > 1 else 2
    assert wrong(replace(release, bought=(replace(release.distinct, max_boxes=other),))) == [
        "different people"
    ]


# --- budgets ------------------------------------------------------------------------------------------


def test_a_budget_is_charged_before_noise_and_in_all_parts(
    budget: BudgetFile, tmp_path: Path
) -> None:
    table = distinct(budget=budget, label="a")
    (entry,) = budget.account().entries
    assert (entry.mechanism, str(entry.epsilon), entry.state) == ("distinct", "0.2", "pending")
    release = made(table, budget=budget)
    assert str(budget.account().left) == "1"
    budget.save(release, tmp_path / "a.parquet")
    assert {e.state for e in budget.account().entries} == {"published"}
    with pytest.raises(InputError, match="the table of different people was not charged"):
        made(budget=budget)
    with pytest.raises(BudgetError):
        distinct(epsilon=5, budget=budget)
    assert str(budget.account().left) == "1"


@pytest.mark.parametrize(
    "wrong_one", [{"max_boxes": 99}, {"max_boxes": "5"}, {"noise": 3}, {"epsilon": -1}]
)
def test_mistakes_cost_nothing(wrong_one: dict[str, Any], budget: BudgetFile) -> None:
    with pytest.raises(InputError):
        distinct(**{"budget": budget, **wrong_one})
    assert budget.account().entries == ()


# --- reading ------------------------------------------------------------------------------------------

RIDES = {
    "lon": [0.05, 0.06, 0.95, 0.05, 0.5],
    "lat": [0.05, 0.04, 0.95, 0.05, 0.5],
    "who": ["a", "a", "a", "b", None],
    "at": [0, 100_000, 0, 0, 0],
}


def test_people_are_read() -> None:
    domain = Domain.from_bounds(0, 0, 1, 1, 10)
    found = read_people_by_box(RIDES, domain, 2, user="who").exact_people
    assert found.sum(axis=0).tolist() == [2, 0, 0, 1]
    days = read_people_by_box(RIDES, domain, 2, user="who", per="day", time="at").exact_people
    assert days.sum(axis=0).tolist() == [3, 0, 0, 1]
    for grid, says in (
        (0, "at least one box"), (11, "only 10 cells"), (2.5, "whole number"), ("2", "no level '2'"), ("", "say by which"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=says):
            read_people_by_box(RIDES, domain, grid, user="who")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="No record is inside"):
        read_people_by_box(RIDES, Domain.from_bounds(50, 50, 51, 51, 10), 2, user="who")


def test_further_axes_are_not_divided() -> None:
    domain = Domain((*DOMAIN.axes, type(DOMAIN.axes[0])("hour", 0.0, 24.0, 24)), DOMAIN.crs)
    columns = ["lon", "lat", "hour(at)"]
    found = read_people_by_box(RIDES, domain, 2, columns, user="who").exact_people
    assert found.sum(axis=0).tolist() == [2, 0, 0, 1]


# --- the command line ---------------------------------------------------------------------------------


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    draw = np.random.default_rng(1)
    place = {"lon": draw.uniform(0, 1, 3000), "lat": draw.uniform(0, 1, 3000)}
    path = tmp_path / "visits.parquet"
    pq.write_table(
        pa.table(
            {**place, "who": draw.integers(0, 900, 3000), "at": draw.integers(0, 10**6, 3000)}
        ),
        path,
    )
    return path


def command(points: Path, *more: Any) -> list[str]:
    asked = ["--bounds", "0,0,1,1", "--cells", "16", "--epsilon", "2", "--noise", "fast"]
    output = points.parent / "out.parquet"
    return ["release", *map(str, [points, *asked, "-o", output, *more])]


@pytest.mark.parametrize(
    "counting",
    [[], ["--count", "people"], ["--max-records", "3"], ["--max-records", "3", "--once-per", "all"],
     ["--max-records", "auto"], ["--per", "day", "--time", "at"]],
)  # fmt: skip
def test_a_table_is_made_and_shown(
    counting: list[str], visits: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command(visits, "--user", "who", "--distinct", "4,2", *counting)) == 0
    out = visits.parent / "out.parquet"
    assert wrong(out) == []
    found = Release.load(out).distinct
    assert found is not None
    assert (found.grid, str(found.epsilon), found.decides) == ((4, 2), "0.4", True)
    quantity = "different person-days" if "--per" in counting else "different people"
    capsys.readouterr()
    assert run(["query", str(out), "--distinct"]) == 0
    shown = capsys.readouterr().out
    assert quantity in shown
    assert "Boxes do not add up" in shown
    assert run(["info", str(out)]) == 0
    assert f"Table of {quantity}" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("ending", ["csv", "json", "parquet", "gpkg", "geojson"])
def test_a_table_is_written(ending: str, visits: Path) -> None:
    assert run(command(visits, "--user", "who", "--distinct", "4:3")) == 0
    out, target = visits.parent / "out.parquet", visits.parent / f"table.{ending}"
    assert run(["query", str(out), "--distinct", "-o", str(target)]) == 0
    assert target.stat().st_size > 100
    if ending == "csv":
        rows = list(csv.DictReader(target.read_text().splitlines()))
        assert len(rows) == 16
        assert set(rows[0]) == {
            "west",
            "south",
            "east",
            "north",
            "different_people",
            "std_error",
            "low",
            "high",
            "counted",
        }
    assert run(["query", str(out), "--distinct", "--box", "0,0,1,1"]) == 2


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["--distinct", "4"], "name it with --user"),
        (["--user", "who", "--distinct", "4,4,4"], "as in 16 or 32,16"),
        (["--user", "who", "--distinct", "four"], "as in 16 or 32,16"),
        (["--user", "who", "--distinct", "0"], "at least one box"),
        (["--user", "who", "--distinct", "20"], "only 16 cells there"),
        (["--user", "who", "--distinct", "4:17"], "1 to 16 boxes"),
        (["--user", "who", "--distinct", "4:many"], "takes the number of boxes along"),
        (
            ["--user", "who", "--distinct", "4", "--spend", "distinct=0"],
            "between 0 and 1 such as 0.2",
        ),
        (
            ["--user", "who", "--distinct", "4", "--spend", "distinct=1"],
            "between 0 and 1 such as 0.2",
        ),
        (
            ["--user", "who", "--distinct", "4", "--spend", "distinct=0.95", "--max-records", "3"],
            "leave nothing",
        ),
        (["--user", "who", "--spend", "distinct=0.1"], "ask for it with --distinct"),
    ],
)
def test_mistakes_are_found_before_any_charge(
    asked: list[str], says: str, budget: BudgetFile, capsys: pytest.CaptureFixture[str]
) -> None:
    """The points are not there: whatever is said instead was found out before they were looked for."""
    charged = ["--budget", str(budget.path), "--dataset", "pings"]
    assert run(command(budget.path.parent / "nowhere.parquet", *asked, *charged)) == 2
    assert says in capsys.readouterr().err
    assert budget.account().entries == ()


def test_the_command_charges_both_parts(visits: Path, budget: BudgetFile) -> None:
    charged = ["--budget", str(budget.path), "--dataset", "pings"]
    assert run(command(visits, "--user", "who", "--distinct", "4", *charged)) == 0
    entries = {e.mechanism: str(e.epsilon) for e in budget.account().entries}
    assert entries == {"distinct": "0.4", "htf": "1.6"}
    assert str(budget.account().left) == "0"


def test_reading_does_not_depend_on_how_records_are_limited(visits: Path) -> None:
    plain = read_people_by_box(visits, DOMAIN, 4, user="who").exact_people
    from htf.ingest.points import read_people
    from htf.ingest.reading import Reading

    limited = Reading(user="who", max_records=1, once_per="day", time="at")
    assert np.array_equal(read_people(visits, DOMAIN, limited, 4).exact_people, plain)
    assert read_points(visits, DOMAIN, user="who").protection.quantity == "split people"


# --- maps ----------------------------------------------------------------------------------------


def test_a_picture_has_a_colour_for_each_box_that_is_more_than_noise() -> None:
    """4 x 3 boxes on 10 x 10 cells, so that they are not all of the same size."""
    pytest.importorskip("matplotlib")
    from htf import Layer
    from htf.maps.picture import figure_of

    release = made(distinct(noise="seeded:1"), noise="seeded:2")
    table = release.count_distinct()
    clear = table.low > 0
    assert 0 < clear.sum() < 12
    for boxes in (False, True):
        figure = figure_of([Layer.distinct(release)], boxes=boxes)
        ax, bar = figure.axes
        assert ax.get_title() == "different people in 4 x 3 boxes,  ε = 1"
        assert bar.get_ylabel() == "different people per box"
        told = figure.get_supxlabel()
        assert "No privacy guarantee" in told
        assert "Boxes do not add up" in " ".join(told.split())
        collections: list[Any] = list(ax.collections)
        mesh, *outlines = collections
        assert len(outlines) == boxes
        drawn = np.ma.masked_invalid(mesh.get_array()).reshape(3, 4).T.ravel()
        assert (~np.ma.getmaskarray(drawn)).tolist() == clear.tolist()
        shown = np.clip(table.different_people[clear], mesh.norm.vmin, mesh.norm.vmax)
        assert np.allclose(drawn.compressed(), shown)
        corners = mesh.get_coordinates()
        for along, axis in ((corners[0, :, 0], 0), (corners[:, 0, 1], 1)):
            edges = even_edges((10, 10), (4, 3))[axis]
            assert np.allclose(along, DOMAIN.axes[axis].from_cells(edges))


def test_a_picture_of_nobody_says_so() -> None:
    pytest.importorskip("matplotlib")
    from htf import Layer
    from htf.maps.picture import figure_of

    nobody = PeopleByBox((2, 2), [[0] * 4] * 4)
    table = measure_distinct(nobody, "0.2", noise="seeded:1")  # an interval of 2 misses 1 in 40
    (ax,) = figure_of([Layer.distinct(made(table, noise="seeded:2"))]).axes
    assert "nothing rises above the noise" in [text.get_text() for text in ax.texts]


@pytest.mark.parametrize("name", ["map.html", "map.png", "map.svg"])
def test_the_command_draws_the_table(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("maplibre")
    made().save(tmp_path / "r.parquet")
    asked = ["map", str(tmp_path / "r.parquet"), "--distinct", "-o", str(tmp_path / name)]
    assert run([*asked, "--boxes"]) == 0
    assert "12 boxes of different people" in capfd.readouterr().out
    if name == "map.png":
        return
    text = (tmp_path / name).read_text(encoding="utf-8")
    assert "different people in 4 x 3 boxes" in text
    if name == "map.html":
        data = json.loads(text.split('id="data">')[1].split("</script>")[0])
        assert (data["unit"], data["per_box"], data["boxes"]) == ("box", True, True)
        assert data["panels"][0]["quantity"] == "different people"
        assert data["panels"][0]["steps"][0][0]["length"] == 12


@pytest.mark.parametrize("name", ["map.html", "map.png"])
@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["r.parquet"], "leave out a second release"),
        (["--difference"], "leave out --difference"),
        (["--by", "x"], "leave out --by"),
        (["--where", "x=0:1"], "leave out --where"),
        (["--axes", "y,x"], "leave out --axes"),
        ([], "this release has no table of different people"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    name: str,
    more: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("maplibre")
    monkeypatch.chdir(tmp_path)
    publish(matrix(), 1, "ug", noise="fast").save("r.parquet")
    assert run(["map", "r.parquet", *more, "--distinct", "-o", name]) == 2
    assert says in " ".join(capfd.readouterr().err.split())
    assert not (tmp_path / name).exists()
