"""One line of JSON for each event, on standard error.

Queries are not logged: no query string, no body, no address of a client, and no path, because that holds
the place of a tile. With `log_queries` the path, the query string and the client are logged.
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

# Seconds between writes about requests: a write of its own costs as much as a small count
EVERY = 0.1


def log(event: str, **values: Any) -> None:
    """An event of the server, written at once."""
    _write(_as_line({"time": _now(), "event": event, **values}))


def _now() -> str:
    return (
        datetime.fromtimestamp(time.time(), UTC)
        .isoformat(timespec="microseconds")
        .replace("+00:00", "Z")
    )


def _as_line(values: dict[str, Any]) -> bytes:
    """JSON in ASCII, so that no request can send control characters to the reader's terminal."""
    return json.dumps(values, separators=(",", ":")).replace("\x7f", "\\u007f").encode() + b"\n"


def _write(lines: bytes) -> None:
    """Write lines. If that fails, on a full disk for example, the server goes on answering."""
    with suppress(OSError):
        sys.stderr.write(lines.decode())
        sys.stderr.flush()


class RequestLog:
    """Requests, written a few at a time."""

    def __init__(self, log_queries: bool) -> None:
        self._log_queries = log_queries
        self._lines: list[bytes] = []

    def add(self, scope: Any, route: str, status: int, seconds: float, size: int) -> None:
        if not self._lines:
            asyncio.get_running_loop().call_later(EVERY, self.write)
        line = {
            "time": _now(),
            "event": "request",
            "method": scope["method"],
            "route": route,
            "status": status,
            "seconds": round(seconds, 6),
            "bytes": size,
        }
        if self._log_queries:
            line["path"], line["query"] = scope["path"], scope["query_string"].decode("latin-1")
            line["client"] = (scope.get("client") or ("",))[0]
            self._lines.append(_as_line(line))
        else:  # ten times as fast, and holds nothing that needs an escape
            self._lines.append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    def write(self) -> None:
        lines, self._lines = self._lines, []
        _write(b"".join(lines))


def log_fault(error: BaseException) -> None:
    """Log where an error happened, but not its message, which might quote the query."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
    log("fault", error=type(error).__name__, places=places)


class JsonHandler(logging.Handler):
    """Writes the HTTP server's own messages as JSON; for an exception, its kind and place."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            log_fault(record.exc_info[1])
        else:
            log("server", level=record.levelname.lower(), message=record.getMessage().strip())


def catch_server_logs() -> None:
    """Write the HTTP server's own warnings as JSON, and drop its lines about requests."""
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], False
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addHandler(JsonHandler(logging.WARNING))
