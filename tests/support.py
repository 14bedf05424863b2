"""What several tests share: small domains, random matrices, and slow, obvious references."""

from __future__ import annotations

import bisect
import datetime as dt
import hashlib
import importlib
import math
import os
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NoReturn, TypeVar

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from scipy import stats

from htf import Domain, FrequencyMatrix
from htf.estimation.least_squares import UNKNOWN, TreeCounts, least_squares
from htf.estimation.noise_kernels import continuous_half_width, half_width
from htf.estimation.noise_law import count_variances
from htf.frame.domain import Axis, FloatArray, IntArray
from htf.frame.tree import RegionTree
from htf.privacy.epsilon import UNITS_PER_EPSILON
from htf.privacy.protection import Protection
from htf.query import index, tree_index
from htf.query.tree_kernels import FARTHEST_BELOW

T = TypeVar("T")
PATIENCE = 300.0  # seconds; what hangs does so for ever, and a busy machine may be ten times slower

half_widths = np.vectorize(half_width, otypes=[np.float64])
continuous_half_widths = np.vectorize(continuous_half_width, otypes=[np.float64])


def require(program: str, package: str) -> str:
    """The path of a program of the system; without it the test is skipped.

    With HTF_REQUIRE_ALL=1, as our continuous integration sets it, the test fails instead: what is
    skipped everywhere is tested nowhere.
    """
    path = shutil.which(program)
    if path is None:
        _do_without(f"{program} is missing: install Debian's {package}")
    return path


def require_module(name: str, extra: str) -> Any:
    """A Python package that one of our extras brings; without it as without a program."""
    return require_package(name, f"htf-dp[{extra}]")


def require_package(name: str, package: str) -> Any:
    """A Python package; without it as above."""
    try:
        return importlib.import_module(name)
    except ImportError:
        _do_without(f"{name} is missing: pip install {package}")


def _do_without(missing: str) -> NoReturn:
    if os.environ.get("HTF_REQUIRE_ALL") == "1":
        pytest.fail(missing)
    pytest.skip(missing)


def wait_for(condition: Callable[[], T]) -> T:
    """What the condition comes to, as soon as that is something.

    For whatever another thread or process does in its own time. A fixed pause is too short on some
    machine, and too long on all others.
    """
    until = monotonic() + PATIENCE
    while not (found := condition()):
        if monotonic() > until:
            pytest.fail(f"waited in vain for {PATIENCE:g} seconds")
        sleep(0.02)
    return found


