"""A public prior: read exactly, heeded by estimates, carried by the file, refused where it is wrong."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htf import Domain, FrequencyMatrix, InputError, Release, publish, verify
from htf import read_prior as read
from htf.cli.main import run
from htf.errors import ReleaseFileError
from htf.estimation.noise_law import noise_deviations
from htf.estimation.prior import MOST_PRIOR_CELLS, PRIOR_SHARE, Prior
from htf.frame.domain import Axis
from htf.frame.tree import RegionTree
from htf.query.kernels import ESTIMATE
from support import city_matrix, grid

CELLS = 128
SEA = np.hypot(*(np.indices((CELLS, CELLS)) - CELLS / 2)) > CELLS / 4  # around a round island


def island_matrix(seed: int = 0, points: int = 6000) -> FrequencyMatrix:
    generator = np.random.default_rng(seed)
    land = np.flatnonzero(~SEA)
    chosen = generator.choice(land, points, p=generator.dirichlet(np.full(len(land), 0.3)))
    return FrequencyMatrix.from_cells(
        grid(CELLS, CELLS), np.array(np.unravel_index(chosen, SEA.shape))
    )


@pytest.fixture(scope="module")
def land() -> Prior:
    return read(~SEA, grid(CELLS, CELLS))


@pytest.fixture(scope="module")
def release(land: Prior) -> Release:
    return publish(island_matrix(), "0.3", prior=land, noise="seeded:1")


def in_the_sea(release: Release) -> float:
    cells = np.argwhere(SEA).astype(np.float64)
    return float(release.derived.index.measure(cells, cells + 1)[:, ESTIMATE].sum())


def test_with_a_land_mask_few_records_land_in_the_sea(land: Prior) -> None:
    """The figures of docs/prior.md: the mean of eight seeds."""
    without, with_prior = np.zeros(8), np.zeros(8)
    for seed in range(8):
        matrix, noise = island_matrix(seed), f"seeded:{seed}"
        without[seed] = in_the_sea(publish(matrix, "0.3", noise=noise))
        with_prior[seed] = in_the_sea(publish(matrix, "0.3", prior=land, noise=noise))
    assert without.mean() == pytest.approx(294.1, abs=1)
    assert with_prior.mean() == pytest.approx(79.9, abs=1)


def test_records_are_kept(release: Release) -> None:
    parts = release.derived.parts
    assert parts.estimates.sum() == release.estimates.sum()
    assert parts.estimates.min() >= 0
    low, high = release.low.astype(np.float64), release.high.astype(np.float64)
    assert release.derived.index.measure(low, high)[:, ESTIMATE] == pytest.approx(
        release.estimates, abs=1e-6
    )
    noise, of_leaves = noise_deviations(parts.scales), noise_deviations(release.scales)
    assert noise.sum() == pytest.approx(of_leaves.sum())  # each has its share of that of its leaf


def test_a_prior_forbids_nothing(land: Prior) -> None:
    """Counts overrule it: a ship with many records stays where it is."""
    counts = np.zeros(SEA.shape, dtype=np.int64)
    counts[3:5, 3:5] = 500
    made = publish(FrequencyMatrix.from_dense(land.domain, counts), 1, prior=land, noise="seeded:1")
    assert made.count([0, 0, 8, 8]).count[0] == pytest.approx(2000, rel=0.05)


def test_without_a_prior_nothing_changes(tmp_path: Path) -> None:
    matrix = city_matrix()
    plain = publish(matrix, "0.5", noise="seeded:2")
    even = publish(matrix, "0.5", prior=read(np.ones((1, 1)), matrix.domain), noise="seeded:2")
    assert np.array_equal(plain.measurements.value, even.measurements.value)
    assert even.estimates == pytest.approx(plain.estimates, abs=0.1)
    assert len(even.derived.parts.low) == len(plain.derived.parts.low)
    plain.save(tmp_path / "plain.parquet")
    header = json.loads(pq.read_schema(tmp_path / "plain.parquet").metadata[b"htf"])
    assert "prior" not in {*header, *pq.read_schema(tmp_path / "plain.parquet").names}
    assert plain.summary()["priors"] == []
    assert "prior" not in plain.statement
    assert plain != even


def test_the_file_carries_it(release: Release, tmp_path: Path) -> None:
    path = tmp_path / "release.parquet"
    release.save(path)
    again = Release.load(path)
    assert again == release
    assert again.priors == release.priors
    assert again.derived.parts.estimates.tolist() == release.derived.parts.estimates.tolist()
    assert [check for check in verify(path) if not check.passed] == []
    for told in (again.statement, json.dumps(again.summary())):
        assert release.priors[0].sha256 in told
    assert "only if the prior was not made from the data released" in again.statement
    assert run(["info", str(path)]) == 0


def test_a_changed_prior_is_found(release: Release, tmp_path: Path) -> None:
    path = tmp_path / "release.parquet"
    (prior,) = release.priors
    other = replace(prior, weights=np.roll(prior.weights, 40, axis=0))
    content = {f: getattr(release, f) for f in Release.__dataclass_fields__}
    del content["low"], content["high"]
    doctored = Release(**{**content, "priors": (other,)})
    assert doctored != release
    assert [check.name for check in verify(doctored) if not check.passed] == ["sums"]
    release.save(path)
    table = pq.read_table(path)
    rows = table["prior"].to_pylist()
    rows[len(rows) // 2][0] += 1
    place = table.schema.get_field_index("prior")
    changed = table.set_column(place, "prior", pa.array(rows, type=pa.list_(pa.uint32())))
    pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path)
    with pytest.raises(ReleaseFileError, match="was changed"):
        Release.load(path)
    pq.write_table(table.drop_columns(["prior"]), path)
    with pytest.raises(ReleaseFileError, match="is damaged"):
        Release.load(path)


def overlap(low: int, high: int, cells: int, place: int, own: int) -> Fraction:
    begin, end = (
        max(Fraction(low, cells), Fraction(place, own)),
        min(Fraction(high, cells), Fraction(place + 1, own)),
    )
    return max(end - begin, Fraction(0)) * own


@pytest.mark.parametrize("own", [(12, 10), (5, 7), (1, 3), (36, 20), (24, 5)])
def test_the_measure_is_exact(own: tuple[int, int]) -> None:
    shape, generator = (12, 10), np.random.default_rng(3)
    weights = generator.integers(0, 5, own)
    tree = RegionTree(shape)
    parts = np.zeros(1, dtype=np.int64)
    for _ in range(5):
        parts = tree.halve(parts, (0, 1))
    found = read(weights, grid(*shape)).measure(tree, np.arange(len(tree)))
    for region in range(0, len(tree), 7):
        low, high = tree.low[region], tree.high[region]
        mass = sum(
            int(weights[place])
            * overlap(low[0], high[0], 12, place[0], own[0])
            * overlap(low[1], high[1], 10, place[1], own[1])
            for place in product(range(own[0]), range(own[1]))
        )
        even = int(np.prod(high - low)) / 120
        expected = PRIOR_SHARE * float(mass / int(weights.sum())) + (1 - PRIOR_SHARE) * even
        assert found[region] == pytest.approx(expected, rel=1e-12)


def test_the_smallest_cells_of_the_largest_grid_have_their_share() -> None:
    tree = RegionTree((2**31 - 1, 2**31 - 1))
    regions = np.zeros(1, dtype=np.int64)
    for axis in (0, 1) * 30:
        middle = (tree.low[regions, axis] + tree.high[regions, axis]) // 2
        regions = tree.split(regions, np.full(1, axis), middle)[:, 1]
    half = read([[1.0, 0.0], [0.0, 3.0]], grid(2**31 - 1, 2**31 - 1))
    last = half.measure(tree, regions)[0] * (2.0**31 - 1) ** 2 / tree.cells(regions)[0]
    assert last == pytest.approx(PRIOR_SHARE * 3 + 1 - PRIOR_SHARE, rel=1e-9)


def test_large_rasters_are_made_coarser_and_keep_their_sum() -> None:
    values = np.random.default_rng(1).integers(0, 9, (3001, 1000))
    prior = read(values, grid(64, 64))
    assert prior.weights.size <= MOST_PRIOR_CELLS
    tree = RegionTree((64, 64))
    left, right = tree.split(np.zeros(1, int), np.zeros(1, int), np.full(1, 32))[0]
    shares = prior.measure(tree, np.array([left, right]))
    half = values[:1500].sum() + values[1500].sum() / 2
    expected = PRIOR_SHARE * half / values.sum() + (1 - PRIOR_SHARE) / 2
    assert shares[0] == pytest.approx(expected, rel=1e-4)  # across an edge of a coarse cell
    assert shares.sum() == pytest.approx(1)


def test_scaled_values_say_the_same() -> None:
    values = np.random.default_rng(1).random((16, 16))
    first = read(values, grid(16, 16)).weights
    for scale in (1e-300, 1e300):
        assert np.abs(read(values * scale, grid(16, 16)).weights.astype(int) - first).max() <= 1


def test_three_axes() -> None:
    counts = np.random.default_rng(3).poisson(9, (9, 8, 5))
    matrix = FrequencyMatrix.from_dense(grid(9, 8, 5), counts)
    made = publish(matrix, 1, prior=read(counts % 3, matrix.domain), noise="seeded:1")
    assert [check for check in verify(made) if not check.passed] == []


def test_files_of_arrays(tmp_path: Path) -> None:
    domain, values = grid(8, 4), np.arange(32).reshape(8, 4)
    np.save(tmp_path / "a.npy", values)
    np.savez(tmp_path / "b.npz", one=values, two=values[:, ::-1])
    np.savez(tmp_path / "c.npz", only=values)
    found = read(tmp_path / "a.npy", domain)
    assert found.weights.tolist() == values.tolist()
    assert found.name == "a.npy"
    assert found.sha256 == hashlib.sha256((tmp_path / "a.npy").read_bytes()).hexdigest()
    assert read(f"{tmp_path}/b.npz:two", domain).weights.tolist() == values[:, ::-1].tolist()
    assert read(f"{tmp_path}/b.npz:two", domain).name == "b.npz:two"
    assert read(tmp_path / "c.npz", domain).weights.tolist() == values.tolist()
    with pytest.raises(InputError, match="has the arrays one, two"):
        read(tmp_path / "b.npz", domain)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_of_points(suffix: str, tmp_path: Path) -> None:
    domain, path = grid(4, 2), tmp_path / f"points.{suffix}"

    def write(**columns: Any) -> None:
        if suffix == "parquet":
            pq.write_table(pa.table(columns), path)
        else:
            rows = zip(*columns.values(), strict=True)
            lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
            path.write_text("\n".join(lines) + "\n")

    where = [0.5, 0.6, 3.5, 9.0], [0.5, 0.5, 1.5, 0.5]
    expected = [[2, 0], [0, 0], [0, 0], [0, 1]]
    write(lon=where[0], lat=where[1])
    assert read(path, domain, ("e", "n")).weights.tolist() == expected  # they are lon and lat
    write(e=where[0], n=where[1])
    assert read(path, domain, ("e", "n")).weights.tolist() == expected
    write(e=where[0], n=where[1], weight=[3.0, 4.0, 2.0, -9.0])  # the last one is outside
    expected = [[7, 0], [0, 0], [0, 0], [0, 2]]
    assert read(path, domain, ("e", "n")).weights.tolist() == expected
    write(e=where[0], n=where[1], weight=[3.0, -4.0, 2.0, 1.0])
    with pytest.raises(InputError, match=r"points.* has the value -4.0: values must be finite"):
        read(path, domain, ("e", "n"))
    write(e=where[0], n=where[1], weight=[3.0, float("nan"), 2.0, 1.0])
    with pytest.raises(InputError, match="has the value nan"):
        read(path, domain, ("e", "n"))
    with pytest.raises(InputError, match="'lon'"):
        read(path, domain)


def test_an_earlier_release_is_a_prior(tmp_path: Path) -> None:
    matrix, path = island_matrix(), tmp_path / "earlier.parquet"
    earlier = publish(matrix, 1, "ag", noise="fast")
    earlier.save(path)
    for shape in ((CELLS, CELLS), (512, 64)):
        axes = [replace(a, cells=n) for a, n in zip(matrix.domain.axes, shape, strict=True)]
        prior = read(path, Domain(tuple(axes)))
        tree = RegionTree(shape)
        quarter = tree.halve(np.zeros(1, dtype=np.int64), (0, 1))[:1]
        inside = earlier.count([0, 0, 64, 64]).count[0] / earlier.estimates.sum()
        share = (prior.measure(tree, quarter)[0] - (1 - PRIOR_SHARE) / 4) / PRIOR_SHARE
        assert share == pytest.approx(inside, abs=0.02)  # noise below zero was cut off
    with pytest.raises(InputError, match=r"another map .x 0 to 128, .* than the data .x 0 to 64"):
        read(path, grid(64, 64))
    publish(matrix, 1, noise="seeded:1").save(path, overwrite=True)
    with pytest.raises(InputError, match="not private"):
        read(path, matrix.domain)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([[1.0, -0.5]], "has the value -0.5"),
        ([[1.0, np.nan]], "has the value nan"),
        ([[1.0, np.inf]], "has the value inf"),
        ([[0.0, 0.0]], "is zero everywhere"),
        ([1.0, 2.0], r"shape \(2,\): give numbers with one axis for each of the map's, x, y"),
        (np.ones((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (np.ones((0, 2)), r"shape \(0, 2\)"),
        ([["a", "b"]], "must be numbers in rows of the same length, got one of type str"),
    ],
)
def test_bad_arrays_are_refused(values: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read(values, grid(4, 4))


def test_other_maps_and_mechanisms_are_refused_before_anything_is_spent(land: Prior) -> None:
    with pytest.raises(InputError, match="another map"):
        publish(city_matrix(), 1, prior=land)
    moved = Domain((Axis("x", 1.0, 129.0, CELLS), Axis("y", 0.0, 128.0, CELLS)))
    with pytest.raises(InputError, match="another map"):
        publish(FrequencyMatrix.from_dense(moved, np.ones(moved.shape, dtype=int)), 1, prior=land)
    with pytest.raises(InputError, match="htf-paper takes no prior, only htf does"):
        publish(island_matrix(), 1, "htf-paper", prior=land)


@pytest.mark.parametrize(
    ("prior", "more", "says"),
    [
        ("data.csv", (), "is one of the files of the data"),
        ("copy.csv", (), "is one of the files of the data"),
        ("linked.csv", (), "is one of the files of the data"),
        ("none.npy", (), "there is no file"),
        ("ones.txt2", (), "the name must end in one of .csv"),
        ("broken.npy", (), "cannot read an array of numbers"),
        ("broken.npz:a", (), "cannot read an array of numbers"),
        ("minus.npy", (), "has the value -1.0"),
        ("ones.npy", ("--mechanism", "ag"), "ag takes no prior, only htf does"),
    ],
)
def test_the_command_names_mistakes(
    prior: str, more: tuple[str, ...], says: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data.csv"
    data.write_text("lon,lat\n0.5,0.5\n")
    (tmp_path / "copy.csv").write_text(data.read_text())
    (tmp_path / "linked.csv").hardlink_to(data)
    for name in ("ones.txt2", "broken.npy", "broken.npz"):
        (tmp_path / name).write_text("?")
    np.save(tmp_path / "minus.npy", -np.ones((2, 2)))
    np.save(tmp_path / "ones.npy", np.ones((2, 2)))
    words = ["--bounds", "0,0,1,1", "--cells", "16", "--epsilon", "1", "-o", "never.parquet", *more]
    assert run(["release", str(data), *words, "--prior", str(tmp_path / prior)]) == 2
    told = capfd.readouterr().err
    assert says in told
    assert "Traceback" not in told
    assert not Path("never.parquet").exists()
