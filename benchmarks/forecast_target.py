"""How well `htf forecast --target` comes out: the epsilon that it names, tried on data that it did not see.

    python benchmarks/forecast_target.py checkins.parquet --bounds W,S,E,N --target "5 % in squares of 1 km"

A file has columns lon and lat. Records are split in two halves, at random or (--earlier COLUMN) by time. The forecast knows of one half, in turn: its
release (`release`), its points (`points`), or only how many there are, about (`city`: the made-up city over the same
bounds). It names an epsilon for each target. The other half is then released at that epsilon, several times, and the
typical error is measured. Ratios are real error / target: 1 is right, and 1.2 means that the error is 20 % larger than
was promised. All that is printed is computed from the exact data, so it is not for publication.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from htf import Domain, Recipe, publish
from htf.forecasts.made_up import StandIn
from htf.forecasts.places import City, DataSet, PastRelease, PointsFile
from htf.forecasts.search import ask_once, find_epsilon
from htf.forecasts.simulation import Simulation
from htf.forecasts.targets import Target

WAYS = ("release", "points", "city")


def split(args: argparse.Namespace, folder: Path) -> tuple[Domain, list[Path]]:
    """Two halves of the records inside the bounds: one to know, one to release."""
    table = pq.read_table(args.points)
    lon, lat = (table[name].to_numpy() for name in ("lon", "lat"))
    west, south, east, north = (float(edge) for edge in args.bounds.split(","))
    inside = (lon >= west) & (lon < east) & (lat >= south) & (lat < north)
    chosen = np.random.default_rng(args.seed).permutation(np.flatnonzero(inside))
    if args.earlier:
        chosen = chosen[np.argsort(table[args.earlier].to_numpy()[chosen], kind="stable")]
    halves = []
    for place, rows in enumerate(np.array_split(chosen, 2)):
        path = folder / f"half{place}.parquet"
        pq.write_table(pa.table({"lon": lon[rows], "lat": lat[rows]}), path)
        halves.append(path)
    return Domain.from_bounds(west, south, east, north, cells=args.cells), halves


def stand_in(way: str, half: Path, domain: Domain, past: str, seed: int) -> DataSet:
    known = PointsFile("half", half, ("lon", "lat"), domain)
    if way == "points":
        return known
    if way == "release":
        return PastRelease("half", publish(known.load(), past, noise=f"seeded:{seed}"))
    about = float(f"{len(pq.read_table(half)):.1g}")  # as a curator would say it
    return City("city", int(about), map=domain)


def plan_of(known: DataSet, domain: Domain) -> Simulation:
    """Releases of records on a map, with these in place of the data."""
    prepared = Recipe(source=(), domain=domain, epsilon=1).prepare(noise="seeded:1")
    return Simulation(prepared, StandIn("points", "half", known.name, domain, known), ())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("points", type=Path)
    parser.add_argument("--bounds", required=True, metavar="W,S,E,N")
    parser.add_argument("--cells", type=int, default=1024)
    parser.add_argument("--target", action="append", required=True)
    parser.add_argument("--past", default="1", help="epsilon of the release that is known")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--real-runs", type=int, default=8)
    parser.add_argument("--earlier", metavar="COLUMN", help="know the earlier half")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with TemporaryDirectory() as folder:
        domain, (other, held) = split(args, Path(folder))
        real = PointsFile("held", held, ("lon", "lat"), domain)
        for way in args.ways.split(","):
            known = stand_in(way, other, domain, args.past, args.seed)
            for text in args.target:
                target = Target.read(text)
                plan = plan_of(known, domain)
                started = time.process_time()
                found = find_epsilon(plan, target)
                took = time.process_time() - started
                if found.epsilon is None:
                    print(f"{args.points.stem:22} {way:8} {text:32} not reached", flush=True)
                    continue
                check, places = plan_of(real, domain), target.kind(plan)
                errors = [
                    target.error(ask_once(check, places, found.epsilon, 100 + run))
                    for run in range(args.real_runs)
                ]
                ratio = float(np.mean(errors)) / target.limit
                spread = float(np.std(errors, ddof=1) / np.mean(errors))
                print(
                    f"{args.points.stem:22} {way:8} {text:32} epsilon {found.epsilon!s:7} ratio {ratio:.2f}"
                    f"  (one release: ± {100 * spread:.0f} %, {len(found.tried)} simulated, {took:.1f} s of processor)",
                    flush=True,
                )


if __name__ == "__main__":
    main()
