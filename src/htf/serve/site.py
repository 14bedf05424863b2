"""The page, its own files, and MapLibre's: read into memory at the start."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from htf.serve.replies import Packed

PAGE = Path(__file__).parent / "page"
INDEX = "index.html"
MAPLIBRE = ("maplibre-gl.js", "maplibre-gl.css")  # of the wheel `maplibre`, in srcjs
MEDIA = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
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
        path = _maplibre() / name
        if path.is_file():
            files.setdefault(name, path)
    return {name: _asset(path) for name, path in files.items()}


def _maplibre() -> Path:
    """Where the wheel has them; it is not imported."""
    found = find_spec("maplibre")
    return Path(found.origin).parent / "srcjs" if found and found.origin else PAGE / "srcjs"


def _asset(path: Path) -> Asset:
    body = path.read_bytes()
    media = MEDIA.get(path.suffix, "application/octet-stream")
    return Asset(media.encode(), hashlib.sha256(body).hexdigest()[:32], Packed.of(body))
