"""How often the 95 % intervals of the default mechanism hold the truth.

    python benchmarks/intervals.py [--runs 10] [--set SET] ... [--points FILE --bounds W,S,E,N] ...

For boxes along leaf edges, regions of the tree with 1, about 10 (6 to 16) and about 1,000 (500 to 2,000) leaves; and for
squares of whole cells, 5 to 400 wide, anywhere and centred on records, which cut through leaves. The last column has how often the
interval reaches out for the count, which would lie outside of it otherwise, over all of those.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from htf import FrequencyMatrix, Release, publish
from htf.forecasts.counting import ExactCounter
from htf.forecasts.places import DataSet
from htf.forecasts.workloads import Boxes
from htf.frame.domain import Domain, IntArray
from htf_bench.datasets import built_in_sets, open_points
from htf_bench.metrics import reaches_for_count

DEFAULT_SETS = ("city", "gaussian-20-1", "gaussian-50-1", "gaussian-100-1")
EPSILONS = ("0.1", "1")
LEAVES = {"1 leaf": (1, 1), "about 10": (6, 16), "about 1,000": (500, 2000)}
WIDTHS = 5, 400
MOST = 2000  # boxes of a kind in a release
FEWEST = 300  # boxes that give a share: its standard error is then about 1 %


def regions_of_leaves(release: Release, least: int, most: int) -> IntArray:
    """Regions of the tree that hold so many leaves."""
    tree = release.tree
    leaves = np.zeros(len(tree), dtype=np.int64)
    leaves[release.leaves] = 1
    inside = leaves > 0
    for layer in reversed(tree.layers(1)):
        np.add.at(leaves, tree.parent[layer], leaves[layer])
    found = (leaves >= least) & (leaves <= most)
    return np.flatnonzero(found & inside if most == 1 else found)


def squares(matrix: FrequencyMatrix, at_records: bool, generator: np.random.Generator) -> Boxes:
    shape = np.array(matrix.domain.shape)
    if at_records:
        shares = matrix.exact_counts / matrix.exact_counts.sum()
        chosen = generator.choice(len(shares), MOST, p=shares)
        centres = matrix.exact_coordinates[:, chosen].T.astype(np.int64)
    else:
        centres = generator.integers(0, shape, (MOST, len(shape)))
    widths = np.geomspace(*WIDTHS, MOST).astype(np.int64)[:, None]
    low = np.clip(centres - widths // 2, 0, shape - 1)
    return Boxes(low, np.clip(centres - widths // 2 + widths, low + 1, shape))


def boxes_of(release: Release, matrix: FrequencyMatrix, seed: int) -> dict[str, Boxes]:
    generator, tree = np.random.default_rng(seed), release.tree
    kinds = {}
    for label, (least, most) in LEAVES.items():
        regions = generator.permutation(regions_of_leaves(release, least, most))[:MOST]
        kinds[label] = Boxes(tree.low[regions], tree.high[regions])
    kinds["anywhere"] = squares(matrix, at_records=False, generator=generator)
    kinds["at records"] = squares(matrix, at_records=True, generator=generator)
    return kinds


def coverage(data_set: DataSet, epsilon: str, runs: int) -> dict[str, NDArray[np.bool_]]:
    matrix = data_set.load()
    counter, axes = ExactCounter(matrix), matrix.domain.axes
    held: dict[str, list[NDArray[np.bool_]]] = {}
    for run in range(runs):
        release = publish(matrix, epsilon, "htf", noise=f"seeded:{run}")
        for label, boxes in boxes_of(release, matrix, run).items():
            edges = np.column_stack([boxes.low, boxes.high])
            rows = [axis.from_cells(edges[:, i]) for i, axis in enumerate(axes * 2)]
            answers, truth = release.count(np.column_stack(rows)), counter.count(boxes)
            held.setdefault(label, []).append((truth >= answers.low) & (truth <= answers.high))
            off = reaches_for_count(answers)
            held.setdefault("reaches for count", []).append(off)
    return {label: np.concatenate(found) for label, found in held.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--points", action="append", default=[])
    parser.add_argument("--bounds", action="append", default=[])
    given = parser.parse_args()
    sets = [built_in_sets()[n] for n in given.set or ([] if given.points else DEFAULT_SETS)]
    for path, bounds in zip(given.points, given.bounds, strict=True):
        west, south, east, north = map(float, bounds.split(","))
        domain = Domain.from_bounds(west, south, east, north, cells=1024)
        sets.append(open_points(path, ("lon", "lat"), domain))
    labels = [*LEAVES, "anywhere", "at records", "reaches for count"]
    print("| map, epsilon | " + " | ".join(labels) + " |")
    print("| --- |" + " ---: |" * len(labels))
    for data_set in sets:
        for epsilon in EPSILONS:
            found = coverage(data_set, epsilon, given.runs)
            enough = {label: found[label].size >= FEWEST for label in labels}
            cells = [f"{found[label].mean():.1%}" if enough[label] else "" for label in labels]
            print(f"| {data_set.name}, {epsilon} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
