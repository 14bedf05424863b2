"""The report on a release: three pages that say what the release says, for every kind of release."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htf
from htf import BudgetFile, Domain, FrequencyMatrix, InputError, Protection, Release, publish
from htf.cli.main import run
from htf.errors import OutputError
from htf.forecasts.release_errors import AreaErrors, ReleaseErrors, errors_of, nearest_round
from htf.frame.domain import Axis
from htf.report.document import html_report, write_report
from htf.report.html import element, markup
from htf.report.lawyer import told_factor
from htf.report.sizes import LeafSizes
from htf.report.statistician import MOST_LINES
from htf.report.subject import Subject, read_subject
from htf.verification import Check, verify
from support import city_matrix, people_matrix
from support_zones import zone_domain, zone_release

BOUNDS = (4.0, 52.0, 4.5, 52.3)


def town(
    *further: Axis, points: int = 4000, protection: Protection | None = None
) -> FrequencyMatrix:
    domain = Domain((*Domain.from_bounds(*BOUNDS, cells=32).axes, *further), "OGC:CRS84")
    generator = np.random.default_rng(3)
    cells = [generator.binomial(axis.cells - 1, 0.3, points) for axis in domain.axes]
    made = FrequencyMatrix.from_cells(domain, np.array(cells))
    if protection is None:
        return made
    return FrequencyMatrix(domain, made.exact_coordinates, made.exact_counts, protection)


def weighed() -> FrequencyMatrix:
    return town(protection=Protection(weight="riders", max_weight=4))


def with_distinct() -> Release:
    rides = {"lon": [0.5, 0.6, 1.5] * 40, "lat": [0.5, 0.4, 1.5] * 40, "rider": list(range(120))}
    domain = Domain.from_bounds(0, 0, 2, 2, cells=16)
    people = htf.read_people_by_box(rides, domain, 2, user="rider")
    distinct = htf.measure_distinct(people, 1, noise="seeded:1")
    matrix = htf.read_points(rides, domain, user="rider")
    return publish(matrix, 2, bought=(distinct,), noise="seeded:2")


KINDS: dict[str, Callable[[], Release]] = {
    "records": lambda: publish(town(), "0.5", noise="seeded:1"),
    "hours": lambda: publish(town(Axis("hour", 0, 24, 4)), 1, noise="seeded:1"),
    "people": lambda: publish(people_matrix(), 1, noise="seeded:1"),
    "split person-months": lambda: publish(people_matrix(per="month"), 1, noise="seeded:1"),
    "distinct": with_distinct,
    "weights": lambda: publish(weighed(), 1, noise="seeded:1"),
    "zones": lambda: zone_release(zone_domain()),
    "names": lambda: publish(
        FrequencyMatrix.from_dense(
            Domain((Axis.named("kind", htf.Names.of({"kind": ["tram", "bus"]})),)), [70, 30]
        ),
        1,
        "singular",
        noise="seeded:1",
    ),
    "no ground": lambda: publish(city_matrix(16), 1, noise="seeded:1"),
}


@pytest.fixture
def saved(tmp_path: Path) -> Callable[..., Path]:
    def save(release: Release, name: str = "town.parquet") -> Path:
        release.save(tmp_path / name)
        return tmp_path / name

    return save


@pytest.fixture
def without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes half a second. Other tests look at the pictures."""
    blank = "data:image/png;base64,"
    monkeypatch.setattr("htf.report.board.map_picture", lambda _: blank)
    monkeypatch.setattr("htf.report.statistician.size_picture", lambda *_: blank)


