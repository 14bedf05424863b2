"""The page, its own files, and MapLibre's: read into memory at the start."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from htf.maps.browser.assets import PAGE, find_maplibre
from htf.serve.replies import Packed

INDEX = "index.html"
MAPLIBRE = ("maplibre-gl.js", "maplibre-gl.css")
MEDIA = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
WITHOUT_PAGE = (
    "This is htf serve. There is no page here; the API is described in /openapi.json, and "
    "/api/releases lists the releases.\n"
)


@dataclass(frozen=True, slots=True)
class Asset:
    media: bytes
    etag: str
    packed: Packed


def load_site() -> dict[str, Asset]:
    """By name below /static; the page itself is `index.html`."""
    files = {path.relative_to(PAGE).as_posix(): path for path in PAGE.rglob("*") if path.is_file()}
    for name in MAPLIBRE:
        path = find_maplibre(name)
        if path is not None:
            files.setdefault(name, path)
    bodies = {name: path.read_bytes() for name, path in files.items()}
    if INDEX in bodies:
        bodies[INDEX] = _with_versions(bodies)
    return {name: _asset(name, body) for name, body in bodies.items()}


def _with_versions(bodies: dict[str, bytes]) -> bytes:
    """The page asks for the files as they are now: a browser keeps those of an earlier version for minutes."""

    def versioned(found: re.Match[bytes]) -> bytes:
        body = bodies.get(found[1].decode())
        return found[0] if body is None else b"%s?v=%s" % (found[0], _etag(body)[:8].encode())

    return re.sub(rb"/static/([\w.-]+\.(?:js|css))(?=\")", versioned, bodies[INDEX])


def _etag(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:32]


def _asset(name: str, body: bytes) -> Asset:
    media = MEDIA.get(Path(name).suffix, "application/octet-stream")
    return Asset(media.encode(), _etag(body), Packed.of(body))
