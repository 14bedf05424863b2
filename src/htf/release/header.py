"""Checks the header of a release before anything is built from it.

A release comes from somebody else. Its header is JSON that anyone may have written, so every value has a
type and a range here, and unlisted values are refused. The values of a header that passed are safe to use:
no text is endless, no list is huge, no number overflows, nothing is nested without end.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from htf.errors import ReleaseFileError
from htf.estimation.prior import MOST_PRIOR_CELLS, MOST_PRIORS
from htf.frame.domain import LONGEST_CRS, LONGEST_NAME, MOST_AXES, MOST_CELLS_PER_AXIS
from htf.frame.names import LONGEST_LABEL, MOST_LEVELS, MOST_NAMES
from htf.privacy import distinct
from htf.privacy.activity import OLDER_ENDS
from htf.privacy.protection import (
    COUNTED,
    LONGEST_WEIGHT,
    MOST_RECORDS_OF_A_PERSON,
    MOST_SHARES,
    MOST_WEIGHT,
    ONCE_PER,
    PERIODS,
    PERSON,
    RECORD,
)

MOST_PERIODS = 10_000  # of a background
FORMAT = 7  # the newest that is read, and the one that is written
WITH_COLUMNS = 4  # from this one on a digest covers every column
LONGEST_HEADER = 2**22  # bytes; names of zones take up to three quarters of it
LONGEST_REST = 2**20  # bytes beside the axes; HDMM's strategies of 1024 x 1024 cells take 20 kB
DEEPEST = 16  # lists in lists, or objects in objects
MOST_LINES = (
    1024  # of the ledger; a line is one round of questions, and releases have up to some hundred
)
MOST_ANSWERS = 2**40
LONGEST_WORD, LONGEST_TEXT = 1000, 20_000
LONGEST_ENTRY = 64  # the id of a charge

Rule = Callable[[Any, str], None]


def read_header(content: bytes, path: Path) -> dict[str, Any]:
    """The header, of the types and within the ranges that a release has."""
    header = read_json(content)
    number = header.get("format") if isinstance(header, dict) else None
    if type(number) is not int or number < 1:
        raise ReleaseFileError("its header cannot be read")
    if number > FORMAT:
        maker = str(header.get("software"))[:LONGEST_NAME]
        raise NewerFileError(
            f"{path} has format {number}, made by a newer version ({maker}); "
            f"this one reads up to format {FORMAT}: upgrade htf-dp"
        )
    rest = {name: value for name, value in header.items() if name != "domain"}
    if len(json.dumps(rest)) > LONGEST_REST:
        raise ReleaseFileError(f"its header has more than {LONGEST_REST:,} bytes beside its axes")
    HEADER(header, "")
    if number >= WITH_COLUMNS and "columns_digest" not in header:
        raise ReleaseFileError("its header has no 'columns_digest'")
    return header  # type: ignore[no-any-return]


class NewerFileError(ReleaseFileError):
    """A file that is not damaged, but made by a later version."""


def read_json(content: bytes) -> Any:
    """JSON that is neither long nor deep, with texts that can be written and shown."""
    if len(content) > LONGEST_HEADER:
        raise ReleaseFileError(f"its header has more than {LONGEST_HEADER:,} bytes")
    try:
        found = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        raise ReleaseFileError("its header cannot be read") from None
    _check_plain(found)
    return found


def _check_plain(value: Any) -> None:
    """Refuse values nested too deep, by a walk that cannot run out of stack, and half characters."""
    layer, depth = [value], 0
    while layer:
        depth += 1
        if depth > DEEPEST:
            raise ReleaseFileError(f"its header is nested more than {DEEPEST} deep")
        for one in layer:
            if isinstance(one, str):
                _check_characters(one)
            elif isinstance(one, dict):
                for name in one:
                    _check_characters(name)
            elif type(one) is int and abs(one) >= 2**63:
                raise ReleaseFileError("its header has a number beyond 64 bits")
        layer = [
            part
            for one in layer
            if isinstance(one, (list, dict))
            for part in (one.values() if isinstance(one, dict) else one)
        ]


def _check_characters(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ReleaseFileError("its header has a text with half a character") from None


def _refuse(place: str, wanted: str) -> NoReturn:
    raise ReleaseFileError(f"{place or 'all'} in its header must be {wanted}")


def _text(longest: int = LONGEST_WORD, form: str | None = None) -> Rule:
    def check(value: Any, place: str) -> None:
        if not isinstance(value, str) or len(value) > longest:
            _refuse(place, f"a text of at most {longest:,} characters")
        if form is not None and re.fullmatch(form, value, re.ASCII) is None:
            _refuse(place, f"a text of the form {form}")

    return check


def _whole(least: int, most: int) -> Rule:
    def check(value: Any, place: str) -> None:
        if type(value) is not int or not least <= value <= most:
            _refuse(place, f"a whole number between {least} and {most}")

    return check


def _number(value: Any, place: str) -> None:
    if type(value) not in (int, float) or not math.isfinite(value):
        _refuse(place, "a finite number")


def _flag(value: Any, place: str) -> None:
    if type(value) is not bool:
        _refuse(place, "true or false")


def _object(value: Any, place: str) -> None:
    if not isinstance(value, dict):
        _refuse(place, "an object")


def _one_of(*known: Any) -> Rule:
    def check(value: Any, place: str) -> None:
        if not any(type(value) is type(one) and value == one for one in known):
            _refuse(place, f"one of {', '.join(map(str, known))}")

    return check


def _or_null(rule: Rule) -> Rule:
    def check(value: Any, place: str) -> None:
        if value is not None:
            rule(value, place)

    return check


def _list(rule: Rule, fewest: int, most: int) -> Rule:
    def check(value: Any, place: str) -> None:
        if not isinstance(value, list) or not fewest <= len(value) <= most:
            _refuse(place, f"a list of {fewest} to {most} entries")
        for number, entry in enumerate(value):
            rule(entry, f"{place}[{number}]")

    return check


def _fields(needed: Mapping[str, Rule], others: Mapping[str, Rule] = {}) -> Rule:
    def check(value: Any, place: str) -> None:
        _object(value, place)
        if missing := [name for name in needed if name not in value]:
            raise ReleaseFileError(f"its header has no {_inside(place, missing[0])!r}")
        rules = {**needed, **others}
        for name, entry in value.items():
            if name not in rules:
                raise ReleaseFileError(f"its header has {name!r:.100}, which no release has")
            rules[name](entry, _inside(place, name))

    return check


def _inside(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


_epsilon = _text(form=r"\d{1,4}(\.\d{1,15})?")
_sha256 = _text(form="[0-9a-f]{64}")
_names = _fields(
    {
        "levels": _list(
            _fields(
                {
                    "name": _text(LONGEST_LABEL),
                    "labels": _list(_text(LONGEST_LABEL), 1, MOST_NAMES),
                    "starts": _list(_whole(0, MOST_NAMES), 1, MOST_NAMES),
                }
            ),
            1,
            MOST_LEVELS,
        ),
        "rest": _or_null(_text(LONGEST_LABEL)),
        "zones": _flag,
    }
)
_axis = _fields(
    {
        "name": _text(LONGEST_NAME),
        "low": _number,
        "high": _number,
        "cells": _whole(1, MOST_CELLS_PER_AXIS),
    },
    {"names": _names},
)
_line = _fields(
    {
        "label": _text(),
        "kind": _text(),
        "sensitivity": _whole(0, 2**62),
        "answers": _whole(0, MOST_ANSWERS),
        "smallest_epsilon": _epsilon,
        "largest_epsilon": _epsilon,
        "spent_after": _epsilon,
    }
)
_prior = _fields(
    {
        "name": _text(),
        "sha256": _text(),
        "cells": _list(_whole(1, MOST_PRIOR_CELLS), 1, MOST_AXES),
    }
)
_protection = _fields(
    {
        "unit": _one_of(RECORD, PERSON),
        "max_records": _whole(1, MOST_RECORDS_OF_A_PERSON),
        "once_per": _one_of(None, *ONCE_PER),
        "of_query": _flag,
    },
    {
        "count": _one_of(*COUNTED),
        "per": _one_of(None, *PERIODS),
        "shares": _whole(1, MOST_SHARES),
        "weight": _or_null(_text(LONGEST_WEIGHT)),
        "max_weight": _whole(1, MOST_WEIGHT),
    },
)
_clipped = _fields(
    {
        "within": _whole(-(2**62), 2**62),
        "above": _whole(-(2**62), 2**62),
        "protection": _protection,
        "epsilon": _epsilon,
        "noise": _text(),
        "private": _flag,
    }
)
_suggestion = _fields(
    {
        "max_records": _whole(1, MOST_RECORDS_OF_A_PERSON),
        "quantile": _text(form=r"\d{1,30}(/[1-9]\d{0,29})?"),
        "most": _whole(1, MOST_RECORDS_OF_A_PERSON),
        "epsilon": _epsilon,
        "noise": _text(),
        "private": _flag,
    },
    {"per": _one_of(None, *PERIODS)},
)
_activity = _fields(
    {
        "people": _list(_whole(-(2**62), 2**62), 1, len(OLDER_ENDS)),
        "epsilon": _epsilon,
        "noise": _text(),
        "private": _flag,
        "decides": _flag,
        "per": _one_of(None, *PERIODS),
    },
    {"most": _whole(1, MOST_RECORDS_OF_A_PERSON)},  # from format 7 on
)
_distinct = _fields(
    {
        "grid": _list(_whole(1, distinct.MOST_GRID_BOXES), 2, 2),
        "max_boxes": _whole(1, distinct.MOST_BOXES_OF_A_PERSON),
        "counts": _list(_whole(-(2**62), 2**62), 1, distinct.MOST_GRID_BOXES),
        "people": _list(_whole(-(2**62), 2**62), 0, len(distinct.CLASS_ENDS)),
        "epsilon": _epsilon,
        "people_epsilon": _epsilon,
        "noise": _text(),
        "private": _flag,
        "decides": _flag,
        "per": _one_of(None, *PERIODS),
    }
)
HEADER = _fields(
    {
        "format": _whole(1, FORMAT),
        "software": _text(),
        "domain": _fields(
            {"axes": _list(_axis, 1, MOST_AXES), "crs": _or_null(_text(LONGEST_CRS))}
        ),
        "epsilon": _epsilon,
        "mechanism": _text(),
        "parameters": _object,
        "facts": _object,
        "estimator": _text(),
        "noise": _text(),
        "private": _flag,
        "ledger": _list(_line, 0, MOST_LINES),
        "statement": _text(LONGEST_TEXT),
        "digest": _list(_sha256, 2, 2),
    },
    {
        "prior": _prior,  # of formats before 6, which had at most one
        "priors": _list(_prior, 1, MOST_PRIORS),
        "background": _fields({"periods": _whole(1, MOST_PERIODS)}),
        "protection": _protection,
        "suggestion": _suggestion,
        "activity": _activity,
        "factor": _number,
        "distinct": _distinct,
        "inside_zones": _list(_sha256, 2, 2),
        "clipped": _clipped,
        "budget_entry": _text(form=f"[0-9A-Za-z_-]{{1,{LONGEST_ENTRY}}}"),
        "columns_digest": _sha256,
    },
)
