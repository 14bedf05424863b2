"""Reads how often each record counts, and adds that up in each cell. Sensitive.

A weight is rounded down to a whole number. Above the limit it counts as the limit. A record whose weight is missing,
negative, infinite or no number is left out. All of this depends on that record alone, so one record moves the sums by
at most the limit, in one cell. docs/proofs/weights.md proves what follows from that.

The column `weight` of located records holds a whole number from 0 to the limit, or one more than the limit for all that
is larger: so that a record that was cut is still known from one that was not.
"""

from __future__ import annotations

import ibis
from ibis.expr.types import FloatingValue, IntegerValue, Table

from htf.ingest import expressions as ex
from htf.ingest.people import CELL, SHARE, WEIGHT

KEPT, ABOVE = "kept", "above"


def as_weight(value: FloatingValue, most: int) -> IntegerValue:
    """A whole number from 0 to `most`, or `most` + 1 for larger ones; missing if the value is no weight.

    Whether a value is finite is asked for by itself: engines sort NaN above every number, and may answer a comparison
    from statistics of a file that ignore it.
    """

    beyond = ibis.literal(most + 1).cast("int64")
    whole = ex.floor(ex.within(value, 0.0, float(most + 1)))
    weight = (value >= ex.constant(float(most + 1))).ifelse(beyond, whole)
    found: IntegerValue = ex.is_finite(value).ifelse(weight, None)
    return found


def only_weighed(located: Table) -> Table:
    """The records, where those without a weight have no cell, and those without a cell no weight."""
    cell, weight = located[CELL], located[WEIGHT]
    return located.mutate(
        cell=weight.notnull().ifelse(cell, None), weight=cell.notnull().ifelse(weight, None)
    )


def count_weights(located: Table, most: int) -> Table:
    """In each cell, the sum of the weights, the number of records, and how many of them are above the limit. Where records
    have shares of a person, each counts as often as it has."""

    weight, limit = located[WEIGHT], ibis.literal(most).cast("int64")
    is_above = weight > limit
    one = located[CELL].notnull().ifelse(1, 0).cast("int64")
    share = located[SHARE] if SHARE in located.columns else one
    counted = located.group_by(CELL).agg(
        records=(share * is_above.ifelse(limit, weight)).sum().cast("int64"),
        kept=share.sum().cast("int64"),
        above=(share * is_above.ifelse(1, 0)).sum().cast("int64"),
    )
    return counted.filter(counted[KEPT] > 0)
