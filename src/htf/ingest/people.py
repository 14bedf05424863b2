"""At most so many records of each person. Sensitive.

Which of a person's records are kept hangs on that person's records alone: not on other people's, and
not on the order of rows. So adding or removing a person changes no more than that person's kept
records. Proof of what follows from that: docs/proofs/people.md.

Records are ranked by a digest of the person, the cell, the time and, of records that agree in all of
these, a number; so that what is kept is like a random choice, but the same in every run and on every
engine. Most people need no cut, and a window over every row would cost several times the count: only
the records of those who have too many are ranked.

Where a database may take texts for equal that are not, as in a column that knows no case, a digest of
the text tells people apart too. Else two people could count as one, and who they are, and with it the
digests, would hang on which of the two the engine met first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from htf.ingest.expressions import key

if TYPE_CHECKING:
    from ibis.expr.types import Table

PERSON, SPELLING, CELL, TIME = "person", "spelling", "cell", "time"


def keep_once(located: Table) -> Table:
    """One record for each person, cell and time slot, which is what `time` holds here."""
    return located.distinct()


def count(located: Table) -> Table:
    """Records of each cell. One without a cell is no record, wherever records are counted here."""
    counted = located.group_by(CELL).agg(records=located[CELL].count())
    return counted.filter(counted.records > 0)


def count_kept(located: Table, most: int, *, of_query: bool) -> Table:
    """Records of each cell, of at most `most` of each person.

    All are counted, and of those who have too many what is not kept is taken off again: so the records of
    all others are in no join, and nothing needs to be held for them. But what a query or view gives is
    asked for once: with a LIMIT or a random sample in it, it might give other rows each time, and people
    who had few records before could then have many.
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
    both = count(located).union(off.mutate(records=-off.records))
    kept = both.group_by(CELL).agg(records=both.records.sum().cast("int64"))
    return kept.filter(kept.records > 0)


def _ranked(located: Table) -> Table:
    """The records of each person in their order, from 0 on."""
    import ibis

    who = _who(located)
    located = located.filter(located[CELL].notnull())
    alike = located.mutate(copy=ibis.row_number().over(group_by=[*who, CELL, TIME], order_by=TIME))
    keyed = alike.mutate(key=key([alike[name] for name in (PERSON, CELL, TIME, "copy")]))
    return keyed.mutate(
        rank=ibis.row_number().over(group_by=who, order_by=["key", CELL, TIME, "copy"])
    )


def records_of_each(located: Table, most: int) -> Table:
    """How many people have 1, 2, … records; those with more than `most` count as having that many."""
    import ibis

    per_person = located.group_by(_who(located)).agg(records=located[CELL].count().cast("int64"))
    per_person = per_person.filter(per_person.records > 0)
    capped = per_person.select(records=ibis.least(per_person.records, ibis.literal(most, "int64")))
    return capped.group_by("records").agg(people=capped.count())


def _who(located: Table) -> list[str]:
    """The columns that say whose a record is."""
    return [name for name in (PERSON, SPELLING) if name in located.columns]
