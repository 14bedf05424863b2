"""Limits what each person contributes: a number of records, or one person's worth of shares. Sensitive.

What is counted of a person depends only on that person's records: not on other people's, and not on the
order of rows. So adding or removing a person changes only what is counted of that person.
docs/proofs/people.md proves what follows from that. If the unit is a person in one period, such as a day, then
"person" means a person in one period everywhere in this module.

Where people are counted, the shares of a person are handed out to all their records as evenly as whole numbers
allow. In the order of cells, and of weights if there are any, record i of n gets round(S (i + 1) / n) - round(S i / n) of S shares, which add up
to S. Records in the same cell, of the same weight, are alike, so it does not matter which of them is called first.

Where records are counted, at most K of each person are kept.

Records are ranked by a digest of the person, the cell, the time and, for records that agree in all of
these, a number, which follows their weights if they have any. So the kept records are like a random choice, but the same in every run and on every
engine. Most people need no cut, and a window over every row would take several times as long as the count,
so only the records of people who have too many are ranked.

If a database may treat different texts as equal, as in a column that ignores case, a digest of the text
tells people apart as well. Otherwise two people could count as one. Their name, and with it the digests,
would then depend on which of the two the engine met first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import ibis
import numpy as np
from ibis.expr.types import FloatingValue, IntegerValue, Table

from htf.frame.domain import FloatArray, IntArray
from htf.ingest.expressions import floor, key, ratio
from htf.ingest.geometry import column_function

PERSON, SPELLING, PERIOD, CELL, TIME = "person", "spelling", "period", "cell", "time"
BOX, RANK, WEIGHT, WHEN, SHARE = "box", "rank", "weight", "when", "share"
WHO = (PERSON, SPELLING, PERIOD)


def keep_once(located: Table) -> Table:
    """One record for each person, cell and time slot. The column `time` holds the slot here."""
    return located.distinct()


def count_records(located: Table) -> Table:
    """The number of records in each cell. Records without a cell are never counted in this module."""
    counted = located.group_by(CELL).agg(records=located[CELL].count())
    return counted.filter(counted.records > 0)


def count_shares(shared: Table) -> Table:
    """The number of shares in each cell."""
    counted = shared.group_by(CELL).agg(records=shared.share.sum().cast("int64"))
    return counted.filter(counted.records > 0)


def count_shared(
    located: Table, shares: int, count: Callable[[Table], Table] = count_shares
) -> Table:
    """The number of shares of people in each cell, or what else `count` finds of records with shares. Every person has
    `shares` of them. It takes one scan, so that rows of a query need no care of their own."""
    who, order = _who(located), [name for name in (CELL, WEIGHT) if name in located.columns]
    located = located.filter(located[CELL].notnull())
    # Not row_number, which is an integer of 32 bits on Spark.
    number = located[CELL].count()
    ranked = located.mutate(
        place=number.over(rows=(None, 0), group_by=who, order_by=order),
        records=number.over(group_by=who),
    )
    before = ratio(ranked.place - 1, shares, ranked.records)
    return count(ranked.select(*order, share=ratio(ranked.place, shares, ranked.records) - before))


def count_kept(
    located: Table, most: int, *, of_query: bool, count: Callable[[Table], Table] = count_records
) -> Table:
    """The number of records in each cell, or what else `count` finds there, with at most `most` of each person.

    All records are counted, and those that are not kept, of people who have too many, are subtracted. So
    the records of everybody else need no join and no memory. But a query or view is read only once: with a
    LIMIT or a random sample in it, it might give other rows each time, and people who had few records the
    first time could then have many.
    """
    if of_query:
        ranked = _ranked(located)
        return count(ranked.filter(ranked.rank < most))
    who = _who(located)
    per_person = located.group_by(who).agg(records=located[CELL].count())
    many = per_person.filter(per_person.records > most).select(
        **{f"many_{name}": name for name in who}
    )
    same = [located[name] == many[f"many_{name}"] for name in who]
    ranked = _ranked(located.semi_join(many, same))
    off = count(ranked.filter(ranked.rank >= most))
    sums = [name for name in off.columns if name != CELL]
    both = count(located).union(off.mutate(**{name: -off[name] for name in sums}))
    kept = both.group_by(CELL).agg(**{name: both[name].sum().cast("int64") for name in sums})
    return kept.filter(kept.records > 0) if len(sums) == 1 else kept


def _ranked(located: Table) -> Table:
    """The records with their rank within each person, from 0 on."""
    who = _who(located)
    located = located.filter(located[CELL].notnull())
    order = [WEIGHT] if WEIGHT in located.columns else [TIME]
    alike = located.mutate(copy=ibis.row_number().over(group_by=[*who, CELL, TIME], order_by=order))
    keyed = alike.mutate(key=key([alike[name] for name in (PERSON, CELL, TIME, "copy")]))
    return keyed.mutate(
        rank=ibis.row_number().over(group_by=who, order_by=["key", CELL, TIME, "copy"])
    )


def records_of_each(located: Table, most: int, max_weight: int) -> Table:
    """How many people have 1, 2, … records, or units of weight; those with more than `most` count as having that many."""
    number = located[CELL].count()
    if WEIGHT in located.columns:
        weight, limit = located[WEIGHT], ibis.literal(max_weight).cast("int64")
        number = (weight > limit).ifelse(limit, weight).sum()  # not least, which ignores nulls
    per_person = located.group_by(_who(located)).agg(records=number.cast("int64"))
    per_person = per_person.filter(per_person.records > 0)
    capped = per_person.select(records=ibis.least(per_person.records, ibis.literal(most, "int64")))
    return capped.group_by("records").agg(people=capped.count())


def count_distinct(located: Table, most: int) -> Table:
    """The number of people in each box, which is an area of a division of the map, each person once in a box, by the rank of the box among the
    boxes of that person, from 0 to `most`. In one scan.

    Boxes are ranked by a digest of the person and the box, and of the period if there is one.
    """

    who = _who(located)
    located = located.filter(located[CELL].notnull() & located[BOX].notnull())
    pairs = located.select(*who, BOX).distinct()
    parts = [pairs[name] for name in (PERSON, PERIOD, BOX) if name in pairs.columns]
    keyed = pairs.mutate(key=key(parts))
    ranked = keyed.mutate(rank=ibis.row_number().over(group_by=who, order_by=["key", BOX]))
    counted = ranked.filter(ranked[RANK] < most)
    return counted.group_by([BOX, RANK]).agg(people=counted.count())


def part_along(cell: IntegerValue, edges: IntArray, columns_as: str) -> IntegerValue:
    """Which of the parts between `edges` a cell of an axis lies in. Missing where the cell is."""
    if len(edges) > edges[-1]:
        return cell
    if columns_as:
        found: FloatingValue = _lookup(tuple(edges.tolist()), columns_as)(cell.cast("float64"))
        return floor(found)
    # Names without a function are few: htf.ingest.rows.needs_function.
    place: Any = sum((cell >= start).cast("int64") for start in edges[1:-1].tolist())
    return cell.notnull().ifelse(place, None)


@lru_cache(maxsize=16)
def _lookup(edges: tuple[int, ...], columns_as: str) -> Any:
    def look_up(cells: FloatArray) -> FloatArray:
        places = np.searchsorted(edges, cells, side="right") - 1.0
        return np.where((cells >= edges[0]) & (cells < edges[-1]), places, np.nan)

    name = f"htf_part_{hashlib.sha256(repr(edges).encode()).hexdigest()[:32]}"
    return column_function(look_up, name, "float64", 1, columns_as)


def _who(located: Table) -> list[str]:
    """The columns that say whose a record is."""
    return [name for name in WHO if name in located.columns]
