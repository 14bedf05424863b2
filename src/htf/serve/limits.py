"""The limits on a request, and how a request is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MEGABYTE = 2**20


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on one request, unless marked as of all. Beyond them the status is 413 (size), 408 or 503
    (time)."""

    body: int = 16 * MEGABYTE
    all_bodies: int = 256 * MEGABYTE  # that are being read or worked on, of all requests
    boxes: int = 500_000
    polygons: int = 10_000
    corners: int = 200_000  # of all polygons of a request
    # Of a polygon that crosses itself: repairing takes up to their cube
    crossing_corners: int = 300
    seconds: float = 30.0  # to send a body, and again to be answered
    waiting: int = 32  # jobs that wait for a thread, of all requests
    threads: int = 2
    tile_cache: int = 64 * MEGABYTE  # of all requests

    def told(self) -> dict[str, int]:
        """Those that a client needs to divide a large question into several requests."""
        return {
            "bytes": self.body,
            "boxes": self.boxes,
            "polygons": self.polygons,
            "corners": self.corners,
        }


class Refusal(Exception):
    """An error response in place of the answer."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})
