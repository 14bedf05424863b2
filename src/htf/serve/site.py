"""The page, its own files, and MapLibre's: read into memory at the start."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from htf.serve.replies import Packed
from htf.web.assets import PAGE, find_maplibre

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
    return {name: _asset(path) for name, path in files.items()}


def _asset(path: Path) -> Asset:
    body = path.read_bytes()
    media = MEDIA.get(path.suffix, "application/octet-stream")
    return Asset(media.encode(), hashlib.sha256(body).hexdigest()[:32], Packed.of(body))
