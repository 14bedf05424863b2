"""Draws of discrete Laplace noise a second, by source and scale.

python benchmarks/noise.py
"""

from __future__ import annotations

import time
from fractions import Fraction

from htf.curator.noise import FastNoise, NoiseSource, OpenDPNoise, SeededNoise

SCALES = (Fraction(14_000), Fraction(50), Fraction(2, 3))


def draws_a_second(source: NoiseSource, scale: Fraction, size: int) -> float:
    """The best of three, after one warming call."""
    source.draw_at(1 / scale, 100)
    times = []
    for _ in range(3):
        started = time.perf_counter()
        source.draw_at(1 / scale, size)
        times.append(time.perf_counter() - started)
    return size / min(times)


def main() -> None:
    print(f"| source | {' | '.join(f'scale {float(s):g}' for s in SCALES)} |")
    print(f"| --- | {' | '.join('---:' for _ in SCALES)} |")
    for name, source, size in (
        ("opendp", OpenDPNoise(), 60_000),
        ("fast", FastNoise(), 600_000),
        ("seeded", SeededNoise(1), 600_000),
    ):
        rates = [draws_a_second(source, scale, size) for scale in SCALES]
        print(f"| {name} | {' | '.join(f'{rate:,.0f}' for rate in rates)} |")


if __name__ == "__main__":
    main()
