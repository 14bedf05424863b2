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

from htf import Domain, FrequencyMatrix, InputError, Series, SeriesPlan
from htf.cli.main import run
from htf.frame.domain import Axis
from htf.maps.browser.document import Wish
from htf.maps.browser.series_document import MOST_SQUARES, grids_of_changes, html_series
from htf.maps.comparison import rows_of_grid
from htf.maps.plot_panels import MOST_PANELS
from htf.maps.scales import difference_limits

XY = ("x", "y")
DOMAIN = Domain.from_bounds(4, 52, 5, 52.6, cells=64)
MONTHS = ("2026-01", "2026-02", "2026-04")  # March was not released


def lumpy(domain: Domain, busy: int, extra: int) -> FrequencyMatrix:
    """The same everywhere but in one block, which has more."""
    counts = np.full(domain.shape, 3)
    counts[8:16, 8:16] += busy
    counts[40:44, 40:44] += extra
    return FrequencyMatrix.from_dense(domain, counts)


def series_at(folder: Path, domain: Domain = DOMAIN, months: tuple[str, ...] = MONTHS) -> Series:
    plan = SeriesPlan.of(domain, "month", "record", total=1, releases=40)
    made = Series.create(folder, plan)
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


@pytest.fixture(scope="module")
def page(year: Series) -> str:
    pytest.importorskip("maplibre")
    return html_series(year, Wish())


def test_each_period_has_its_counts_and_all_have_one_scale(page: str, year: Series) -> None:
    data = data_of(page)
    assert [one["name"] for one in data["periods"]] == list(MONTHS)
    least, most = data["limits"]
    assert 0 < least < most
    for packed in data["periods"]:
        release = year.release(packed["name"])
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
    data = data_of(page)["changes"]
    grids = grids_of_changes(year.release(MONTHS[0]), Wish())
    assert [grid.shape for grid in grids] == [(16, 16), (32, 32)]
    assert max(grids[-1].shape) == MOST_SQUARES
    rows = np.vstack([rows_of_grid(year.release(MONTHS[0]), XY, None, grid) for grid in grids])
    table = year.count(rows).changes().to_pandas()
    assert [one["since"] for one in data["periods"]] == ["2026-01", "2026-02"]
    for packed, month in zip(data["periods"], MONTHS[1:], strict=True):
        part = table[table.period == month]
        step = (part.high - part.low) / 64 + 1e-3
        pairs = {"first": "after", "second": "before", "low": "low", "high": "high"}
        for name, column in pairs.items():
            assert np.all(np.abs(numbers(packed[name]) - part[column]) <= step)
        marks = numbers(packed["clear"], "u1").astype(bool)
        assert marks.tolist() == part.beyond_noise.tolist()
        assert 0 < marks.sum() < 60  # the one place that changed, in squares of both sizes


def test_changes_have_a_scale_for_each_size_of_squares(page: str) -> None:
    data = data_of(page)["changes"]
    start = 0
    for grid in data["grids"]:
        area = numbers(grid["area"])
        part = slice(start, start + grid["length"])
        start += grid["length"]
        density, marks = [], []
        for one in data["periods"]:
            density.append((numbers(one["first"]) - numbers(one["second"]))[part] / area)
            marks.append(numbers(one["clear"], "u1")[part].astype(bool))
        assert grid["limits"] == list(
            difference_limits(np.concatenate(density), np.concatenate(marks))
        )
    assert data["grids"][0]["zoom"][1] == data["grids"][1]["zoom"][0]


def test_the_file_says_what_the_series_promises(page: str, year: Series) -> None:
    for sentence in year.plan.told:
        assert sentence in page
    assert "2026-01 to 2026-04,  ε = 1 for each month" in page
    assert "any square of any month is coloured without reason is at most 5 %" in page
    assert "connect-src 'none'" in page


def test_one_release_has_no_change(tmp_path: Path) -> None:
    pytest.importorskip("maplibre")
    text = html_series(series_at(tmp_path / "new", months=("2026-01",)), Wish())
    assert data_of(text)["changes"] is None
    assert "Changes are in squares" not in text


def test_a_correction_stands_for_what_it_corrects(tmp_path: Path) -> None:
    pytest.importorskip("maplibre")
    plan = SeriesPlan.of(DOMAIN, "month", "record", total=1, releases=2, each="0.5")
    made = Series.create(tmp_path / "corrected", plan)
    made.add(lumpy(DOMAIN, 100, 0), "2026-01", noise="fast")
    made.add(lumpy(DOMAIN, 5000, 0), "2026-01", noise="fast", correct=True)
    (packed,) = data_of(html_series(made, Wish()))["periods"]
    assert numbers(packed["count"]).sum() == pytest.approx(64 * 5000 + 3 * 64**2, rel=0.05)


def test_an_empty_series_is_refused(tmp_path: Path) -> None:
    made = series_at(tmp_path / "empty", months=())
    for draw in (lambda: html_series(made, Wish()), lambda: plot(made)):
        with pytest.raises(InputError, match="has no release yet: add one"):
            draw()


def plot(series: Series, **options: Any) -> Any:
    pytest.importorskip("matplotlib")
    from htf.maps.plot_series import plot_series

    return plot_series(series, **options)


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
    plan = SeriesPlan.of(small, "month", "record", total=1, releases=40)
    made = Series.create(tmp_path / "long", plan)
    first = made.add(lumpy(small, 100, 0), months[0], noise="fast")
    for month in months[1:]:
        first.save(made.folder / f"{month}.parquet")  # the map is what is looked at here
    figure = plot(made)
    assert [ax.get_title() for ax in figure.axes if ax.images] == list(months[2:])
    assert "2024-03 to 2026-02" in figure.get_suptitle()
    assert "the latest 24 of 26 months" in figure.get_suptitle()


def test_further_axes_are_summed(tmp_path: Path) -> None:
    pytest.importorskip("maplibre")
    axes = (Axis("x", 4, 5, 64), Axis("y", 52, 53, 64), Axis("hour", 0, 24, 4))
    made = series_at(tmp_path / "hours", Domain(axes, "OGC:CRS84"), MONTHS[:2])
    text = html_series(made, Wish(where={"hour": (6, 12)}))
    assert "hour 6 to 12" in text or "hour 6:12" in text
    data = data_of(text)
    release = made.release(MONTHS[1])
    whole = release.count(where={"hour": (6, 12)}).count[0]
    assert numbers(data["periods"][1]["count"]).sum() == pytest.approx(whole, rel=0.02)
    assert data["are_leaves"] is False
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
        (["-o", "m.html", "--difference"], "without --difference (the page has a switch"),
        (["-o", "m.html", "--by", "x"], "a page of a series is drawn without --by"),
        (["-o", "m.html", "--level", "tract"], "without --level"),
        (["-o", "m.html", "--distinct"], "without --distinct"),
        (["-o", "m.png", "--boxes"], "a picture of a series is drawn without --boxes"),
        (["-o", "m.png", "--style", "https://tiles.example"], "without --style"),
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
