"""Targets of a forecast: how they are read, what they ask, and the search for the least epsilon."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htf
from htf import Domain, Epsilon, FrequencyMatrix, InputError, Question, Recipe, publish
from htf.forecasts import search as searching
from htf.forecasts.made_up import MadeUp
from htf.forecasts.places import City
from htf.forecasts.plan import Assumed, plan_of
from htf.forecasts.questions import InZones, OfWorkload
from htf.forecasts.search import LEAST, MOST, Found, ask_once, find_epsilon, round_up
from htf.forecasts.simulation import Errors, Simulation, simulate
from htf.forecasts.targets import Target
from htf.frame.areas import cell_metres

SWISS = Domain.from_bounds(2_600_000, 1_200_000, 2_610_240, 1_205_120, cells=1024, crs="EPSG:2056")
TORONTO = Domain.from_bounds(-79.65, 43.57, -79.11, 43.87, cells=1024)


def plan(points: int = 1000, runs: int = 3, **given: Any) -> Simulation:
    usual = {"source": None, "epsilon": 1, "cells": 32} | given
    return plan_of(Recipe(**usual), Assumed(points_about=points), runs)


def sides(text: str, domain: Domain) -> Any:
    kind = Target.read(text).kind(plan(domain=domain, cells=None))
    return kind.workload.sides  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("5 % in squares of 1 km", Target(0.05, True, 1000, "m")),
        ("5%in squares of 1km.", Target(0.05, True, 1000, "m")),
        ("2,5 per cent in square of 500 metres", Target(0.025, True, 500, "m")),
        ("20 Records  in squares of 500 m", Target(20, False, 500, "m", "records")),
        ("3 people in squares of 8 cells", Target(3, False, 8, "cells", "split people")),
        ("3 person-days in zones", Target(3, False, counted="split person-days")),
        ("3 split people in zones", Target(3, False, counted="split people")),
        ("3 split person-weeks in zones", Target(3, False, counted="split person-weeks")),
        ("1 % in squares of 1 % of the map", Target(0.01, True, 1, "%")),
        ("10 percent in zones", Target(0.1, True)),
        ("10 % in zones of My Wards.gpkg", Target(0.1, True, layer=Path("My Wards.gpkg"))),
        ("10 % by District", Target(0.1, True, by="District")),
        ("9 records by zone,hour", Target(9, False, counted="records", by="zone,hour")),
        ("9 riders in zones", Target(9, False, counted="sum of riders")),
        ("5 % in trips between squares of 2 km", Target(0.05, True, 2000, "m", trips=True)),
    ],
)
def test_reads_targets_leniently(text: str, target: Target) -> None:
    assert Target.read(text) == target


@pytest.mark.parametrize(
    "text",
    ["", "5 %", "5 in squares of 1 km", "5 % in circles of 1 km", "5 % in squares of 1 mile",
     "0 % in zones", "5000 % in zones", "5 % in squares of 0 km", "-5 % in zones", "٥ % in zones"],
)  # fmt: skip
def test_refuses_what_is_no_target(text: str) -> None:
    with pytest.raises(InputError):
        Target.read(text)


def test_cells_have_sizes_on_the_ground() -> None:
    assert cell_metres(SWISS) == pytest.approx((10, 5))
    width, height = cell_metres(TORONTO) or (0, 0)
    assert width == pytest.approx(0.54 / 1024 * 111_320 * math.cos(math.radians(43.72)))
    assert height == pytest.approx(0.30 / 1024 * 111_320)
    in_grads = Domain.from_bounds(2, 50, 3, 51, cells=10, crs="EPSG:4807")
    assert (cell_metres(in_grads) or (0, 0))[1] == pytest.approx(0.1 * 0.9 * 111_320)
    assert cell_metres(Domain.from_bounds(0, 0, 1, 1, cells=4, crs=None)) is None


def test_squares_are_as_wide_as_asked() -> None:
    assert sides("5 % in squares of 1 km", SWISS) == pytest.approx((100, 200))
    assert sides("5 % in squares of 1 % of the map", SWISS) == (102.4, 102.4)
    records = MadeUp(SWISS, np.full((2, 1), 500), np.array([9]))
    kind = OfWorkload.around("a", "a", "a", (20.5, 10.0))
    drawn = kind.draw(records, 4000, np.random.SeedSequence(1)).boxes
    assert drawn is not None
    wide = drawn.high - drawn.low
    assert wide.mean(axis=0) == pytest.approx([20.5, 10], abs=0.05)
    assert ((drawn.low <= 500) & (drawn.high > 500)).all()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("5 % in squares of 4 m", "smaller than the cells of this map, 10 x 5 m"),
        ("5 % in squares of 6 km", "larger than the map"),
    ],
)
def test_squares_fit_the_map(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        sides(text, SWISS)


def test_metres_need_a_reference_system() -> None:
    plain = Domain.from_bounds(0, 0, 1, 1, cells=4, crs=None)
    with pytest.raises(InputError, match="no reference system"):
        sides("5 % in squares of 1 km", plain)
    assert sides("5 % in squares of 2 cells", plain) == (2, 2)


def test_zones_are_counted_by_their_cells() -> None:
    shapely = pytest.importorskip("shapely")
    domain = Domain.from_bounds(0, 0, 4, 4, cells=4, crs=None)
    matrix = FrequencyMatrix.from_cells(
        domain, np.array([[0, 1, 3], [0, 3, 0]]), np.array([5, 7, 9])
    )
    zones = InZones.of(
        tuple(shapely.to_wkb([shapely.box(0, 0, 2, 4), shapely.box(2, 2, 4, 4)])), domain
    )
    assert zones.add(matrix).tolist() == [12, 0]
    release = publish(matrix, 900, noise="seeded:1")
    assert zones.answer(release) == pytest.approx([12, 0], abs=0.5)
    with pytest.raises(InputError, match="none of the zones"):
        InZones.of((shapely.to_wkb(shapely.box(8, 8, 9, 9)),), domain)


def look_for(monkeypatch: pytest.MonkeyPatch, text: str, scale: float, floor: float = 0) -> Found:
    """A search on a curve that is known: scale / epsilon ** 0.8 + floor, with some luck in each release."""

    def ask(_plan: object, _kind: object, epsilon: Epsilon, run: int) -> Errors:
        luck = 1 + 0.03 * math.sin(97 * run + 31 * float(epsilon))
        error = luck * scale / float(epsilon) ** 0.8 + floor
        return Errors(error, 100 * error, 100)

    monkeypatch.setattr(searching, "ask_once", ask)
    return find_epsilon(plan(), Target.read(text))


@pytest.mark.parametrize("scale", [0.0005, 0.01, 0.05, 0.3])
def test_finds_the_least_epsilon_with_few_releases(
    monkeypatch: pytest.MonkeyPatch, scale: float
) -> None:
    found = look_for(monkeypatch, "5 % in squares of 1 km", scale)
    assert float(found.epsilon or 0) == pytest.approx((scale / 0.05) ** (1 / 0.8), rel=0.08)
    assert len(found.tried) <= 9
    assert [epsilon for epsilon, _, _ in found.curve] == sorted(e for e, _, _ in found.curve)


def test_a_target_in_records_has_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = look_for(monkeypatch, "5 % in squares of 1 km", 0.05)
    records = look_for(monkeypatch, "5 records in squares of 1 km", 0.05)
    assert records.epsilon == shares.epsilon


def test_says_what_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    found = look_for(monkeypatch, "5 % in squares of 1 km", 0.05, floor=0.06)
    assert found.epsilon is None
    assert max(epsilon for epsilon, _, _ in found.curve) == Epsilon.of(MOST)
    assert look_for(monkeypatch, "5 % in squares of 1 km", 3).epsilon is None


def test_says_what_any_epsilon_reaches(monkeypatch: pytest.MonkeyPatch) -> None:
    found = look_for(monkeypatch, "5 % in squares of 1 km", 1e-6)
    assert found.is_least
    assert found.epsilon == Epsilon.of(LEAST)


@pytest.mark.parametrize(
    ("epsilon", "rounded"), [(0.3701, "0.38"), (1.2301, "1.24"), (0.1, "0.1"), (0.00991, "0.01"), (9.96, "10")]
)  # fmt: skip
def test_epsilons_are_rounded_up(epsilon: float, rounded: str) -> None:
    assert str(round_up(epsilon)) == rounded


def test_errors_are_those_of_simulated_releases() -> None:
    """More epsilon, smaller errors; and the same again."""
    made = plan(20_000, cells=64)
    kind = Target.read("5 % in squares of 6 cells").kind(made)
    some, more = (ask_once(made, kind, Epsilon.of(e), 0) for e in ("0.2", "5"))
    assert 2 < some.relative / more.relative < 30
    assert some.count == more.count > 10
    assert ask_once(made, kind, Epsilon.of("0.2"), 0) == some
    assert ask_once(made, kind, Epsilon.of("0.2"), 1) != some


def test_the_city_is_stretched_over_bounds() -> None:
    own, stretched = City("city", 5000, 64).load(), City("city", 5000, map=TORONTO).load()
    assert stretched.domain == TORONTO
    assert stretched.exact_counts.sum() == pytest.approx(own.exact_counts.sum(), rel=0.02)
    places = [
        np.average(one.exact_coordinates / cells, axis=1, weights=one.exact_counts)
        for one, cells in ((own, 64), (stretched, 1024))
    ]
    assert places[0] == pytest.approx(places[1], abs=0.02)


def test_what_is_forecast_for_zones_is_what_a_real_release_has(tmp_path: Path) -> None:
    """Errors of the zones themselves, not of boxes over them: the epsilon that is named for 4 % has 4 %, and half of it or
    double would be noticed. The real records are other visits to the city than those that stand in."""
    layer = tmp_path / "tracts.geojson"
    layer.write_text(htf.synthetic_zones(60, 4).to_json())
    city = htf.synthetic_city(20_000, seed=7)
    recipe = Recipe(
        source={"lon": city.x, "lat": city.y}, zones=layer, by="tract", within="district", epsilon=1
    )
    exact = recipe.prepare(noise="seeded:1")._read()
    truth = np.zeros(60)
    truth[exact.exact_coordinates[0]] = exact.exact_counts
    held = truth >= 1

    def real(epsilon: object) -> float:
        made = replace(recipe, epsilon=str(epsilon))
        answers = [
            made.make(noise=f"seeded:{run}").ask(Question.by("tract")).count for run in range(8)
        ]
        off = np.abs(np.array(answers)[:, held] - truth[held])
        return float(np.mean(np.median(off / truth[held], axis=1)))

    assumed = Assumed(points_about=20_000)
    found = find_epsilon(plan_of(recipe, assumed, 3), Target.read("4 % in zones"))
    assert (found.plan.label, found.plan.prepared.domain.shape) == ("zones", (60,))
    assert found.epsilon is not None
    assert real(found.epsilon) == pytest.approx(0.04, rel=0.25)
    assert real(found.epsilon // 2) > 1.5 * 0.04
    assert real(found.epsilon * 2) < 0.04 / 1.5
    expected = simulate(plan_of(replace(recipe, epsilon=str(found.epsilon)), assumed, 2))
    (by_tract,) = (one for one in expected.main.areas if one.name == "by tract")
    assert by_tract.error / by_tract.count == pytest.approx(0.04, rel=0.25)
