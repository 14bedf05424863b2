"""The law of the noise has one home: what it says, and that nobody else says it again."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import htf
from htf.estimation.level import LEVEL, LEVEL_TEXT, OUTSIDE
from htf.estimation.noise_law import (
    NORMAL_DEVIATIONS,
    count_scales,
    noise_deviations,
    noise_variance,
    noise_variances,
    scales_of_variances,
)
from htf.maps.views import view
from htf.query.kernels import VARIANCE
from support import city_matrix

SOURCE = Path(htf.__file__).parent
SCALES = np.array([0.0, 0.05, 0.3, 1.0, 7.0, 1e3, 1e6])


def test_the_level_and_what_follows_from_it() -> None:
    assert (LEVEL, LEVEL_TEXT, OUTSIDE, NORMAL_DEVIATIONS) == (0.95, "95 %", 0.05, 1.96)


def test_variances_are_those_of_the_distribution() -> None:
    """Summed over the whole numbers, where they are few enough."""
    values = np.arange(-4000.0, 4001.0)
    for scale in (0.05, 0.3, 1.0, 7.0, 50.0):
        weights = np.exp(-np.abs(values) / scale)
        expected = float(np.sum(values**2 * weights) / weights.sum())
        assert noise_variances(np.array([scale]))[0] == pytest.approx(expected, rel=1e-12)
        assert noise_variance(scale) == pytest.approx(expected, rel=1e-12)


def test_scales_and_variances_are_inverse() -> None:
    assert scales_of_variances(noise_variances(SCALES)) == pytest.approx(SCALES, rel=1e-9)
    assert noise_deviations(SCALES) ** 2 == pytest.approx(noise_variances(SCALES))
    assert count_scales(np.array([10**14, 10**15])) == pytest.approx([10, 1])


@pytest.mark.parametrize("epsilon", ["0.05", "8"])
def test_a_view_has_the_noise_of_its_leaves(epsilon: str) -> None:
    """Also where noise is so small that it matters that it is whole-numbered: in a pixel that is all of
    the map, the variances of all leaves add up, with each part by its share."""
    release = htf.publish(city_matrix(), epsilon, noise="seeded:1")
    parts = release.derived.parts
    total = np.sqrt(noise_variances(parts.scales).sum())
    assert view(release, cells=1).noise[0, 0] == pytest.approx(total, rel=1e-6)
    whole = release.derived.index.measure(*(np.array([end], float) for end in ([0, 0], [64, 64])))
    assert whole[0, VARIANCE] == pytest.approx(total**2, rel=1e-9)


def words(path: Path) -> list[str]:
    """All texts of a module but its docstrings."""
    tree = ast.parse(path.read_text())
    spoken = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return [str(node.value) for node in found if id(node) not in spoken]


def test_no_module_names_the_level_again() -> None:
    """Forecasts know 95 % otherwise: they tell the error that one box in 20 exceeds."""
    again = re.compile(r"\b95 ?%|\b1\.96\b|\b0\.95\b")
    named = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if "forecasts" not in path.parts and any(again.search(text) for text in words(path))
    }
    assert named == {"estimation/level.py"}


def test_scripts_in_the_browser_have_the_same_level() -> None:
    scripts = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.js"))
    deviations = re.findall(r"\bDEVIATIONS = ([\d.]+)", scripts)
    assert {float(number) for number in deviations} == {NORMAL_DEVIATIONS}
    assert set(re.findall(r"\b[\d.]+ %(?=:| interval)", scripts)) == {LEVEL_TEXT}
