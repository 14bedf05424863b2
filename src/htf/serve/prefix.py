"""The prefix that a proxy puts before every path of the server, such as /maps.

A proxy may take the prefix off again before it asks the server, or leave it on: both work. Addresses on pages are
relative, so that only what the server itself says of addresses needs the prefix: the pages of the list of releases, the
description of the API, and the way from /maps to /maps/.
"""

from __future__ import annotations

import re
from typing import Any

from htf.errors import InputError
from htf.serve.limits import Refusal
from htf.serve.replies import header

FORWARDED = b"x-forwarded-prefix"
FORM = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+")  # no //, which names another host; no ..
PREFIX = "htf.prefix"  # of a request, in its scope
LONGEST = 200  # characters
OWN = ("api", "static", "healthz", "metrics", "openapi.json")  # first parts of our own paths


def read_prefix(text: str, name: str) -> str:
    """A prefix without a slash at its end; empty if there is none."""
    prefix = text.rstrip("/")
    if not prefix and len(text) <= 1:
        return ""
    if not FORM.fullmatch(prefix) or len(text) > LONGEST:
        raise InputError(
            f"{name} must be a path such as /maps, of letters, digits and . _ ~ -, got {text!r:.200}"
        )
    if prefix.split("/")[1] in OWN:
        raise InputError(
            f"{name} {prefix!r} begins as the server's own paths do ({', '.join(OWN)}): take another"
        )
    return prefix


def prefix_of(scope: Any, root_path: str, trust_proxy: bool) -> str:
    """What a proxy that is trusted says, or else what the operator does."""
    said = header(scope, FORWARDED) if trust_proxy else None
    if said is None:
        return root_path
    try:
        return read_prefix(said.decode("latin-1"), "X-Forwarded-Prefix")
    except InputError as error:
        raise Refusal(400, str(error)) from None
