"""Changes from one release to another: numbers that agree, intervals that hold, marks that are seldom false."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import htf
from htf import Domain, FrequencyMatrix, InputError, Release, publish
from htf.cli.main import run
from htf.query.change import chance_beyond, changes_between, mark_beyond_noise, unmarked_note
from support import grid

CELLS = 64


def squares(cells: int, number: int) -> np.ndarray:
    edges = np.linspace(0, cells, number + 1)
    x, y = (axis.ravel() for axis in np.meshgrid(edges[:-1], edges[:-1], indexing="ij"))
    return np.column_stack([x, y, x + cells / number, y + cells / number])


@pytest.fixture(scope="module")
def pair() -> tuple[Release, Release]:
    domain = Domain.from_bounds(0, 0, 1, 1, cells=CELLS)
    counts = np.random.default_rng(3).poisson(np.random.default_rng(2).gamma(0.5, 20, (CELLS,) * 2))
    matrices = (FrequencyMatrix.from_dense(domain, times * counts) for times in (1, 2))
    before, after = (publish(one, 1, noise=f"seeded:{n}") for n, one in enumerate(matrices))
    return before, after


def test_the_change_is_the_difference_of_the_counts(pair: tuple[Release, Release]) -> None:
    before, after = pair
    rows = np.array([[0.1, 0.1, 0.4, 0.4], [0.3, 0.2, 0.9, 0.8], [0, 0, 1, 1]])
    changes = after.count(rows).minus(before.count(rows))
    assert np.array_equal(changes.before, before.count(rows).count)
    assert np.array_equal(changes.after, after.count(rows).count)
    assert np.array_equal(changes.change, changes.after - changes.before)
    assert np.all((changes.low <= changes.change) & (changes.change <= changes.high))
    assert changes.percent == pytest.approx(100 * (changes.after / changes.before - 1))
    assert np.all(
        (changes.percent_low <= changes.percent) & (changes.percent <= changes.percent_high)
    )
    assert changes.beyond_noise.all()


def test_turned_round_it_is_the_opposite(pair: tuple[Release, Release]) -> None:
    before, after = pair
    there, back = after.count().minus(before.count()), before.count().minus(after.count())
    assert back.change == -there.change
    assert back.low == pytest.approx(-there.high)
    assert back.high == pytest.approx(-there.low)
    assert np.array_equal(there.beyond_noise, back.beyond_noise)


@given(st.lists(st.floats(0, 20), min_size=1, max_size=30))
def test_marks_are_those_of_holm(deviations: list[float]) -> None:
    """Against the rule as written: go from the least likely on, and stop at the first that fails."""
    raw = np.array(deviations)
    found = mark_beyond_noise(raw, np.full(len(raw), 1.96))
    chances = chance_beyond(raw)
    expected, going = np.zeros(len(raw), bool), True
    for rank, place in enumerate(np.argsort(chances, kind="stable")):
        going = going and chances[place] <= 0.05 / (len(raw) - rank)
        expected[place] = going
    assert np.array_equal(found, expected)


def test_a_chance_is_never_too_small() -> None:
    """Not below that of the normal law, nor of the Laplace law of the same variance (by their formulas)."""
    assert chance_beyond(np.array([0.0, 1.96])) == pytest.approx([1.0, np.exp(-1.96 * np.sqrt(2))])
    assert chance_beyond(np.array([1.0]))[0] >= 0.3173
    assert np.all(np.diff(chance_beyond(np.linspace(0, 9, 200))) <= 0)


@pytest.mark.slow
def test_nothing_changed_and_nothing_is_marked() -> None:
    """150 pairs of releases of one map, 64 squares each. Tables with a false mark may be 5 % of them; more than 15 of
    150 would have a chance below one in a hundred."""
    cells = grid(CELLS, CELLS)
    counts = np.random.default_rng(1).poisson(3.0, (CELLS, CELLS))
    matrix, rows = FrequencyMatrix.from_dense(cells, counts), squares(CELLS, 8)
    wrong = held = 0
    for seed in range(150):
        one, other = (publish(matrix, "0.3", noise=f"seeded:{2 * seed + k}") for k in (0, 1))
        changes = one.count(rows).minus(other.count(rows))
        wrong += bool(changes.beyond_noise.any())
        held += int(np.sum((changes.low <= 0) & (changes.high >= 0)))
    assert wrong <= 15
    assert held / (150 * 64) >= 0.93


def test_what_is_not_marked_is_explained_where_it_occurs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`-216 to -7 ... no` beside a rule of which the table says nothing looks like a mistake."""
    counts = np.random.default_rng(1).poisson(3.0, (CELLS, CELLS))
    matrix = FrequencyMatrix.from_dense(Domain.from_bounds(0, 0, 1, 1, cells=CELLS), counts)
    for seed in range(4):
        publish(matrix, "0.3", noise=f"seeded:{seed}").save(tmp_path / f"{seed}.parquet")
    made = [Release.load(tmp_path / f"{seed}.parquet") for seed in range(4)]
    seen = set()
    for one, other in ((0, 1), (1, 2), (2, 3)):
        changes = made[other].count(squares(1, 8)).minus(made[one].count(squares(1, 8)))
        is_odd = ~changes.beyond_noise & ((changes.low > 0) | (changes.high < 0))
        assert run(["compare", *(str(tmp_path / f"{n}.parquet") for n in (one, other))]) == 0
        told = " ".join(capsys.readouterr().out.split())
        assert ("no mark although the interval leaves out zero" in told) == is_odd.any()
        assert ("Holm's rule" in told) == is_odd.any()
        seen.add(bool(is_odd.any()))
    assert True in seen
    low, high, marked = np.array([1.0, -1.0]), np.array([9.0, 9.0]), np.array([True, False])
    assert unmarked_note(low, high, marked) is None
    alone = unmarked_note(low[:1], high[:1], ~marked[:1])
    assert alone is not None
    assert "Holm" not in alone


