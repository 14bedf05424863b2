"""`htf evaluate`: compare mechanisms on exact data. For researchers."""

from __future__ import annotations

from htf.cli import declared
from htf_bench.cli.options import Comparing, Running


@declared.command()
def evaluate(
    asked: Comparing = declared.record_of(Comparing), running: Running = declared.record_of(Running)
) -> None:
    """Compare mechanisms on exact data. The results are not for publication.

    POINTS is a CSV or Parquet file, a NumPy matrix of counts (counts.npy or sets.npz:KEY), or a
    made-up data set: city, gaussian-20-1, gaussian-20-2, gaussian-50-1, … gaussian-100-2.
    """
    from htf_bench.cli.comparison import compare_mechanisms

    compare_mechanisms(asked, running)
