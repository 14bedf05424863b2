"""The kinds of measurements that a release can hold.

Their order is stored in files: append only. The class behind each kind is in `htf.curator.catalogue`.
"""

from __future__ import annotations

KINDS = (
    "count", "homogeneity", "median", "privtree", "linear", "buckets", "runs", "agreeing", "look", "refined",
)  # fmt: skip
