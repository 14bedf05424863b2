"""Synthetic points: where they lie, how many, and what their files say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from scipy import stats

from htf import Axis, Domain, FrequencyMatrix, InputError, Release, publish, read_points
from htf.cli.main import run
from htf.curator.noise import SeededNoise
from htf.estimation.nonnegative import non_negative
from htf.export import sample
from htf.export.sample import write_points
from htf.frame.domain import IntArray
from support import city_matrix, grid, people_matrix

ALPHA = 1e-6  # the false-alarm rate of each chi-square test, had the seed not been fixed


def in_degrees(cells: int = 64) -> Domain:
    return Domain.from_bounds(-30.2, 39.8, -29.8, 40.2, cells)


def release_of(mechanism: str = "htf", epsilon: float = 0.5, **options: Any) -> Release:
    matrix = city_matrix()
    moved = FrequencyMatrix(in_degrees(), matrix.exact_coordinates, matrix.exact_counts)
    return publish(moved, epsilon, mechanism, noise=options.get("noise", SeededNoise(1)))


@pytest.fixture(scope="module")
def release() -> Release:
    return release_of()


def held(release: Release, points: Any) -> IntArray:
    """How many points lie in each part: by the box that has the point, found one axis at a time."""
    parts, domain = release.derived.parts, release.domain
    columns = [points[name].to_numpy() for name in points.column_names]
    cells = [
        axis.to_cells(c).astype(np.int64) for axis, c in zip(domain.axes, columns, strict=True)
    ]
    counts = np.zeros(domain.shape, dtype=np.int64)
    np.add.at(counts, tuple(cells), 1)
    boxes = zip(parts.low, parts.high, strict=True)
    return np.array([counts[tuple(map(slice, low, high))].sum() for low, high in boxes])


def chi_square(observed: IntArray, weights: Any) -> float:
    """The p-value; parts of few expected points are taken together."""
    expected = weights * (observed.sum() / weights.sum())
    large = expected >= 10
    seen = np.append(observed[large], observed[~large].sum())
    due = np.append(expected[large], expected[~large].sum())
    used = due > 0
    return float(stats.chisquare(seen[used], due[used]).pvalue)


@pytest.mark.parametrize("mechanism", ["htf", "singular"])
def test_parts_are_drawn_by_their_estimates(mechanism: str) -> None:
    release = release_of(mechanism)
    weights = non_negative(release.derived.parts)
    observed = held(release, release.sample(400_000, seed=3))
    assert observed.sum() == 400_000
    assert (weights == 0).any()
    assert np.all(observed[weights == 0] == 0)
    assert chi_square(observed, weights) > ALPHA


def test_places_in_a_part_are_all_alike() -> None:
    release = release_of("uniform")
    points = release.sample(300_000, seed=4)
    edges = [np.linspace(axis.low, axis.high, 21) for axis in release.domain.axes]
    counts = np.histogram2d(points["lon"].to_numpy(), points["lat"].to_numpy(), edges)[0]
    assert stats.chisquare(counts.ravel()).pvalue > ALPHA


def test_points_are_in_no_order(release: Release) -> None:
    """The first tenth of a file is a sample too."""
    first = release.sample(200_000, seed=5).slice(0, 20_000)
    assert chi_square(held(release, first), non_negative(release.derived.parts)) > ALPHA


def test_chunks_are_alike_and_the_seed_repeats(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample, "CHUNK", 1000)
    points = release.sample(50_500, seed=6)
    assert points.num_rows == 50_500
    assert points["lon"].num_chunks == 51
    assert chi_square(held(release, points), non_negative(release.derived.parts)) > ALPHA
    assert points.equals(release.sample(50_500, seed=6))
    assert not points.equals(release.sample(50_500, seed=7))
    assert not release.sample(10).equals(release.sample(10))


def test_the_number_is_the_noisy_total(release: Release) -> None:
    points = release.sample()
    assert points.num_rows == round(release.estimates.sum())
    assert points.column_names == ["lon", "lat"]
    assert release.sample(0).num_rows == 0
    assert release.sample(0).column_names == ["lon", "lat"]


def test_more_axes() -> None:
    axes = (*in_degrees(16).axes, Axis("hour", 0, 24, 24))
    generator = np.random.default_rng(7)
    counts = generator.poisson(generator.exponential(20, (16, 16, 24)))
    counts[:, :, :6] = 0
    matrix = FrequencyMatrix.from_dense(Domain(axes, "OGC:CRS84"), counts)
    release = publish(matrix, 1, noise=SeededNoise(2))
    points = release.sample(300_000, seed=8)
    assert points.column_names == ["lon", "lat", "hour"]
    assert chi_square(held(release, points), non_negative(release.derived.parts)) > ALPHA
    assert min(points["hour"].to_pylist()) >= 0
    assert max(points["hour"].to_pylist()) < 24


def test_points_lie_below_the_upper_edges() -> None:
    """Also where the numbers are so coarse that half of the sums would be rounded up to them."""
    step = float(np.spacing(1e9))
    axis = Axis("x", 1e9, 1e9 + 4 * step, 4)
    matrix = FrequencyMatrix.from_dense(Domain((axis,)), np.full(4, 1000))
    points = publish(matrix, 1, noise=SeededNoise(3)).sample(10_000, seed=1)
    assert points.column_names == ["x"]
    assert set(points["x"].to_pylist()) == {1e9 + k * step for k in range(4)}


def test_names_of_columns() -> None:
    axes = in_degrees().axes
    assert sample.point_columns(Domain(axes)) == ["x", "y"]
    assert sample.point_columns(Domain(axes, "EPSG:27700")) == ["x", "y"]
    other = Domain((*axes, Axis("lon", 0, 1, 1)), "OGC:CRS84")
    assert sample.point_columns(other) == ["x", "y", "lon"]


@pytest.mark.parametrize("name", ["points.csv", "points.parquet", "POINTS.CSV"])
def test_files_hold_the_points_and_say_what_they_are(
    release: Release, tmp_path: Path, name: str
) -> None:
    path, told = tmp_path / name, []
    write_points(release, path, 2000, 9, lambda *done: told.append(done))
    is_csv = path.suffix.lower() == ".csv"
    points = csv.read_csv(path) if is_csv else pq.read_table(path)
    for column in ("lon", "lat"):
        assert points[column].to_pylist() == release.sample(2000, 9)[column].to_pylist()
    assert told == [(2000, 2000)]
    beside = path.with_name(f"{name}.statement.txt")
    assert beside.exists() == is_csv
    if is_csv:
        text = beside.read_text()
        assert release.statement in text
        assert 'epsilon: "0.5"' in text
    else:
        about = json.loads(points.schema.metadata[b"htf-sample"])
        assert about["epsilon"] == "0.5"
        assert (about["private"], about["mechanism"]) == (False, "htf")
        assert about["statement"].startswith("NOT PRIVATE")
        assert (about["points"], about["seed"]) == (2000, 9)


def test_the_digest_is_that_of_the_file_of_the_release(release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "release.parquet")
    header = json.loads(pq.read_schema(tmp_path / "release.parquet").metadata[b"htf"])
    about = json.loads(release.sample(1).schema.metadata[b"htf-sample"])
    assert about["release_digest"] == header["digest"]


def test_a_sample_can_be_released_again(release: Release, tmp_path: Path) -> None:
    """And gives the same map, as far as the noise of both lets one see."""
    for name in ("points.csv", "points.parquet"):
        write_points(release, tmp_path / name, seed=10)
        matrix = read_points(tmp_path / name, release.domain)
        assert int(matrix.exact_counts.sum()) == round(release.estimates.sum())
        again = publish(matrix, 5, noise=SeededNoise(4))
        west, south = np.meshgrid(np.linspace(-30.2, -29.9, 4), np.linspace(39.8, 40.1, 4))
        boxes = np.column_stack(
            [west.ravel(), south.ravel(), west.ravel() + 0.1, south.ravel() + 0.1]
        )
        first, second = release.count(boxes).count, again.count(boxes).count
        # Six deviations of drawing, and of the second noise.
        assert np.all(np.abs(first - second) <= 6 * np.sqrt(first + 10))


def of_no_records(total: float) -> Release:
    matrix = FrequencyMatrix.from_dense(grid(2, 2), np.zeros((2, 2), dtype=np.int64))
    for seed in range(100):
        release = publish(matrix, 0.1, "singular", noise=SeededNoise(seed))
        if (release.estimates.sum() <= 0) == (total <= 0) and release.estimates.any():
            return release
    raise AssertionError("no such release")


def test_a_release_of_no_records(tmp_path: Path) -> None:
    release = of_no_records(-1)
    assert write_points(release, tmp_path / "none.parquet").points == 0
    assert pq.read_table(tmp_path / "none.parquet").num_rows == 0
    write_points(release, tmp_path / "none.csv")
    assert (tmp_path / "none.csv").read_text().strip() == '"x","y"'
    with pytest.raises(InputError, match=r"counts no records \(its total is -\d"):
        release.sample(5)
    assert of_no_records(1).sample(5).num_rows == 5  # noise, but the release says so


def test_points_of_people_stand_for_people(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    release = publish(people_matrix(), 1, noise="seeded:1")
    file, out = tmp_path / "people.parquet", tmp_path / "points.parquet"
    release.save(file)
    assert run(["sample", str(file), "-o", str(out)]) == 0
    assert pq.read_table(out).num_rows == round(release.estimates.sum())
    assert (
        "The release counts split people: each point stands for one of them."
        in capfd.readouterr().out
    )
    about = json.loads(pq.read_schema(out).metadata[b"htf-sample"])
    assert (about["quantity"], about["counted"]) == ("split people", "split people")
    assert (
        "The release counts split people; by default there is one point for each" in about["rule"]
    )
    assert run(["sample", str(file), "--n", "10", "-o", str(out), "--overwrite"]) == 0
    assert (
        f"The release counts {release.estimates.sum():,.0f} split people." in capfd.readouterr().out
    )


@pytest.mark.parametrize("wrong", [{"n": -1}, {"n": 1.5}, {"n": True}, {"seed": -1}, {"seed": "a"}])
def test_mistakes(release: Release, wrong: dict[str, Any]) -> None:
    with pytest.raises(
        InputError, match=r"must be a whole number(?: of at most 100 digits)?, 0 or more, got"
    ):
        release.sample(**wrong)


def test_other_names_are_refused(release: Release, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must end in \.csv or \.parquet, got 'points.xlsx'"):
        write_points(release, tmp_path / "points.xlsx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("n", [None, 10**9 + 1, 10**30])
def test_too_many_points_are_refused_at_once(
    release: Release, tmp_path: Path, n: int | None
) -> None:
    """Nobody has 10¹⁸ records, but a file may say so."""
    if n is None:
        release = replace(release, estimates=release.estimates * 1e14)
    with pytest.raises(InputError, match=r"at most 1,000,000,000 points can be drawn; "):
        write_points(release, tmp_path / "points.csv", n)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match=r"at most 100,000,000 points can be drawn into memory; "):
        release.sample(n)