def text_of(subject: Subject) -> list[str]:
    """What each page says."""
    pages = html_report(subject).split("<article")[1:]
    return [
        html.unescape(re.sub(r"<[^>]+>", " ", page.partition(">")[2])).replace("\u00a0", " ")
        for page in pages
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_release_has_three_pages(kind: str, saved: Callable[..., Path]) -> None:
    release = KINDS[kind]()
    path = saved(release)
    subject = read_subject(path, None, None, 1)
    board, lawyer, statistician = text_of(subject)
    for name in (release.protection.name, str(release.epsilon)):
        assert name in board
        assert name in lawyer
    assert all("NOT PRIVATE" in page for page in (board, lawyer, statistician))
    assert release.quantity in board
    assert re.sub(r"\s+", " ", release.statement) in re.sub(r"\s+", " ", lawyer)
    assert release.mechanism in statistician
    assert subject.sha256 in statistician
    fit = MOST_LINES if len(release.ledger) <= MOST_LINES else MOST_LINES - 1
    for line in release.ledger[:fit]:
        assert line.label in statistician
    for check in verify(path):
        assert check.name in statistician
    assert "WRONG" not in statistician


def test_the_page_fetches_nothing_and_runs_nothing(saved: Callable[..., Path]) -> None:
    text = html_report(read_subject(saved(KINDS["records"]()), None, None, 0))
    assert "default-src 'none'" in text
    assert "<script" not in text
    assert re.findall(r'(?:src|href)="(?!data:image/png;base64,)', text) == []
    assert "url(" not in text
    assert len(re.findall('src="data:image/png', text)) == 2  # the map, and sizes of leaves


@pytest.mark.usefixtures("without_pictures")
def test_a_private_release_has_no_alarm(saved: Callable[..., Path]) -> None:
    subject = read_subject(saved(publish(town(), 1)), None, None, 0)
    assert 'class="alarm"' not in html_report(subject)
    assert "NOT PRIVATE" not in html_report(subject)
    assert "drawn from the secret randomness" in text_of(subject)[1]


@pytest.mark.usefixtures("without_pictures")
def test_what_fails_is_said_on_every_page(saved: Callable[..., Path]) -> None:
    subject = read_subject(saved(publish(town(), 1)), None, None, 0)
    broken = replace(subject, checks=(Check("sums", False, "not as found"), *subject.checks))
    pages = text_of(broken)
    assert all("DOES NOT HOLD TOGETHER" in page and "sums" in page for page in pages)
    assert "WRONG" in pages[2]


@pytest.mark.usefixtures("without_pictures")
def test_a_large_epsilon_has_a_warning(saved: Callable[..., Path]) -> None:
    subject = read_subject(saved(publish(town(), 8)), None, None, 0)
    assert 'class="caution"' in html_report(subject)


@pytest.mark.usefixtures("without_pictures")
def test_titles_and_names_are_text_and_no_markup(saved: Callable[..., Path]) -> None:
    subject = read_subject(saved(KINDS["records"]()), "<b>Rides & more</b>", None, 0)
    assert "<b>" not in html_report(subject)
    assert "&lt;b&gt;Rides &amp; more" in html_report(subject)
    assert markup(element("p", "a < b")) == "<p>a &lt; b</p>"
    for title in ("", " ", "two\nlines", "x" * 121):
        with pytest.raises(InputError, match="a title has 1 to 120"):
            read_subject(Path("nothing"), title, None, 0)


@pytest.mark.usefixtures("without_pictures")
def test_the_budget_adds_up(tmp_path: Path) -> None:
    budget = BudgetFile.create(tmp_path / "budget.sqlite", "pings", cap=2)
    for number, epsilon in enumerate(("0.5", "0.25")):
        made = publish(town(), epsilon, budget=budget, label=f"month {number}")
        budget.save(made, tmp_path / f"{number}.parquet")
    subject = read_subject(tmp_path / "0.parquet", None, budget, 0)
    board, lawyer, _ = text_of(subject)
    assert "ε = 0.75 of at most 2" in board
    assert "68 %" in board  # e^0.75 / (1 + e^0.75)
    assert all(f"month {number}" in lawyer for number in (0, 1))
    publish(town(), 1).save(tmp_path / "stray.parquet")
    with pytest.raises(InputError, match="was not charged to 'pings'"):
        read_subject(tmp_path / "stray.parquet", None, budget, 0)


def test_a_series(tmp_path: Path) -> None:
    matrix = town()
    recipe = htf.Recipe(domain=matrix.domain, epsilon=1)
    series = htf.Series.create(tmp_path / "city", recipe, "month", releases=12)
    with pytest.raises(InputError, match="has no release yet"):
        read_subject(tmp_path / "city", None, None, 0)
    for month in ("2026-01", "2026-02"):
        series.add(matrix, month)
    subject = read_subject(tmp_path / "city", None, None, 0)
    board, lawyer, statistician = text_of(subject)
    assert "2 of up to 12 are published" in board
    assert " ".join(series.plan.told) in board
    for month in ("2026-01", "2026-02"):
        assert f"{month}.parquet" in lawyer
        assert f"{month}.parquet" in statistician
    assert "NOT PRIVATE" not in board
    account = BudgetFile.create(tmp_path / "budget.sqlite", "pings", cap=2)
    with pytest.raises(InputError, match="a budget file of its own"):
        read_subject(tmp_path / "city", None, account, 0)
    with pytest.raises(InputError, match="is a folder and no series"):
        read_subject(tmp_path, None, None, 0)


@pytest.mark.usefixtures("without_pictures")
def test_outputs_are_refused_before_anything_is_computed(
    saved: Callable[..., Path], tmp_path: Path
) -> None:
    path = saved(KINDS["records"]())
    with pytest.raises(InputError, match=r"a report is a \.html file, got 'report.pdf'"):
        write_report(path, tmp_path / "report.pdf")
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(OutputError, match="already exists"):
        write_report(path, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == "mine"
    write_report(path, tmp_path / "report.html", runs=0, overwrite=True)
    assert "For the board" in (tmp_path / "report.html").read_text()


@pytest.mark.usefixtures("without_pictures")
def test_the_command(
    saved: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, output = saved(KINDS["records"]()), tmp_path / "report.html"
    assert run(["report", str(path), "--title", "Our town", "--runs", "1", "-o", str(output)]) == 0
    said = capsys.readouterr()
    assert said.out == f"Wrote {output}: 3 pages on town.parquet, epsilon 0.5 for one record.\n"
    assert "NOT PRIVATE" in said.err
    assert "<h1>Our town</h1>" in output.read_text()
    assert run(["report", str(path), "--budget", "b.sqlite", "-o", str(output)]) == 2
    assert "go together" in capsys.readouterr().err


def test_simulated_errors_are_those_of_the_noise() -> None:
    """One count of everything, with noise of scale 1 / ε: the error is known."""
    domain = Domain.from_bounds(0, 0, 1, 1, cells=1)
    release = publish(FrequencyMatrix.from_cells(domain, [[0] * 900, [0] * 900]), "0.01", "uniform")
    found = errors_of(release, runs=40)
    (row,) = found.areas
    assert row.simulated is not None
    assert len(row.simulated.errors) == found.runs == 40
    # |discrete Laplace| of scale 100 has the mean 100, within four standard errors of 40 draws.
    assert abs(row.simulated.errors.mean() - 100) < 4 * 100 / np.sqrt(40)
    assert row.simulated.covered.mean() >= 0.8
    assert row.margin == pytest.approx(100 * np.log(20), rel=0.02)


def test_simulations_are_repeatable_and_grow_with_less_epsilon() -> None:
    release = publish(town(), 1, noise="seeded:1")
    first, again = errors_of(release, 2), errors_of(release, 2)
    weak = errors_of(publish(town(), "0.1", noise="seeded:1"), 2)
    for row, same, worse in zip(first.areas, again.areas, weak.areas, strict=True):
        assert row.simulated is not None
        assert same.simulated is not None
        assert worse.simulated is not None
        assert np.array_equal(row.simulated.errors, same.simulated.errors)
        assert worse.simulated.errors.mean() > 2 * row.simulated.errors.mean()
        assert worse.margin > 2 * row.margin


def test_what_cannot_be_simulated_has_a_reason() -> None:
    found = errors_of(KINDS["weights"](), 1)
    assert found.reason == ""
    assert any("Weights were made up" in note for note in found.notes)
    kept = town(protection=Protection("person", max_records=3))
    assert "does not tell how many people" in errors_of(publish(kept, 1), 1).reason
    plugin = replace(KINDS["records"](), mechanism="not-here")
    found = errors_of(plugin, 1)
    assert "not-here" in found.reason
    assert found.areas[0].margin > 0
    assert errors_of(KINDS["records"](), 0).reason


def test_zones_are_asked_by_level() -> None:
    found = errors_of(KINDS["zones"](), 1)
    assert [row.number for row in found.areas] == sorted(
        (row.number for row in found.areas), reverse=True
    )
    assert all(row.simulated is not None for row in found.areas)


def test_sizes_of_squares_are_round() -> None:
    assert [nearest_round(length) for length in (0.9, 1.3, 1.6, 3.9, 8.0)] == [1, 1, 2, 5, 10]


def test_the_number_for_the_board_is_one_that_means_something() -> None:
    rows = [AreaErrors("500 m squares", 9, 10, 40, 0.5), AreaErrors("5 km squares", 9, 900, 90, 5)]
    found = ReleaseErrors(tuple(rows), 0)
    assert found.usual is rows[1]  # the first is noise
    assert ReleaseErrors((), 0).usual is None
    assert ReleaseErrors((rows[0],), 0).usual is rows[0]


def test_sizes_of_leaves_add_up() -> None:
    sizes = LeafSizes.of(KINDS["records"]())
    assert sizes is not None
    _, leaves, area, held = map(list, zip(*sizes.classes, strict=True))
    assert sum(leaves) == len(sizes.sides)
    assert sum(area) == pytest.approx(1)
    assert sum(held) == pytest.approx(1)
    assert LeafSizes.of(KINDS["zones"]()) is None


def test_the_factor_is_that_of_the_definition() -> None:
    factors = [told_factor(htf.Epsilon.of(one)) for one in (0.5, 1, 10)]
    assert factors == ["1.65", "2.72", "22,026"]


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    wrong: Any = 3
    with pytest.raises(InputError, match="budget must be a BudgetFile"):
        write_report(tmp_path / "a.parquet", tmp_path / "b.html", budget=wrong)
    with pytest.raises(InputError, match="runs must be a whole number"):
        write_report(tmp_path / "a.parquet", tmp_path / "b.html", runs=-1)
