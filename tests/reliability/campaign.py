"""The whole campaign: hostile inputs and releases, kills, faults, flipped bits, load, series and what came later. `make reliability` runs it.

    python -m reliability.campaign [--seed N] [--scale X] [--only inputs,releases,…]

One module for each part, with a `campaign(scale, seed, folder)` that returns tallies. The same seed and scale
try the same things. It prints a table of how often each was tried and how that ended, then what was wrong,
and leaves with 1 if anything was. `test_campaigns.py` runs a small piece of each part with the other tests.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from reliability import faults, flips, fuzz_inputs, fuzz_releases, kills, load, newer, series
from reliability.sandbox import Tally

Campaign = Callable[[float, int, Path], list[Tally]]

CAMPAIGNS: dict[str, Campaign] = {
    "inputs": fuzz_inputs.campaign,
    "releases": fuzz_releases.campaign,
    "kills": kills.campaign,
    "faults": faults.campaign,
    "flips": flips.campaign,
    "load": load.campaign,
    "series": series.campaign,
    "newer": newer.campaign,
}
MOST_SHOWN = 20  # findings of one kind


def run(name: str, scale: float, seed: int) -> list[Tally]:
    with tempfile.TemporaryDirectory(prefix="htf-reliability-") as folder:
        return CAMPAIGNS[name](scale, seed, Path(folder))


def table(tallies: list[Tally]) -> str:
    lines = ["| what | tried | how it ended | failures |", "| --- | ---: | --- | ---: |"]
    for tally in tallies:
        ends = ", ".join(f"{end}: {times:,}" for end, times in tally.results.most_common())
        lines.append(f"| {tally.what} | {tally.tried:,} | {ends} | {len(tally.findings)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="Try other things than the last time.")
    parser.add_argument("--scale", type=float, default=0.5, help="1 tries every call on a file.")
    parser.add_argument("--only", default=",".join(CAMPAIGNS), help="Parts, with commas.")
    asked = parser.parse_args()
    if not 0 < asked.scale <= 1000 or not set(asked.only.split(",")) <= set(CAMPAIGNS):
        parser.error(f"--scale is above 0, and --only names some of {', '.join(CAMPAIGNS)}")
    print(f"htf-dp {version('htf-dp')}, seed {asked.seed}, scale {asked.scale:g}", flush=True)
    found: list[Tally] = []
    for name in asked.only.split(","):
        started = time.monotonic()
        tallies = run(name, asked.scale, asked.seed)
        found += tallies
        tried, wrong = sum(one.tried for one in tallies), sum(len(one.findings) for one in tallies)
        took = time.monotonic() - started
        print(f"{name}: {tried:,} tried in {took:.0f} s, {wrong} findings", flush=True)
        for finding in [one for tally in tallies for one in tally.findings[:MOST_SHOWN]]:
            print("  " + finding.replace("\n", "\n    "), flush=True)
    print("\n" + table(found))
    sys.exit(any(tally.findings for tally in found))


if __name__ == "__main__":
    main()
