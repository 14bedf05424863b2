"""Checks the header of a release before anything is built from it.

A release comes from somebody else, and its header is JSON that anyone may have written. So it is neither long nor deep, no
number overflows, and every value has a type and a range. What is an object here (the map, what is protected, what was
bought) is checked by the class that is made of it. Unlisted values are refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from htf.errors import ReleaseFileError
from htf.estimation.prior import MOST_PRIOR_CELLS, MOST_PRIORS
from htf.frame.axis import LONGEST_NAME
from htf.frame.domain import MOST_AXES

MOST_PERIODS = 10_000  # of a background
FORMAT = 8  # the only one that is read; those before were of versions that were never released
LONGEST_HEADER = 2**22  # bytes; names of zones take up to three quarters of it
LONGEST_REST = 2**20  # bytes beside the axes; HDMM's strategies of 1024 x 1024 cells take 20 kB
DEEPEST = 16  # lists in lists, or objects in objects
# Of the ledger; a line is one round of questions, and releases have up to some hundred.
MOST_LINES = 1024
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
    if number != FORMAT:
        raise OtherFormatError(path, number, str(header.get("software"))[:LONGEST_NAME])
    rest = {name: value for name, value in header.items() if name != "domain"}
    if len(json.dumps(rest)) > LONGEST_REST:
        raise ReleaseFileError(f"its header has more than {LONGEST_REST:,} bytes beside its axes")
    HEADER(header, "")
    return header  # type: ignore[no-any-return]


class OtherFormatError(ReleaseFileError):
    """A file that is not damaged, but made by another version."""

    def __init__(self, path: Path, number: int, maker: str) -> None:
        if number > FORMAT:
            age, remedy = "a newer version", "upgrade htf-dp"
        else:
            age = "a version that was never released"
            remedy = "use that version, or read its columns with any Parquet reader"
        super().__init__(
            f"{path} has format {number}, made by {age} ({maker}); this one reads format {FORMAT} alone: {remedy}"
        )


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
    layer = [value]
    for _ in range(DEEPEST):
        if any(type(one) is int and abs(one) >= 2**63 for one in layer):
            raise ReleaseFileError("its header has a number beyond 64 bits")
        inner = [one.values() if isinstance(one, dict) else one for one in layer if _holds(one)]
        layer = [part for one in inner for part in one]
    if layer:
        raise ReleaseFileError(f"its header is nested more than {DEEPEST} deep")
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ReleaseFileError("its header has a text with half a character") from None


def _holds(value: Any) -> bool:
    return isinstance(value, (list, dict))


def _is(test: Callable[[Any], bool], wanted: str) -> Rule:
    def check(value: Any, place: str) -> None:
        if not test(value):
            raise ReleaseFileError(f"{place or 'all'} in its header must be {wanted}")

    return check


_number = _is(lambda one: type(one) in (int, float) and math.isfinite(one), "a finite number")
_flag = _is(lambda one: type(one) is bool, "true or false")
_object = _is(lambda one: isinstance(one, dict), "an object")


def _text(longest: int = LONGEST_WORD) -> Rule:
    return _is(
        lambda one: isinstance(one, str) and len(one) <= longest,
        f"a text of at most {longest:,} characters",
    )


def _form(form: str) -> Rule:
    fits = _is(lambda one: bool(re.fullmatch(form, one, re.ASCII)), f"a text of the form {form}")

    def check(value: Any, place: str) -> None:
        _text()(value, place)
        fits(value, place)

    return check


def _whole(least: int, most: int) -> Rule:
    return _is(
        lambda one: type(one) is int and least <= one <= most,
        f"a whole number between {least} and {most}",
    )


def _purchase(value: Any, place: str) -> None:
    """Its class checks the rest; that of a text has no use for a longest."""
    _object(value, place)
    _text()(value.get("noise", ""), f"{place}.noise")  # its class says that it is missing


def _list(rule: Rule, fewest: int, most: int) -> Rule:
    is_list = _is(
        lambda one: isinstance(one, list) and fewest <= len(one) <= most,
        f"a list of {fewest} to {most} entries",
    )

    def check(value: Any, place: str) -> None:
        is_list(value, place)
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


_epsilon = _form(r"\d{1,4}(\.\d{1,15})?")
_sha256 = _form("[0-9a-f]{64}")
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
    {"name": _text(), "sha256": _text(), "cells": _list(_whole(1, MOST_PRIOR_CELLS), 1, MOST_AXES)}
)
HEADER = _fields(
    {
        "format": _whole(1, FORMAT),
        "software": _text(),
        "domain": _object,
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
        "columns_digest": _sha256,
    },
    {
        "priors": _list(_prior, 1, MOST_PRIORS),
        "background": _fields({"periods": _whole(1, MOST_PERIODS)}),
        "protection": _object,
        "activity": _purchase,
        "factor": _number,
        "distinct": _purchase,
        "inside_zones": _list(_sha256, 2, 2),
        "clipped": _purchase,
        "budget_entry": _form(f"[0-9A-Za-z_-]{{1,{LONGEST_ENTRY}}}"),
    },
)
