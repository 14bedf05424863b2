"""How the default mechanism compares with the best other one, cell by cell.

A cell is a data set, an epsilon and a workload. In each, the mean error of `htf` over the runs is divided
by that of the best other mechanism there, at the setting that did best and with the floors included:
a rival that nobody could have picked without looking. Whether it is worse beyond doubt is judged by the
paired ratios, run by run (95 % interval by Student's t).

    python benchmarks/compare_default.py --ours RESULTS ... --others RESULTS ...

RESULTS are folders that `htf evaluate --mechanisms tuned -o` wrote. Their names stand for the data sets: those of one set, named alike,
must have the same seed, queries and runs. Of the others, results of `htf` itself are left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy import stats

AREAS = ("random", "2%", "6%", "10%")
PLACES = ("places-2", "places-4", "places-8", "places-16", "places-32", "places-64")
JUDGED = (("MRE", PLACES), ("MRE-0.1%", PLACES), ("MRE", AREAS), ("RMSE", AREAS))


def read(
    ours: list[Path], others: list[Path]
) -> dict[tuple[str, float, str, str], dict[str, dict[int, float]]]:
    """(data set, epsilon, workload, metric) -> mechanism -> run -> error."""
    columns = [
        "dataset",
        "mechanism",
        "parameters",
        "epsilon",
        "workload",
        "run",
        "metric",
        "value",
    ]
    cells: dict[tuple[str, float, str, str], dict[str, dict[int, float]]] = {}
    for folder, of_ours in [*((f, True) for f in ours), *((f, False) for f in others)]:
        table = pq.read_table(folder / "results.parquet", columns=columns)
        is_ours = pc.equal(table["mechanism"], "htf")
        for row in table.filter(is_ours if of_ours else pc.invert(is_ours)).to_pylist():
            _add(cells, folder.name, row)
    return {key: cell for key, cell in cells.items() if "htf" in cell and key[2]}


def _add(
    cells: dict[tuple[str, float, str, str], dict[str, dict[int, float]]], name: str, row: Any
) -> None:
    key = name, float(row["epsilon"]), row["workload"], row["metric"]
    ours = row["mechanism"] == "htf"
    label = "htf" if ours else f"{row['mechanism']} {row['parameters']}"
    cells.setdefault(key, {}).setdefault(label, {})[row["run"]] = row["value"]


def compare(rivals: dict[str, dict[int, float]]) -> tuple[float, str, float, float]:
    """The ratio to the best other one, which that is, and the paired interval."""
    means = {label: float(np.mean(list(runs.values()))) for label, runs in rivals.items()}
    mean = means.pop("htf")
    best = min(means, key=means.__getitem__)
    runs = sorted(set(rivals["htf"]) & set(rivals[best]))
    with np.errstate(divide="ignore", invalid="ignore"):
        paired = np.log([rivals["htf"][run] / rivals[best][run] for run in runs])
    half = stats.t.ppf(0.975, len(runs) - 1) * np.std(paired, ddof=1) / np.sqrt(len(runs))
    low, high = np.exp(np.mean(paired) - half), np.exp(np.mean(paired) + half)
    return mean / means[best], best.split()[0], float(low), float(high)


def mean_ratio(ratios: list[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


def show(cells: dict[tuple[str, float, str, str], dict[str, dict[int, float]]]) -> None:
    found = {key: compare(rivals) for key, rivals in cells.items()}
    sets = list(dict.fromkeys(key[0] for key in found))
    epsilons = sorted({key[1] for key in found})
    for metric, workloads in JUDGED:
        print(f"\n### {metric}, {'places' if workloads == PLACES else 'areas'}\n")
        header = [f"{w}, ε {e:g}" for e in epsilons for w in workloads]
        print("| data set | mean | " + " | ".join(header) + " |")
        print("| --- | ---: |" + " ---: |" * len(header))
        every: list[float] = []
        for name in sets:
            row = [found[name, e, w, metric] for e in epsilons for w in workloads]
            every += [r[0] for r in row]
            marks = [f"{r[0]:.2f}{'†' if r[2] > 1 else ''}" for r in row]
            print(
                f"| {name} | **{mean_ratio([r[0] for r in row]):.2f}** | "
                + " | ".join(marks)
                + " |"
            )
        chosen = [found[n, e, w, metric] for n in sets for e in epsilons for w in workloads]
        beyond = sum(r[2] > 1 for r in chosen)
        below = sum(r[3] < 1 for r in chosen)
        print(
            f"\ngeometric mean {mean_ratio(every):.3f} of {len(every)} cells; largest {max(every):.2f}; "
            f"better beyond doubt in {below}, worse beyond doubt (†) in {beyond}"
        )
        names = [r[1] for r in chosen]
        best = sorted({n: names.count(n) for n in names}.items(), key=lambda item: -item[1])
        print("best other: " + ", ".join(f"{name} {times}" for name, times in best))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--ours", type=Path, nargs="+", required=True)
    parser.add_argument("--others", type=Path, nargs="+", required=True)
    folders = parser.parse_args()
    show(read(folders.ours, folders.others))
