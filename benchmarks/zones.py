"""How good published counts of a given hierarchy are, at every level: zones, and trips between zones.

    python benchmarks/zones.py points.parquet --bounds W,S,E,N
    python benchmarks/zones.py trips.parquet --bounds W,S,E,N --trips

A file has columns lon and lat, and for trips dest_lon and dest_lat. Zones are the Voronoi cells of sites: records, picked
at random and moved at random. A record lies in the zone of the nearest site. Sites are joined to about the root of their
number of groups (k-means), and with `--tops` groups to the root of theirs. The whole map is the highest level.

Each row is one level: the mean relative error in per cent (of counts below 0.1 % of all records, relative to that) of
`zones`, and its ratio to the best flat table. That is one discrete Laplace count per zone or pair with all of epsilon,
summed up: as it is, cut off at 0, or, for trips, with all counts below so many scales of the noise set to 0. The best of these
is picked for each level, with the truth, so no user could do as well.

For trips there is InfTDA as well (Boninsegna and Silvestri 2024, after their package inf-tda 0.1): top-down, children moved
to their parent's sum with the least largest change, in whole numbers. It has the exact number of trips for nothing. Its noise
is Gaussian with delta 1e-6, for neighbours that differ by one record, not by one that is moved, which the package would take
sqrt(2) times the noise for. The second one has discrete Laplace noise in place of that, with epsilon divided evenly by the
levels, so that delta is 0. `false` is the number of pairs that are 0 and published as more: by `zones`, by the flat table, and by
the two of InfTDA. `covered` is how many intervals of `release.count` hold the truth.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2
from scipy.spatial import cKDTree

from htf import Axis, Domain, FrequencyMatrix, Names, Release, make_mechanism, publish
from htf.frame.domain import FloatArray, IntArray

EPSILONS = ("0.1", "1")
SMOOTHING = 0.001  # of all records
THRESHOLDS = (1.0, 2.0, 3.0, 4.0, 6.0)  # of flat tables, in scales of the noise
DELTA = 1e-6
RIVALS = ("inftda", "inftda-pure")
JITTER = 0.2  # of the distance to the nearest other site


@dataclass(frozen=True)
class Layer:
    """Zones in the order of cells, with the edges of each level from the zones up."""

    sites: FloatArray
    names: Names

    @classmethod
    def make(
        cls, places: FloatArray, zones: int, tops: bool, generator: np.random.Generator
    ) -> Layer:
        picked = places[generator.choice(len(places), 4 * zones, replace=False)]
        _, first = np.unique(np.round(picked, 4), axis=0, return_index=True)
        sites = picked[np.sort(first)][:zones]
        apart, _ = cKDTree(sites).query(sites, k=2)
        sites = sites + generator.normal(size=sites.shape) * JITTER * apart[:, 1:]
        columns = [_cluster(sites, round(math.sqrt(len(sites))), generator)]
        if tops:
            middles = np.array(
                [sites[columns[0] == one].mean(axis=0) for one in range(columns[0].max() + 1)]
            )
            columns.append(_cluster(middles, round(math.sqrt(len(middles))), generator)[columns[0]])
        columns.append(np.zeros(len(sites), dtype=np.int64))
        order = np.lexsort(columns)
        labels = {"zone": [f"z{i}" for i in range(len(sites))]}
        for name, column in zip(
            ("group", "top", "map") if tops else ("group", "map"), columns, strict=True
        ):
            labels[name] = [f"{name}{one}" for one in column[order]]
        return cls(sites[order], Names.of(labels))

    def zone_of(self, places: FloatArray) -> IntArray:
        return np.asarray(cKDTree(self.sites).query(places)[1], dtype=np.int64)

    @property
    def edges(self) -> dict[str, IntArray]:
        return {one.name: self.names.edges(number) for number, one in enumerate(self.names.levels)}


def _cluster(places: FloatArray, groups: int, generator: np.random.Generator) -> IntArray:
    _, found = kmeans2(places, groups, minit="++", seed=generator)
    return np.unique(found, return_inverse=True)[1]


def sums(table: NDArray[Any], edges: IntArray) -> NDArray[Any]:
    """The sums of a table of cells over the regions of a level, along every axis."""
    for axis in range(table.ndim):
        table = np.add.reduceat(table, edges[:-1], axis=axis)
    return table


def relative_error(found: FloatArray, truth: FloatArray, smoothing: float) -> float:
    return float(100 * np.mean(np.abs(found - truth) / np.maximum(truth, smoothing)))


def laplace(epsilon: float, shape: tuple[int, ...], generator: np.random.Generator) -> IntArray:
    one, other = (generator.geometric(-math.expm1(-epsilon), shape) for _ in range(2))
    return np.asarray(one - other)


def flat_tables(
    truth: IntArray, epsilon: float, generator: np.random.Generator
) -> Iterator[tuple[str, FloatArray]]:
    noisy = (truth + laplace(epsilon, truth.shape, generator)).astype(np.float64)
    yield "flat", noisy
    yield "flat, cut off", np.maximum(noisy, 0)
    if truth.ndim > 1:
        for threshold in THRESHOLDS:
            yield (
                f"flat, from {threshold:g} scales",
                np.where(noisy >= threshold / epsilon, noisy, 0),
            )


def inf_tda(
    truth: IntArray,
    edges: list[IntArray],
    epsilon: float,
    pure: bool,
    generator: np.random.Generator,
) -> FloatArray:
    """Top-down over square levels of a table, as the package inf-tda does it; `edges` from the zones up."""
    levels = [one for one in edges[::-1] if len(one) > 2]
    rho = math.log(1 / DELTA) * (math.sqrt(1 + epsilon / math.log(1 / DELTA)) - 1) ** 2
    deviation = math.sqrt(len(levels) / (2 * rho))
    known, above = np.array([[truth.sum()]]), np.array([0, len(truth)])
    for level in levels:
        exact = sums(truth, level)
        if pure:
            noisy = exact + laplace(epsilon / len(levels), exact.shape, generator)
        else:
            noisy = exact + np.rint(generator.normal(size=exact.shape) * deviation).astype(np.int64)
        found, starts = np.zeros_like(noisy), np.searchsorted(level, above)
        for i, j in np.argwhere(known > 0):
            block = np.s_[starts[i] : starts[i + 1], starts[j] : starts[j + 1]]
            found[block] = _least_largest_change(noisy[block].ravel(), int(known[i, j])).reshape(
                noisy[block].shape
            )
        known, above = found, level
    return known.astype(np.float64)


def _least_largest_change(x: IntArray, total: int) -> IntArray:
    """Algorithm 3 of the paper: whole numbers >= 0 that sum to `total` and are closest to x in the largest change."""
    z = np.maximum(np.full(len(x), math.ceil((total - x.sum()) / len(x))), -x)
    most, need = int(np.abs(z).max()), int(total - x.sum())
    order = np.argsort(x, kind="stable")
    order = order[z[order] > -x[order]]
    place = 0
    while z.sum() > need:
        if place == len(order):
            order = order[z[order] > -x[order]]
            most += max(1, int((z.sum() - need) / max(len(order), 1)))
            place = 0
        one = order[place]
        z[one] = max(z[one] - (z.sum() - need), -x[one], -most)
        place += 1
    return np.asarray(x + z)


def covered(release: Release, truth: FloatArray, edges: IntArray) -> tuple[FloatArray, float]:
    """The published counts of a level's regions, and how many of their intervals hold the truth."""
    axes = np.meshgrid(*[np.arange(len(edges) - 1)] * truth.ndim, indexing="ij")
    low = [edges[axis.ravel()] for axis in axes]
    high = [edges[axis.ravel() + 1] for axis in axes]
    answers = release.count(np.column_stack([*low, *high]).astype(np.float64))
    inside = (answers.low <= truth.ravel()) & (truth.ravel() <= answers.high)
    return np.asarray(answers.count).reshape(truth.shape), float(inside.mean())


