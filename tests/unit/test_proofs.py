"""Each measurement that a Curator answers names its proof."""

from __future__ import annotations

from pathlib import Path

from htf.curator.catalogue import MEASUREMENTS
from htf.curator.looks import CountLooks, RefinedCounts

ROOT = Path(__file__).parents[2]


def test_a_measurement_names_a_proof_that_names_it() -> None:
    for measurement in MEASUREMENTS:
        page = ROOT / measurement.proof
        assert page.parent == ROOT / "docs/proofs", measurement
        assert f"`{measurement.__name__}`" in page.read_text("utf-8"), measurement


def test_no_two_measurements_share_a_proof() -> None:
    """But a look and its rest, of which neither is proved without the other."""
    proofs = [measurement.proof for measurement in MEASUREMENTS if measurement != RefinedCounts]
    assert len(set(proofs)) == len(proofs)
    assert RefinedCounts.proof == CountLooks.proof
