"""Maps of a series: one file with all periods and their changes, and small multiples."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from htf import Domain, FrequencyMatrix, InputError, Recipe, Series
from htf.cli.main import run
from htf.frame.domain import Axis
from htf.maps.browser.page import page_of
from htf.maps.browser.rectangles import MOST_SQUARES, grids_of_changes
from htf.maps.kinds import Grid
from htf.maps.layer import Layer
from htf.maps.picture import figure_of
from htf.maps.scale import difference_limits
from htf.maps.steps import MOST_PANELS
from zoning import COUNTS, layer

DOMAIN = Domain.from_bounds(4, 52, 5, 52.6, cells=64)
MONTHS = ("2026-01", "2026-02", "2026-04")  # March was not released


def lumpy(domain: Domain, busy: int, extra: int) -> FrequencyMatrix:
    """The same everywhere but in one block, which has more."""
    counts = np.full(domain.shape, 3)
    counts[8:16, 8:16] += busy
    counts[40:44, 40:44] += extra
    return FrequencyMatrix.from_dense(domain, counts)


def series_at(folder: Path, domain: Domain = DOMAIN, months: tuple[str, ...] = MONTHS) -> Series:
    recipe = Recipe(domain=domain, epsilon=1)
    made = Series.create(folder, recipe, "month", releases=40)
    for number, month in enumerate(months):
        made.add(lumpy(domain, 100, 200 * (number % 2)), month, noise="fast")
    return made


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Series:
    """Three months. In the second there are 3,200 records more in one place, and in the third they are gone."""
    return series_at(tmp_path_factory.mktemp("maps") / "year")


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.+?)</script>', text)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def numbers(packed: str, kind: str = "<f4") -> Any:
    return np.frombuffer(zlib.decompress(base64.b64decode(packed)), kind)


def joined(sheets: list[dict[str, str]], name: str, kind: str = "<f4") -> Any:
    """A column of the squares of all sizes."""
    return np.concatenate([numbers(sheet[name], kind) for sheet in sheets])


@pytest.fixture(scope="module")
def page(year: Series) -> str:
    pytest.importorskip("maplibre")
    return page_of(Layer.periods(year))


def test_each_period_has_its_counts_and_all_have_one_scale(page: str, year: Series) -> None:
    data = data_of(page)
    assert data["steps"] == list(MONTHS)
    assert data["at"] == 2
    sheets = [sheet for (sheet,) in data["panels"][0]["steps"]]
    assert {tuple(sheet["limits"]) for sheet in sheets} == {tuple(sheets[0]["limits"])}
    for month, packed in zip(MONTHS, sheets, strict=True):
        release = year.release(month)
        assert packed["length"] == len(release)
        low, high = (edges / 64 for edges in (release.low, release.high))
        scale = np.array([1, 0.6])
        boxes = np.hstack([[4, 52] + low * scale, [4, 52] + high * scale])
        answers = release.count(boxes)
        for name in ("count", "low", "high"):
            off = np.abs(numbers(packed[name]) - getattr(answers, name))
            assert np.all(off <= answers.std_error / 32 + 1e-3)
        assert (numbers(packed["clear"], "u1") == 1).tolist() == (answers.low > 0).tolist()


def test_changes_are_those_of_the_series_and_marked_all_together(page: str, year: Series) -> None:
    data = data_of(page)
    layer = Grid(year.release(MONTHS[0]), "first")
    grids = grids_of_changes(layer)
    assert [grid.shape for grid in grids] == [(16, 16), (32, 32)]
    assert max(grids[-1].shape) == MOST_SQUARES
    rows = np.vstack([layer.asked.rows(grid) for grid in grids])
    table = year.count(rows).changes().to_pandas()
    assert data["changes"][0] is None
    for sheets, month in zip(data["changes"][1:], MONTHS[1:], strict=True):
        part = table[table.period == month]
        step = (part.high - part.low) / 64 + 1e-3
        pairs = {"first": "after", "second": "before", "low": "low", "high": "high"}
        for name, column in pairs.items():
            assert np.all(np.abs(joined(sheets, name) - part[column]) <= step)
        marks = joined(sheets, "clear", "u1").astype(bool)
        assert marks.tolist() == part.beyond_noise.tolist()
        assert 0 < marks.sum() < 60  # the one place that changed, in squares of both sizes


def test_changes_have_a_scale_for_each_size_of_squares(page: str) -> None:
    data = data_of(page)
    for number, grid in enumerate(data["shapes"]):
        area = numbers(grid["area"])
        sheets = [sheets[number] for sheets in data["changes"][1:]]
        assert [sheet["shape"] for sheet in sheets] == [number] * 2
        density = [(numbers(one["first"]) - numbers(one["second"])) / area for one in sheets]
        marks = [numbers(one["clear"], "u1").astype(bool) for one in sheets]
        expected = difference_limits(np.concatenate(density), np.concatenate(marks))
        for sheet in sheets:
            assert sheet["limits"] == list(expected)
    assert data["shapes"][0]["zoom"][1] == data["shapes"][1]["zoom"][0]


def test_zones_change_too_and_are_marked_all_together(tmp_path: Path) -> None:
    """In tracts and districts, by one rule for all of the file."""
    pytest.importorskip("maplibre")
    domain = Domain((Axis.named("zone", layer()),), "OGC:CRS84")
    recipe = Recipe(domain=domain, epsilon=1)
    made = Series.create(tmp_path / "tracts", recipe, "month", releases=40)
    for month, extra in zip(MONTHS, (0, 900, 0), strict=True):
        counts = COUNTS + extra * (np.arange(len(COUNTS)) == 4)
        made.add(FrequencyMatrix.from_dense(domain, counts), month, noise="fast")
    page = page_of(Layer.periods(made))
    data = data_of(page)
    assert [level["name"] for level in data["shapes"]] == ["tract", "district"]
    assert data["changes"][0] is None
    edges = [np.arange(12), 4 * np.arange(3)], [np.arange(1, 13), 4 * np.arange(1, 4)]
    rows = np.column_stack([np.concatenate(ends) for ends in edges]).astype(float)
    table = made.count(rows).changes().to_pandas()
    for sheets, month in zip(data["changes"][1:], MONTHS[1:], strict=True):
        part = table[table.period == month]
        step = (part.high - part.low) / 64 + 1e-3
        for name, column in {"first": "after", "second": "before", "low": "low"}.items():
            assert np.all(np.abs(joined(sheets, name) - part[column]) <= step)
        marks = joined(sheets, "clear", "u1").astype(bool)
        assert marks.tolist() == part.beyond_noise.tolist()
        assert marks[4]
        assert marks[13]
    assert "any zone of any month is coloured without reason is at most 5 %" in page
    level = data_of(page_of(Layer.periods(made, level="district")))["level"]
    assert level == 1


def test_the_file_says_what_the_series_promises(page: str, year: Series) -> None:
    for sentence in year.plan.told:
        assert sentence in page
    assert "2026-01 to 2026-04,  ε = 1 for each month" in page
    assert "any square of any month is coloured without reason is at most 5 %" in page
    assert "connect-src 'none'" in page


def test_one_release_has_no_change(tmp_path: Path) -> None:
    pytest.importorskip("maplibre")
    text = page_of(Layer.periods(series_at(tmp_path / "new", months=("2026-01",))))
    assert data_of(text)["changes"] is None
    assert "Changes are in squares" not in text


def test_a_correction_stands_for_what_it_corrects(tmp_path: Path) -> None:
    pytest.importorskip("maplibre")
    recipe = Recipe(domain=DOMAIN, epsilon="0.5")
    made = Series.create(tmp_path / "corrected", recipe, "month", releases=2, total=1)
    made.add(lumpy(DOMAIN, 100, 0), "2026-01", noise="fast")
    made.add(lumpy(DOMAIN, 5000, 0), "2026-01", noise="fast", correct=True)
    (((packed,),)) = data_of(page_of(Layer.periods(made)))["panels"][0]["steps"]
    assert numbers(packed["count"]).sum() == pytest.approx(64 * 5000 + 3 * 64**2, rel=0.05)


def test_an_empty_series_is_refused(tmp_path: Path) -> None:
    made = series_at(tmp_path / "empty", months=())
    with pytest.raises(InputError, match="has no release yet: add one"):
        Layer.periods(made)


def plot(series: Series, **options: Any) -> Any:
    pytest.importorskip("matplotlib")
    return figure_of(Layer.periods(series, **options))


def test_small_multiples_have_one_scale(year: Series) -> None:
    figure = plot(year)
    panels = [ax for ax in figure.axes if ax.images]
    assert [ax.get_title() for ax in panels] == list(MONTHS)
    scales = {(ax.images[0].norm.vmin, ax.images[0].norm.vmax) for ax in panels}
    assert len(scales) == 1
    assert figure.get_suptitle() == "year: 2026-01 to 2026-04,  ε = 1 for each month"
    assert "ε-DP per record" in figure.get_supxlabel()


def test_the_latest_24_are_drawn(tmp_path: Path) -> None:
    months = tuple(f"{2024 + number // 12}-{number % 12 + 1:02d}" for number in range(26))
    small = Domain.from_bounds(4, 52, 5, 53, cells=64)
    recipe = Recipe(domain=small, epsilon=1)
    made = Series.create(tmp_path / "long", recipe, "month", releases=40)
    first = made.add(lumpy(small, 100, 0), months[0], noise="fast")
    for month in months[1:]:
        first.save(made.folder / f"{month}.parquet")  # the map is what is looked at here
    figure = plot(made)
    assert [ax.get_title() for ax in figure.axes if ax.images] == list(months[2:])
    assert "2024-03 to 2026-02" in figure.get_suptitle()
    assert "the latest 24 of 26 months" in figure.get_suptitle()


def test_two_periods_are_subtracted_by_name(year: Series) -> None:
    before, after, _ = Layer.periods(year)
    change = after.minus(before)
    assert change.name == "2026-02 minus 2026-01"
    assert figure_of([change]).axes[0].get_title() == change.name
    for layers, says in (
        ([before, change], "steps of one thing, or things to compare"),
        ([change, change], "a difference is drawn alone"),
        ([Layer(before.release, "bare")], "make one with htf.Layer.of"),
        ([], "there is nothing to draw"),
    ):
        with pytest.raises(InputError, match=says):
            figure_of(layers)


def test_further_axes_are_summed(tmp_path: Path) -> None:
    pytest.importorskip("maplibre")
    axes = (Axis("x", 4, 5, 64), Axis("y", 52, 53, 64), Axis("hour", 0, 24, 4))
    made = series_at(tmp_path / "hours", Domain(axes, "OGC:CRS84"), MONTHS[:2])
    text = page_of(Layer.periods(made, where={"hour": (6, 12)}))
    assert "hour 6 to 12" in text or "hour 6:12" in text
    data = data_of(text)
    release = made.release(MONTHS[1])
    whole = release.count(where={"hour": (6, 12)}).count[0]
    assert numbers(data["panels"][0]["steps"][1][0]["count"]).sum() == pytest.approx(
        whole, rel=0.02
    )
    assert data["panels"][0]["outlines"] is None
    assert "hour" in plot(made, where={"hour": (6, 12)}).get_suptitle()


def test_the_command_writes_both(
    year: Series, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("maplibre")
    pytest.importorskip("matplotlib")
    for name, start in (
        ("year.html", b"<!DOCTYPE html>"),
        ("year.png", b"\x89PNG"),
        ("year.svg", b"<?xml"),
    ):
        out = tmp_path / name
        assert run(["map", str(year.folder), "-o", str(out)]) == 0
        assert out.read_bytes().startswith(start)
        assert f"{name}: 3 months." in capfd.readouterr().out


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["-o", "m.html", "--difference"], "leave out --difference (the page has a switch"),
        (["-o", "m.html", "--by", "x"], "leave out --by, or draw one of its releases"),
        (["-o", "m.html", "--level", "tract"], "a level is one of zones"),
        (["-o", "m.html", "--distinct"], "leave out --distinct"),
        (["-o", "m.png", "--boxes"], "panels need a figure of their own, and cannot show outlines"),
        (["-o", "m.png", "--style", "https://tiles.example"], "--style is for maps in a browser"),
        (["{folder}/2026-01.parquet", "-o", "m.html"], "is a series, which is drawn alone"),
        (["-o", "m.html", "--axes", "x,z"], "'z'"),
    ],
)
def test_mistakes(
    more: list[str],
    words: str,
    year: Series,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = str(year.folder)
    assert run(["map", folder, *(one.format(folder=folder) for one in more)]) == 2
    assert words in capfd.readouterr().err
    assert not list(tmp_path.glob("m.*"))


def test_the_commands_of_the_page_work(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("maplibre")
    pytest.importorskip("matplotlib")
    page = (Path(__file__).parents[2] / "docs/maps.md").read_text()
    section = page.partition("## A series of maps")[2].partition("\n## ")[0]
    commands = re.findall(r"^htf map .*$", section, re.M)
    assert len(commands) == 2
    monkeypatch.chdir(tmp_path)
    series_at(Path("city"), months=MONTHS[:2])
    for command in commands:
        assert run(command.split()[1:]) == 0
    assert capfd.readouterr().out.count("Wrote months.") == 2
    assert f"latest {MOST_PANELS} periods" in section