def run(
    layer: Layer, truth: IntArray, epsilon: str, settings: dict[str, str], runs: int, mechanism: str
) -> dict[str, dict[str, list[float]]]:
    """The figures of every level, a list of one for each run."""
    axes = [Axis.named(name, layer.names) for name in ("zone", "dest_zone")[: truth.ndim]]
    matrix = FrequencyMatrix.from_dense(Domain(tuple(axes)), truth)
    smoothing = SMOOTHING * truth.sum()
    figures: dict[str, dict[str, list[float]]] = {name: {} for name in layer.edges}

    def note(level: str, what: str, value: float) -> None:
        figures[level].setdefault(what, []).append(value)

    for seed in range(runs):
        generator = np.random.default_rng([7, seed])
        release = publish(
            matrix, epsilon, make_mechanism(mechanism, **settings), noise=f"seeded:{seed}"
        )
        rivals = dict(flat_tables(truth, float(epsilon), generator))
        if truth.ndim > 1:
            for pure, name in ((True, "inftda-pure"), (False, "inftda")):
                rivals[name] = inf_tda(
                    truth, list(layer.edges.values()), float(epsilon), pure, generator
                )
        for level, edges in layer.edges.items():
            exact = sums(truth, edges).astype(np.float64)
            ours, share = covered(release, exact, edges)
            note(level, "covered", 100 * share)
            note(level, "zones", relative_error(ours, exact, smoothing))
            note(level, "false zones", float(np.sum((ours > 0) & (exact == 0))))
            for name, table in rivals.items():
                found = sums(table, edges)
                note(level, name, relative_error(found, exact, smoothing))
                note(level, f"false {name}", float(np.sum((found > 0) & (exact == 0))))
    return figures


