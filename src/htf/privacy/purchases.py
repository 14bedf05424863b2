"""The kinds of purchases that a release can carry, in the order in which it lists them."""

from __future__ import annotations

from htf.privacy.activity import Activity
from htf.privacy.clipping import Clipped
from htf.privacy.distinct import DistinctCounts
from htf.privacy.purchase import Purchase
from htf.privacy.zones_bought import ZonesBought

Measured = Activity | DistinctCounts | Clipped
Bought = Measured | ZonesBought
# What htf.curator measures by itself. Zones are a release of their own, which joins that of the map.
MEASURED = (Activity, DistinctCounts, Clipped)
PURCHASES: tuple[type[Purchase], ...] = (*MEASURED, ZonesBought)
MEASURED_BY_KIND = {kind.kind: kind for kind in MEASURED}
