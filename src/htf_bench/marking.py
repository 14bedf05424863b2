"""The marking on every result of the bench."""

from __future__ import annotations

WARNING = "Computed from the exact data: NOT FOR PUBLICATION."
CONSEQUENCE = (
    "Choosing a mechanism, a grid or a bound by these results, on the very data that is to be "
    "released, voids the privacy guarantee."
)
MARKING = f"{WARNING} {CONSEQUENCE}"
