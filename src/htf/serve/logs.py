"""One line of JSON for each event, on standard error.

What was asked is not logged: no query, no body, no address of a client, and no path, which holds the
place of a tile. `log_queries` says otherwise of the path, the query and the client.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import orjson

EVERY = (
    0.1  # seconds between writes about requests: a write of its own costs as much as a small count
)


def log(event: str, **values: Any) -> None:
    """An event of the server, written at once."""
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    _write(_as_json({"time": now, "event": event, **values}) + b"\n")


def _as_json(values: dict[str, Any]) -> bytes:
    """In ASCII: whoever reads the log on a terminal does not want it to act upon what was asked."""
    return json.dumps(values, separators=(",", ":")).replace("\x7f", "\\u007f").encode()


def _write(lines: bytes) -> None:
    """A log that cannot be written, since its disk is full, say, is no reason to stop answering."""
    with suppress(OSError):
        stream = getattr(sys.stderr, "buffer", None)
        if stream is None:  # a program that catches what is said has text only
            sys.stderr.write(lines.decode())
            return
        sys.stderr.flush()  # what was written as text comes first
        stream.write(lines)
        stream.flush()


class RequestLog:
    """Requests, written a few at a time."""

    def __init__(self, log_queries: bool) -> None:
        self._log_queries = log_queries
        self._lines: list[bytes] = []
        self._second, self._stamp = 0, b""

    def add(self, scope: Any, route: str, status: int, seconds: float, size: int) -> None:
        if not self._lines:
            asyncio.get_running_loop().call_later(EVERY, self.write)
        self._lines.append(
            # Four times as fast as a dictionary; there is one for every count.
            b'{"time":"%s","event":"request","method":%s,"route":"%s","status":%d,"seconds":%.6f,"bytes":%d%s}\n'
            % (
                self._now(),
                orjson.dumps(scope["method"]),
                route.encode(),
                status,
                seconds,
                size,
                self._query(scope) if self._log_queries else b"",
            )
        )

    def _now(self) -> bytes:
        """The time as in other lines. That of a second is made once."""
        now = time.time()
        second = int(now)
        if second != self._second:
            self._second = second
            self._stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)).encode()
        return b"%s.%06dZ" % (self._stamp, (now - second) * 1e6)

    def _query(self, scope: Any) -> bytes:
        asked = {
            "path": scope["path"],
            "query": scope["query_string"].decode("latin-1"),
            "client": (scope.get("client") or ("",))[0],
        }
        return b"," + _as_json(asked)[1:-1]

    def write(self) -> None:
        lines, self._lines = self._lines, []
        _write(b"".join(lines))


def log_fault(error: BaseException) -> None:
    """Where it happened, but not the message: that might quote the question."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
    log("fault", error=type(error).__name__, places=places)


class JsonHandler(logging.Handler):
    """What the HTTP server says of itself; of an exception its kind and place."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            log_fault(record.exc_info[1])
        else:
            log("server", level=record.levelname.lower(), message=record.getMessage().strip())


def catch_server_logs() -> None:
    """The HTTP server's own warnings as JSON, and its lines about requests not at all."""
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], False
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addHandler(JsonHandler(logging.WARNING))