def show(name: str, zones: int, epsilon: str, figures: dict[str, dict[str, list[float]]]) -> None:
    """A row for each level, and one with the geometric means of ratios."""
    all_ratios: dict[str, list[float]] = {}
    for level, found in figures.items():
        means = {what: float(np.mean(values)) for what, values in found.items()}
        flat = min(
            (what for what in means if what.startswith("flat")), key=lambda what: means[what]
        )
        row = [name, zones, epsilon, level, f"{means['zones']:.3g}"]
        for rival in (flat, *(one for one in RIVALS if one in means)):
            ratio = means["zones"] / means[rival] if means[rival] > 0 else math.nan
            all_ratios.setdefault(rival.split(",")[0], []).append(ratio)
            ours = np.array(found["zones"])
            spread = ratio * float(np.std(ours)) / math.sqrt(len(ours)) / max(means["zones"], 1e-9)
            row += [f"{means[rival]:.3g}{rival[4:] if rival == flat else ''}"]
            row += ["" if math.isnan(ratio) else f"{ratio:.2f} ± {spread:.2f}"]
        if "inftda" in means:
            invented = [means[f"false {one}"] for one in ("zones", flat, *RIVALS)]
            row.append(" / ".join(f"{one:,.0f}" for one in invented))
        print("|", " | ".join(map(str, [*row, f"{means['covered']:.1f}"])), "|", flush=True)
    ratios = [f"| {math.exp(np.nanmean(np.log(one))):.2f} " for one in all_ratios.values()]
    print(f"| {name} | {zones} | {epsilon} | geometric mean | | {'| '.join(ratios)}|", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("points", type=Path)
    parser.add_argument("--bounds", required=True, help="W,S,E,N")
    parser.add_argument("--trips", action="store_true", help="pairs of zones")
    parser.add_argument("--zones", help="numbers of zones")
    parser.add_argument(
        "--tops", action="store_true", help="one more level, between groups and the map"
    )
    parser.add_argument("--epsilons", default=",".join(EPSILONS))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--mechanism", default="zones")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        help="parameter=value of the mechanism",
    )
    given = parser.parse_args()
    west, south, east, north = map(float, given.bounds.split(","))
    table = pq.read_table(given.points)
    names = ("lon", "lat", "dest_lon", "dest_lat") if given.trips else ("lon", "lat")
    values = np.column_stack([table[name].to_numpy() for name in names])
    inside = np.all(
        [
            (v >= low) & (v < high)
            for v, low, high in zip(values.T, [west, south] * 2, [east, north] * 2, strict=False)
        ],
        axis=0,
    )
    values = values[inside]
    heads = ["data", "zones", "ε", "level", "`zones`, %", "best flat, %", "ratio"]
    if given.trips:
        heads += ["InfTDA, %", "ratio", "the same, pure, %", "ratio", "false"]
    print("|", " | ".join([*heads, "covered, %"]), "|")
    print("|", " | ".join(["---"] * (len(heads) + 1)), "|")
    settings = dict(one.split("=", 1) for one in given.settings)
    for zones in map(
        int, (given.zones or ("64,256" if given.trips else "140,1000,5000")).split(",")
    ):
        layer = Layer.make(values[:, :2], zones, given.tops, np.random.default_rng(zones))
        zone = [layer.zone_of(values[:, i : i + 2]) for i in range(0, values.shape[1], 2)]
        truth = np.zeros((len(layer.sites),) * len(zone), dtype=np.int64)
        np.add.at(truth, tuple(zone), 1)
        for epsilon in given.epsilons.split(","):
            figures = run(layer, truth, epsilon, settings, given.runs, given.mechanism)
            show(given.points.stem, len(layer.sites), epsilon, figures)


if __name__ == "__main__":
    main()