def test_a_change_is_found() -> None:
    counts = np.random.default_rng(1).poisson(3.0, (CELLS, CELLS))
    more = counts.copy()
    more[:8, :8] += 20
    made = [
        publish(FrequencyMatrix.from_dense(grid(CELLS, CELLS), one), 1, noise=f"seeded:{seed}")
        for seed, one in enumerate((counts, more))
    ]
    changes = made[1].count(squares(CELLS, 8)).minus(made[0].count(squares(CELLS, 8)))
    assert changes.beyond_noise.tolist() == [True] + 63 * [False]
    assert changes.low[0] < 8 * 8 * 20 < changes.high[0]


def test_polygons(pair: tuple[Release, Release]) -> None:
    before, after = pair
    disc = shapely.Point(0.5, 0.5).buffer(0.2)
    changes = after.count_polygons(disc).minus(before.count_polygons(disc))
    counts = [one.count_polygons(disc).count[0] for one in (before, after)]
    assert changes.change[0] == counts[1] - counts[0]
    with pytest.raises(InputError, match="to different questions: ask both the same"):
        after.count([0.3, 0.3, 0.7, 0.7]).minus(before.count_polygons(disc))


def test_where_there_was_nothing_there_is_no_percentage() -> None:
    asked = [[0, 0, 1, 1], [0, 1, 1, 2]]
    domain = grid(2, 2)
    made = [
        publish(FrequencyMatrix.from_dense(domain, counts), 1, "singular", noise="seeded:1")
        for counts in ([[0, 900], [0, 0]], [[500, 900], [0, 0]])
    ]
    found = made[1].count(asked).minus(made[0].count(asked))
    assert not np.isfinite(found.percent_low[0])
    assert found.percent[1] == pytest.approx(0, abs=1)


def test_what_does_not_compare_is_refused(pair: tuple[Release, Release]) -> None:
    before, after = pair
    people = replace(before.protection, unit="person", max_records=3)
    with pytest.raises(InputError, match="so their difference means nothing"):
        after.count().minus(replace(before, protection=people).count())
    wide = Domain.from_bounds(0, 0, 2, 1, cells=(8, 4))
    other = publish(FrequencyMatrix.from_dense(wide, np.full((8, 4), 90)), 1, noise="seeded:1")
    small = publish(
        FrequencyMatrix.from_dense(Domain.from_bounds(0, 0, 1, 1, cells=4), np.full((4, 4), 90)),
        1,
        noise="seeded:2",
    )
    beyond = [[0, 0, 1, 1], [0.5, 0, 1.5, 1]]
    with pytest.raises(InputError, match="different maps: name the boxes"):
        other.count().minus(small.count())
    with pytest.raises(
        InputError, match="question 2 lies on one of the maps more than on the other"
    ):
        other.count(beyond).minus(small.count(beyond))
    assert len(other.count([0, 0, 1, 1]).minus(small.count([0, 0, 1, 1]))) == 1
    with pytest.raises(InputError, match="the other answer must be an Answer"):
        after.count().minus(before)  # type: ignore[arg-type]


