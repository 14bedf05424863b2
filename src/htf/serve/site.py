"""The page, its own files, and MapLibre's: read into memory at the start."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from htf.maps.browser.assets import STATIC, find_maplibre
from htf.maps.browser.modules import resolve
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
ADDRESSES = {  # of other files
    ".html": re.compile(rb'"/static/([\w./-]+\.(?:js|css))(?=")'),
    ".js": re.compile(rb' from "(\.[\w./-]+\.js)(?=";)'),
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
    """The files by name below /static; the page itself is `index.html`."""
    found = (path for path in STATIC.rglob("*") if path.is_file())
    files = {path.relative_to(STATIC).as_posix(): path for path in found}
    for name in MAPLIBRE:
        path = find_maplibre(name)
        if path is not None:
            files.setdefault(name, path)
    bodies = {name: path.read_bytes() for name, path in files.items()}
    return {name: _asset(name, body) for name, body in _with_versions(bodies).items()}


def _with_versions(bodies: dict[str, bytes]) -> dict[str, bytes]:
    """Add the version of a file to its address, because browsers cache earlier versions for minutes.

    The version of a module covers everything it imports.
    """
    made: dict[str, bytes] = {}

    def version_of(name: str) -> bytes:
        if name not in made:
            addresses = ADDRESSES.get(Path(name).suffix)
            body = bodies[name]
            made[name] = addresses.sub(partial(versioned, name), body) if addresses else body
        return _etag(made[name])[:8].encode()

    def versioned(name: str, found: re.Match[bytes]) -> bytes:
        target = resolve(name, found[1].decode())
        return b"%s?v=%s" % (found[0], version_of(target)) if target in bodies else found[0]

    for name in bodies:
        version_of(name)
    return made


def _etag(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:32]


def _asset(name: str, body: bytes) -> Asset:
    media = MEDIA.get(Path(name).suffix, "application/octet-stream")
    return Asset(media.encode(), _etag(body), Packed.of(body))
