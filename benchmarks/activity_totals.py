"""How well the total of people's records is known, and how often its interval holds it, for many laws of activity.

    python benchmarks/activity_totals.py                      # made-up people
    python benchmarks/activity_totals.py FILE.parquet ...     # the records of each `user_id`

No map is made: the activity is measured with a tenth of epsilon, K follows from it, and the sum of kept records has the
noise of one count at what is left for each record. For every case the table has the median of K, the mean error and
the median absolute error of the total, the share of 95 % intervals that hold it, and the medians of their ends, in per
cent of the truth. The truth is the total of all records, unless it says `capped`: then people with more than --most
count as that many, as the release says. With --floor it has instead how far apart these medians must at least be, for any
mechanism that spends the epsilon of the activity on a person, on one draw of the people.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.random import Generator
from numpy.typing import NDArray

from htf import Epsilon, RecordsPerPerson, best_max_records, measure_activity
from htf.estimation.activity import read_profiles
from htf.estimation.noise_law import NORMAL_DEVIATIONS

IntArray = NDArray[np.int64]
Law = Callable[[Generator, int], IntArray]
SHARE = 0.1


def lognormal(chance: Generator, people: int, middle: float, spread: float) -> IntArray:
    return np.maximum(1, np.rint(chance.lognormal(middle, spread, people))).astype(np.int64)


def pareto(exponent: float, least: float = 1.0) -> Law:
    def law(chance: Generator, people: int) -> IntArray:
        # A person with 2**20 records is the most that HTF takes.
        return np.clip(np.floor(least * (1 + chance.pareto(exponent, people))), 1, 2**20).astype(
            np.int64
        )

    return law


def machines(number: int, least: int, most: int) -> Law:
    def law(chance: Generator, people: int) -> IntArray:
        usual = lognormal(chance, people - number, 1.3, 1.0)
        return np.concatenate([usual, chance.integers(least, most + 1, number)])

    return law


def levelling_off(chance: Generator, people: int) -> IntArray:
    """As of 25,379 people with 195,861 records: half have up to 2 or 3, activity levels off near 100, the most is 120."""
    numbers = np.ceil(110 * np.tanh(chance.lognormal(1.0, 1.4, people) / 110))
    return np.asarray(np.clip(numbers, 1, 120), dtype=np.int64)


# Designs were compared on the first group; the second was run once, when the choice was made.
LAWS: dict[str, Law] = {
    "lognormal": lambda chance, people: lognormal(chance, people, 2, 1.2),
    "capped at 120": lambda c, n: np.minimum(lognormal(c, n, 1.6, 1.3), 120),
    "Pareto 1.3": pareto(1.3),
    "Pareto 3": pareto(3, 10),
    "two kinds": lambda c, n: np.where(c.random(n) < 0.9, c.geometric(0.3, n), c.poisson(200, n) + 1),
    "20 machines": machines(20, 300, 900),
    "everyone 37": lambda _, n: np.full(n, 37),
}  # fmt: skip
HELD_OUT: dict[str, Law] = {
    "levels off": levelling_off,
    "wide lognormal": lambda c, n: lognormal(c, n, 1, 1.8),
    "Pareto 1.1": pareto(1.1),
    "Pareto 1.5": pareto(1.5, 2),
    "Pareto 2": pareto(2, 3),
    "5 machines": machines(5, 1000, 5000),
    "40 machines": machines(40, 500, 2000),
    "thirds": lambda c, n: c.choice([3, 45, 700], n, p=[0.8, 0.17, 0.03]),
    "everyone 129": lambda _, n: np.full(n, 129),
    "everyone 1": lambda _, n: np.ones(n, dtype=np.int64),
}
EXAMPLES: dict[str, tuple[int, Law]] = {
    "levels off near 100": (25_379, levelling_off),
    "taxis, 21 above 255": (
        7_902,
        lambda c, n: np.r_[np.minimum(lognormal(c, n - 21, 2.0, 1.0), 255), c.integers(256, 800, 21)],
    ),
    "20 machines of 300 to 900": (12_000, machines(20, 300, 900)),
    "Pareto 1.3": (12_000, pareto(1.3)),
}  # fmt: skip


def totals(
    records: Iterator[IntArray], epsilon: float, most: int, seed: int, *, capped: bool = False
) -> NDArray[np.float64]:
    """For each draw: K, the estimate, the ends of the interval, all three in parts of the true total."""
    chance, found = np.random.default_rng(seed), []
    price, left = Epsilon.of(f"{SHARE * epsilon:.9f}"), (1 - SHARE) * epsilon
    for number, each in enumerate(records):
        shown = np.minimum(each, most)
        total = float((shown if capped else each).sum())
        people = RecordsPerPerson.from_records(each, most)
        activity = measure_activity(people, price, noise=f"seeded:{seed * 100_000 + number}")
        kept = best_max_records(activity, Epsilon.of(f"{left:.9f}"))
        noise = chance.laplace(0, kept / left)
        profiles = read_profiles(activity)
        some = max(
            float(np.minimum(each, kept).sum()) + noise, profiles.records_up_to(kept) / 2, 1.0
        )
        beyond, below, above = profiles.records_beyond(kept, some)
        of_map = np.sqrt(2) * kept / left
        ends = -np.hypot(below, of_map), 0.0, np.hypot(above, of_map)
        found.append([kept, *((some + beyond + NORMAL_DEVIATIONS * end) / total for end in ends)])
    return np.array(found)


def least_width(each: IntArray, epsilon: float, most: int) -> float:
    """How far apart the medians of both ends of a 95 % interval must be, in parts of the total.

    As many people as make a miss half as likely as not may be hidden with `most` records each, or be those with most
    records. What may fail is divided between both ends as is best for these data. Proof: docs/proofs/people.md.
    """
    records = np.append(0, np.cumsum(np.sort(np.minimum(each, most))[::-1]))
    above = np.linspace(0.001, 0.049, 481)
    hidden, gone = (np.log(1 / (2 * share)) / epsilon for share in (above, 0.05 - above))
    widths = np.floor(hidden) * most + records[np.minimum(np.floor(gone).astype(int), len(each))]
    return float(widths.min() / records[-1])


def row(name: str, people: int, epsilon: float, found: NDArray[np.float64]) -> str:
    kept, low, middle, high = found.T
    held = np.mean((low <= 1) & (high >= 1))
    return (
        f"| {name} | {people:,} | {epsilon:g} | {np.median(kept):.0f} | {100 * np.mean(middle - 1):+.1f} | "
        f"{100 * np.median(np.abs(middle - 1)):.2f} | {100 * held:.1f} | {100 * np.median(low - 1):+.1f} to "
        f"{100 * np.median(high - 1):+.1f} |"
    )


def read_records(path: Path) -> IntArray:
    users = pq.read_table(path, columns=["user_id"])["user_id"].to_numpy()
    return np.unique(users, return_counts=True)[1].astype(np.int64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--laws", choices=["first", "held-out", "examples"], nargs="*", default=["first", "held-out", "examples"])  # fmt: skip
    parser.add_argument("--people", type=int, nargs="*", default=[1000, 10_000, 100_000])
    parser.add_argument("--epsilon", type=float, nargs="*", default=[0.25, 1, 4])
    parser.add_argument("--most", type=int, default=2000)
    parser.add_argument("--capped", action="store_true")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--floor", action="store_true")
    given = parser.parse_args()
    cases: list[tuple[str, int, Law]] = []
    for path in given.files:
        each = read_records(path)
        cases.append((path.stem, len(each), lambda _, __, each=each: each))  # type: ignore[misc]
    if not given.files:
        for group, laws in (("first", LAWS), ("held-out", HELD_OUT)):
            if group in given.laws:
                cases += [
                    (name, people, law) for name, law in laws.items() for people in given.people
                ]
        if "examples" in given.laws:
            cases += [(name, people, law) for name, (people, law) in EXAMPLES.items()]
    if given.floor:
        for name, people, law in cases:
            each = law(np.random.default_rng([given.seed, people]), people)
            widths = [least_width(each, SHARE * one, given.most) for one in given.epsilon]
            print(f"| {name} | {people:,} | {' / '.join(f'{100 * one:.1f}' for one in widths)} |")
        return
    print("| law | people | ε | K | mean error, % | median error, % | held, % | interval, % |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
    shares: list[float] = []
    for name, people, law in cases:
        for epsilon in given.epsilon:
            chance = np.random.default_rng([given.seed, people])
            records = (law(chance, people) for _ in range(given.draws))
            # Noise of its own for each case: else one draw of the last class decides all of them.
            seed = given.seed * 10_000 + len(shares)
            found = totals(records, epsilon, given.most, seed, capped=given.capped)
            shares.append(float(np.mean((found[:, 1] <= 1) & (found[:, 3] >= 1))))
            print(row(name, people, epsilon, found), flush=True)
    print(
        f"\nAll together: {100 * np.mean(shares):.1f} % held; the least {100 * np.min(shares):.1f} %"
    )


if __name__ == "__main__":
    main()
