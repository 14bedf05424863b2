"""Every mechanism on 1024 x 1024 with 4 million points, seeded noise, as times of `htf-paper`.

    python benchmarks/mechanisms.py

The limit is 20, and 3 for the default; HDMM and DAWA are exempt. Times are the best of three, the first run (compiling, and HDMM's
search for its strategy) told apart.
"""

from __future__ import annotations

import time

from htf import Domain, FrequencyMatrix, make_mechanism, publish, read_points
from htf.mechanisms import registry
from htf.synthetic.city import synthetic_city

POINTS = 4_000_000
EPSILON = "0.1"
LIMIT = 20
LIMITS = {"htf": 3, "hdmm": "", "dawa": ""}


def city() -> FrequencyMatrix:
    made = synthetic_city(POINTS)
    return read_points((made.x, made.y), Domain.from_bounds(*made.domain_bounds, cells=1024))


def times_of(matrix: FrequencyMatrix, name: str) -> tuple[float, float, int]:
    """Seconds of the first run, of the best of three more, and the number of boxes."""
    times, boxes = [], 0
    for seed in range(4):
        started = time.perf_counter()
        boxes = len(publish(matrix, EPSILON, make_mechanism(name), noise=f"seeded:{seed}"))
        times.append(time.perf_counter() - started)
    return times[0], min(times[1:]), boxes


def main() -> None:
    matrix = city()
    _, reference, _ = times_of(matrix, "htf-paper")
    print("| mechanism | first run, s | best of 3, s | times htf-paper | limit | boxes |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name in registry():
        first, best, boxes = times_of(matrix, name)
        limit = LIMITS.get(name, LIMIT)
        ratio = best / reference
        print(f"| {name} | {first:.2f} | {best:.2f} | {ratio:.1f} | {limit} | {boxes:,} |")


if __name__ == "__main__":
    main()