def test_the_command(
    pair: tuple[Release, Release], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = tmp_path / "before.parquet", tmp_path / "after.parquet"
    pair[0].save(before)
    pair[1].save(after)
    assert run(["compare", str(before), str(after)]) == 0
    told = capsys.readouterr().out
    assert "more than noise" in told
    assert "any of these marks is false is at most 5 %" in " ".join(told.split())
    assert run(["compare", str(before), str(after), "--box", "0.1,0.1,0.6,0.6", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    changes = pair[1].count([0.1, 0.1, 0.6, 0.6]).minus(pair[0].count([0.1, 0.1, 0.6, 0.6]))
    assert row["change"] == changes.change[0]
    assert row["beyond_noise"] is True
    for name in ("changes.csv", "changes.parquet", "changes.gpkg", "changes.xlsx"):
        assert run(["compare", str(before), str(after), "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).exists()
        assert run(["compare", str(before), str(after), "-o", str(tmp_path / name)]) == 2
    assert run(["compare", str(before), str(after), "-o", str(after), "--overwrite"]) == 2
    text = (tmp_path / "changes.csv").read_text()
    assert "inf" not in text
    assert "nan" not in text


def test_polygons_by_the_command(
    pair: tuple[Release, Release], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, one in zip(("a.parquet", "b.parquet"), pair, strict=True):
        one.save(tmp_path / name)
    shape = shapely.to_geojson(shapely.box(0.2, 0.2, 0.7, 0.6))
    feature = {"type": "Feature", "properties": {"name": "Old Town"}, "geometry": json.loads(shape)}
    layer = {"type": "FeatureCollection", "features": [feature]}
    (tmp_path / "layer.geojson").write_text(json.dumps(layer))
    asked = ["compare", str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")]
    asked += ["--polygons", str(tmp_path / "layer.geojson")]
    assert run(asked) == 0
    assert "Old Town" in capsys.readouterr().out
    assert run([*asked, "--box", "0,0,1,1"]) == 2


def test_zones_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = htf.Names.of({"kind": ["tram", "bus", "boat"]})
    domain = Domain((htf.Axis.named("kind", names),))
    for name, counts in (("a", [700, 300, 20]), ("b", [700, 900, 20])):
        matrix = FrequencyMatrix.from_dense(domain, counts)
        publish(matrix, 1, "singular", noise="seeded:1").save(tmp_path / f"{name}.parquet")
    files = [str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")]
    assert run(["compare", *files, "--by", "kind", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["kind"], row["beyond_noise"]) for row in rows] == [
        ("tram", False),
        ("bus", True),
        ("boat", False),
    ]


def test_answers_to_other_questions_are_refused(pair: tuple[Release, Release]) -> None:
    before, after = pair
    one, two = after.count([0, 0, 1, 1]), before.count([[0, 0, 1, 1]])
    assert len(changes_between(one, two)) == 1


def test_maps_in_different_systems_or_with_other_axes_are_refused() -> None:
    made = []
    for crs in ("EPSG:32617", "EPSG:32618"):
        domain = Domain.from_bounds(0, 0, 1e5, 1e5, cells=4, crs=crs)
        made.append(
            publish(FrequencyMatrix.from_dense(domain, np.full((4, 4), 90)), 1, noise="seeded:1")
        )
    with pytest.raises(InputError, match="different reference systems"):
        made[0].count([0, 0, 5e4, 5e4]).minus(made[1].count([0, 0, 5e4, 5e4]))
    other = []
    for name, cells in (("hour", 4), ("weekday", 7)):
        axes = (*grid(4, 4).axes, htf.Axis(name, 0, cells, cells))
        matrix = FrequencyMatrix.from_dense(Domain(axes), np.full((4, 4, cells), 9))
        other.append(publish(matrix, 1, noise="seeded:1"))
    with pytest.raises(InputError, match="different further axes"):
        other[0].count().minus(other[1].count())