def run_program(program: str, package: str, *arguments: Any) -> str:
    """What a program of the system says of a file."""
    command = [require(program, package), *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


class Connections:
    """How many connections of SQLite were made, and are open still. Python 3.13 and later warn of those that
    are left to the collector, and earlier ones are silent: so closing is counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        connect = sqlite3.connect
        self._open = is_open = set[int]()

        class Watched(sqlite3.Connection):
            def close(self) -> None:
                is_open.discard(id(self))
                super().close()

        def watched(*arguments: Any, **options: Any) -> sqlite3.Connection:
            made = connect(*arguments, **options, factory=Watched)
            self._kept.append(made)  # so that no id comes twice
            is_open.add(id(made))
            return made

        self._kept: list[sqlite3.Connection] = []
        monkeypatch.setattr(sqlite3, "connect", watched)

    @property
    def made(self) -> int:
        return len(self._kept)

    @property
    def left_open(self) -> int:
        return len(self._open)


def read_layer(path: Path) -> Any:
    """The only layer with geometry. A GeoPackage also holds a table of styles, of which GeoPandas would warn."""
    import geopandas
    import pyogrio

    (name,) = [name for name, kind in pyogrio.list_layers(path) if kind is not None]
    return geopandas.read_file(path, layer=name)


def grid(*cells: int) -> Domain:
    """A plain domain of unit cells with axes x, y, z, t."""
    names = "xyzt"
    return Domain(tuple(Axis(names[i], 0.0, float(n), n) for i, n in enumerate(cells)))


def dense(matrix: FrequencyMatrix) -> IntArray:
    counts = np.zeros(matrix.domain.shape, dtype=np.int64)
    counts[tuple(matrix.exact_coordinates)] = matrix.exact_counts
    return counts


def city_matrix(cells: int = 64, points: int = 20_000, seed: int = 5) -> FrequencyMatrix:
    """A lumpy matrix: clusters of several densities, and emptiness."""
    generator = np.random.default_rng(seed)
    centres = generator.uniform(0.1, 0.9, (6, 2)) * cells
    spreads = generator.uniform(0.01, 0.12, 6) * cells
    chosen = generator.integers(0, 6, points)
    drawn = centres[chosen] + generator.normal(size=(points, 2)) * spreads[chosen, None]
    cell = np.floor(drawn).astype(np.int64)
    inside = np.all((cell >= 0) & (cell < cells), axis=1)
    return FrequencyMatrix.from_cells(grid(cells, cells), cell[inside].T)


def people_matrix(domain: Domain | None = None, per: str | None = None) -> FrequencyMatrix:
    """A made-up city of about 500 people, who count by shares."""
    protection = Protection("person", count="people", shares=256, per=per)
    records = city_matrix()
    shares = records.exact_counts * 256 // 40
    kept = shares > 0
    place = domain or records.domain
    return FrequencyMatrix(place, records.exact_coordinates[:, kept], shares[kept], protection)


@st.composite
def matrices(
    draw: st.DrawFn, dimensions: tuple[int, ...] = (1, 2, 3, 4), largest: int = 40
) -> FrequencyMatrix:
    """Small matrices of one to four dimensions, empty ones and very uneven ones among them."""
    number = draw(st.sampled_from(dimensions))
    shape = tuple(draw(st.integers(1, 6 if number < 3 else 3)) for _ in range(number))
    size = int(np.prod(shape))
    values = draw(
        st.lists(st.sampled_from([0, 0, 0, 1, 2, 3, largest]), min_size=size, max_size=size)
    )
    return FrequencyMatrix.from_dense(grid(*shape), np.array(values).reshape(shape))


def with_one_more(matrix: FrequencyMatrix, cell: Sequence[int]) -> FrequencyMatrix:
    """The neighbour that has one more record, in this cell."""
    counts = dense(matrix)
    counts[tuple(cell)] += 1
    return FrequencyMatrix.from_dense(matrix.domain, counts)


NaiveRecord = tuple[Sequence[float | None], str | None, int | None]  # places, person, second


def naive_counts(
    records: Iterable[NaiveRecord],
    domain: Domain,
    most: int | None = None,
    once_per: str | None = None,
    per: str | None = None,
) -> dict[tuple[int, ...], int]:
    """What read_points is to give, record by record: cells, and of each person the first few."""
    of_people: dict[tuple[str, Any], list[tuple[int, int]]] = defaultdict(list)
    for places, person, second in records:
        cell = naive_cell(places, domain)
        if cell is None or (most is not None and not person) or (per and second is None):
            continue
        slot = {"hour": 3600, "day": 86_400}.get(once_per or "", 1)
        time = 0 if second is None or once_per == "all" else math.floor(Fraction(second, slot))
        period = None if per is None or second is None else naive_period(second, per)
        of_people[str(person), period].append((cell, time))
    kept: Counter[int] = Counter()
    for (person, _), found in of_people.items():
        mine = sorted(set(found)) if once_per else found
        kept.update(
            cell for cell, _ in (mine if most is None else naive_choice(person, mine, most))
        )
    shape = domain.shape
    return {tuple(map(int, np.unravel_index(cell, shape))): n for cell, n in kept.items()}


def naive_people(
    records: Iterable[NaiveRecord],
    domain: Domain,
    divided: tuple[int, int] | dict[int, list[int]],
    per: str | None = None,
    most: int = 64,
) -> IntArray:
    """What read_people_by_box is to give, record by record: boxes of each person, ranked by digests. Boxes are those of a
    grid, or lie between the edges of some axes."""
    if isinstance(divided, tuple):
        divided = {
            number: [part * cells // parts for part in range(parts + 1)]
            for number, (cells, parts) in enumerate(zip(domain.shape[:2], divided, strict=True))
        }
    boxes: dict[tuple[str, int | None], set[int]] = defaultdict(set)
    for places, person, second in records:
        cell = naive_cell(places, domain)
        if cell is None or not person or (per is not None and second is None):
            continue
        along, box = np.unravel_index(cell, domain.shape), 0
        for axis, edges in divided.items():
            box = box * (len(edges) - 1) + bisect.bisect_right(edges, int(along[axis])) - 1
        period = None if per is None else naive_slot(second or 0, per)
        boxes[person, period].add(box)
    number = math.prod(len(edges) - 1 for edges in divided.values())
    counted = np.zeros((min(most, number), number), dtype=np.int64)
    for (person, period), found in boxes.items():
        parts = [person] if period is None else [person, period]
        keys = {
            box: hashlib.md5(",".join(map(str, [*parts, box])).encode()).hexdigest()[:12]
            for box in found
        }
        for rank, box in enumerate(sorted(found, key=lambda box: (keys[box], box))[:most]):
            counted[rank, box] += 1
    return counted


def naive_slot(second: int, per: str) -> int:
    """Days since 1970, or weeks from Monday on."""
    days = second // 86_400
    return days if per == "day" else (days + 3) // 7


def naive_choice(person: str, records: list[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    """The `most` records with the smallest digests; all, if there are no more."""
    copies: Counter[tuple[int, int]] = Counter()
    ranked = []
    for cell, time in records:
        copy = copies[cell, time]
        copies[cell, time] += 1
        digest = hashlib.md5(f"{person},{cell},{time},{copy}".encode()).hexdigest()
        ranked.append((digest[:12], cell, time, copy))
    return [(cell, time) for _, cell, time, _ in sorted(ranked)[:most]]


def naive_shares(
    records: Iterable[NaiveRecord],
    domain: Domain,
    shares: int = 256,
    once_per: str | None = None,
    per: str | None = None,
) -> dict[tuple[int, ...], int]:
    """What read_points is to give where people are counted: each person, or each in each period, has all of
    the shares. In the order of cells, the first i of n records together have i / n of them, rounded."""
    of_people: dict[tuple[str, Any], list[tuple[int, int]]] = defaultdict(list)
    for places, person, second in records:
        cell = naive_cell(places, domain)
        if cell is None or not person or (per is not None and second is None):
            continue
        slot = {"hour": 3600, "day": 86_400}.get(once_per or "", 1)
        time = 0 if second is None or once_per == "all" else math.floor(Fraction(second, slot))
        who = person, None if per is None or second is None else naive_period(second, per)
        of_people[who].append((cell, time))
    counts: Counter[int] = Counter()
    for found in of_people.values():
        mine = sorted(cell for cell, _ in (set(found) if once_per else found))
        given = 0
        for number, cell in enumerate(mine, 1):
            so_far = math.floor(Fraction(shares * number, len(mine)) + Fraction(1, 2))
            counts[cell] += so_far - given
            given = so_far
        assert given == shares
    cells = {cell: n for cell, n in counts.items() if n}
    return {tuple(map(int, np.unravel_index(cell, domain.shape))): n for cell, n in cells.items()}


def naive_period(second: int, per: str) -> tuple[int, ...]:
    """The day, week from Monday on, or month of a second since 1970, by Python's own calendar."""
    day = (dt.datetime(1970, 1, 1) + dt.timedelta(seconds=second)).date()
    if per == "month":
        return day.year, day.month
    return (day.toordinal(),) if per == "day" else (day.toordinal() - day.weekday(),)


def naive_cell(places: Sequence[float | None], domain: Domain) -> int | None:
    """Row-major; None outside."""
    number = 0
    for axis, place in zip(domain.axes, places, strict=True):
        if place is None or not axis.low <= place < axis.high:  # which NaN is not
            return None
        along = math.floor(float(axis.to_cells(np.array(place))))
        number = number * axis.cells + min(along, axis.cells - 1)
    return number


def counted(matrix: FrequencyMatrix) -> dict[tuple[int, ...], int]:
    """The non-empty cells."""
    cells = (tuple(map(int, cell)) for cell in matrix.exact_coordinates.T)
    return dict(zip(cells, map(int, matrix.exact_counts), strict=True))


def exact_zone(shape: Any, x: float, y: float) -> bool:
    """Whether a point is in a polygon, by crossings of a ray to the right, in fractions. Numbers below 2**-400 are 0, as documented."""
    import shapely

    px, py = (Fraction(0 if abs(v) < 2.0**-400 else v) for v in (x, y))
    inside = False
    for polygon in shapely.get_parts(shape):
        for ring in shapely.get_rings(polygon):
            corners = [tuple(map(Fraction, c)) for c in shapely.get_coordinates(ring).tolist()]
            for (x1, y1), (x2, y2) in pairwise(corners):
                if (y1 > py) != (y2 > py) and px < x1 + (py - y1) / (y2 - y1) * (x2 - x1):
                    inside = not inside
    return inside


def naive_objective(counts: IntArray, axis: int, cut: int) -> tuple[Fraction, int]:
    """[HTF, Eq. 4] word by word, exactly, and with each half rounded down."""
    halves = np.split(counts, [cut], axis=axis)
    deviations = []
    for half in halves:
        mean = Fraction(int(half.sum()), half.size)
        deviations.append(sum((abs(int(c) - mean) for c in half.ravel()), Fraction(0)))
    return sum(deviations, Fraction(0)), sum(d.numerator // d.denominator for d in deviations)


@st.composite
def trees(draw: st.DrawFn, shapes: list[tuple[int, ...]]) -> RegionTree:
    """Unbalanced trees of one to three axes, with two to five slabs a cut."""
    tree = RegionTree(draw(st.sampled_from(shapes)))
    for _ in range(draw(st.integers(0, 7))):
        open_regions = np.flatnonzero((tree.slabs == 0) & (tree.cells(np.arange(len(tree))) > 1))
        if len(open_regions) == 0:
            break
        region = int(draw(st.sampled_from(open_regions.tolist())))
        wide = np.flatnonzero((tree.high - tree.low)[region] > 1).tolist()
        axis = int(draw(st.sampled_from(wide)))
        inside = st.integers(int(tree.low[region, axis]) + 1, int(tree.high[region, axis]) - 1)
        cuts = sorted(draw(st.sets(inside, min_size=1, max_size=4)))
        tree.cut(np.array([region]), np.array([axis]), np.array(cuts), np.array([len(cuts)]))
    return tree


@st.composite
def counted_trees(
    draw: st.DrawFn, shapes: Sequence[tuple[int, ...]] = ((9,), (5, 4), (12, 1), (3, 4, 3))
) -> tuple[RegionTree, TreeCounts, IntArray]:
    """A tree with counts of which some regions have none and others several, and leaves that tile it,
    some of them inner regions; only such as the counts determine."""
    tree, counts = draw(trees(list(shapes))), TreeCounts()
    skipped = draw(st.sets(st.integers(0, len(tree) - 1), max_size=len(tree) // 2))
    again = draw(st.lists(st.integers(0, len(tree) - 1), max_size=4))
    regions = np.array([r for r in range(len(tree)) if r not in skipped] + again, dtype=np.int64)
    size = len(regions)
    noisy = draw(st.lists(st.integers(-50, 200), min_size=size, max_size=size))
    epsilon = draw(st.lists(st.sampled_from([1, 5, 17, 80]), min_size=size, max_size=size))
    units = np.array(epsilon, dtype=np.int64) * (UNITS_PER_EPSILON // 100)
    counts.add(regions, np.array(noisy, dtype=np.int64), units)
    ends = draw(st.sets(st.integers(1, len(tree)), max_size=3))
    leaves, waiting = [], [0]
    while waiting:
        region = waiting.pop()
        if tree.slabs[region] == 0 or region in ends:
            leaves.append(region)
        else:
            waiting += range(
                tree.first_child[region], tree.first_child[region] + tree.slabs[region]
            )
    assume(np.all(least_squares(tree, counts)[1][leaves] < UNKNOWN))
    return tree, counts, np.array(leaves)


def dense_coefficients(
    tree: RegionTree, counts: TreeCounts, leaves: IntArray
) -> tuple[FloatArray, FloatArray]:
    """The estimates of `leaves` as a matrix times the counts, by the pseudo-inverse of generalised
    least squares, G = (A^T W A)^+ A^T W; and the variance of each count."""
    own_leaves = np.flatnonzero(tree.slabs == 0)
    inside = np.zeros((len(tree), len(own_leaves)))
    for column, leaf in enumerate(own_leaves):
        region = int(leaf)
        while region >= 0:
            inside[region, column] = 1
            region = int(tree.parent[region])
    variances = count_variances(np.concatenate(counts.epsilons))
    design = inside[np.concatenate(counts.regions)]
    weighted = design / np.sqrt(variances)[:, None]
    solve = np.linalg.pinv(weighted, rcond=1e-10) / np.sqrt(variances)
    return inside[leaves] @ solve, variances


def wrong_opendp_sizes(scale: int) -> FloatArray:
    """P(u) of u = 0 … scale - 1, as OpenDP below 0.14.2 draws them: exp(-u / scale), divided wrongly.

    It accepts u with probability exp(-x), x = u / scale, as the chance that a run of successes, the k-th of
    probability x / k, is even in length. The quotient of a / b and k had the denominator (b // g) * k, with
    g the common divisor of a and k, where b * (k // g) is right.
    """

    def accept(x: Fraction) -> float:
        chance, reached, k = 0.0, 1.0, 1
        while reached > 1e-18:
            common = math.gcd(x.numerator, k)
            step = Fraction(x.numerator // common, x.denominator // common * k)
            chance += reached * float(1 - step) * (k % 2)
            reached *= float(step)
            k += 1
        return chance

    accepted = np.array([1.0, *(accept(Fraction(u, scale)) for u in range(1, scale))])
    return np.asarray(accepted / accepted.sum())


def wrong_opendp_draws(scale: int, size: int, rng: np.random.Generator) -> IntArray:
    """Noise u + scale * v with a sign, v geometric; zero with a minus is drawn again."""
    drawn = 2 * size
    u = rng.choice(scale, drawn, p=wrong_opendp_sizes(scale))
    v = rng.geometric(1 - math.exp(-1), drawn) - 1
    negative = rng.integers(0, 2, drawn) == 1
    sizes = u + scale * v
    kept = ~(negative & (sizes == 0))
    return np.asarray(np.where(negative, -sizes, sizes)[kept][:size])


@contextmanager
def plain_intervals() -> Iterator[None]:
    """Intervals as the noise gives them, before they are cut off at zero and reach as far as the count."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (index, tree_index):
            patch.setattr(module, "published", lambda answers, _: answers)
        yield


def uneven_reach(
    model: FloatArray,
    shares: FloatArray,
    squares: FloatArray,
    deviations: FloatArray,
    noise: tuple[FloatArray, FloatArray],
    pieces: float = 1.0,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """How far intervals reach down and up from the answer of least squares, and its variance, for queries of several
    leaves; leaf by leaf, as docs/proofs/tree-noise.md has it.

    `squares` are the leaves' counts by least squares, which are published, with their `deviations`; `noise` has the
    variance of each query's noise and its fourth cumulant.
    """
    kappa, clumps, together, grown, most_lean = model
    variance, fourth = noise
    of_leaves = shares * (1 - shares) * _spread_of(np.maximum(squares, 0), kappa)
    independent = of_leaves.sum(axis=1)
    spread = independent + together * np.maximum(
        np.sqrt(of_leaves).sum(axis=1) ** 2 - independent, 0
    )
    step = shares.max(axis=1) / 2
    down = continuous_half_widths(variance + spread, fourth) + step + grown * np.sqrt(variance)
    off = np.maximum(squares / deviations, -FARTHEST_BELOW)
    n = deviations * stats.truncnorm.mean(-off, np.inf, loc=off)
    expected = np.where(shares < 1, shares, 0.0) @ n
    clumped = (shares * (1 - shares)) @ _spread_of(n, clumps)
    usual = (shares * (1 - shares)) @ _spread_of(n, kappa)
    some = np.where(expected > 0, expected, 1.0)
    lean = (clumped + (pieces - 1) * (clumped + usual) / 2) / some
    lean = np.where(expected > 0, np.minimum(lean, most_lean * np.sqrt(pieces * clumped)), 0.0)
    largest = np.where(step > 0, 2 * step, 1.0)
    times = 1 + lean / np.maximum(pieces * expected + np.sqrt(variance), 1e-300)
    times = np.minimum(times, 1 / largest)
    up = continuous_half_widths(variance * times**2 + spread, fourth * times**4) + step + lean
    return down, up, variance + spread


def _spread_of(n: FloatArray, kappa: float) -> FloatArray:
    return np.asarray(n * (1 - kappa) + n**2 * kappa)


WITHOUT_BENCH = """
import importlib.metadata as packages, sys
found = packages.entry_points
packages.entry_points = lambda group=None, **chosen: packages.EntryPoints(
    point for point in found(group=group, **chosen) if not point.value.startswith("htf_bench")
) if group else found(**chosen)
sys.modules["htf_bench"] = None
"""


def run_without_bench(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process that has the library alone, as if the bench were not installed."""
    command = [sys.executable, "-c", WITHOUT_BENCH + code, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)
