"""The page, its own files, and MapLibre's: read into memory at the start."""

from __future__ import annotations

import hashlib
import html
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

from htf.errors import InputError
from htf.files import is_file
from htf.maps.browser.assets import STATIC, find_maplibre
from htf.maps.browser.modules import resolve
from htf.serve.replies import PAGE_HEADERS, Header, Packed

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
    ".html": re.compile(rb'"static/([\w./-]+\.(?:js|css))(?=")'),
    ".js": re.compile(rb' from "(\.[\w./-]+\.js)(?=";)'),
}
DECLARED = re.compile(r"""<\?xml\b[^>]*?\bencoding\s*=\s*["']([^"']*)""")
MOST_LOGO = 512 * 1024  # bytes
LONGEST_TITLE = 100  # characters
LOGOS = ("logo.png", "logo.svg")
# An SVG may hold scripts. On the page they do not run, because it is a picture there. Opened by itself it may do nothing.
LOGO_HEADERS: list[Header] = [
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; sandbox"),
]


@dataclass(frozen=True, slots=True)
class Asset:
    media: bytes
    etag: str
    packed: Packed
    headers: list[Header]


@dataclass(frozen=True, slots=True)
class Brand:
    """The operator's own title and logo."""

    title: str | None = None
    logo: tuple[str, bytes] | None = None  # the name below /static, and its contents


def read_brand(title: str | None, logo: Path | None) -> Brand:
    """Refuse what cannot be shown, before the server starts."""
    if title is not None and not (
        title.strip() and title.isprintable() and len(title) <= LONGEST_TITLE
    ):
        raise InputError(
            f"--title takes one line of up to {LONGEST_TITLE} characters, got {title[:100]!r}"
        )
    return Brand(title, None if logo is None else _read_logo(logo))


def _read_logo(path: Path) -> tuple[str, bytes]:
    if not is_file(path):
        raise InputError(f"there is no file {path}")
    if path.stat().st_size > MOST_LOGO:
        raise InputError(f"{path} is larger than {MOST_LOGO // 1024} KB: give a smaller logo")
    body = path.read_bytes()
    if body.startswith(b"\x89PNG\r\n\x1a\n"):
        return "logo.png", body
    if not _is_svg(body):
        raise InputError(
            f"{path} is neither a PNG nor an SVG in UTF-8 without a DOCTYPE: give such a logo"
        )
    return "logo.svg", body


def _is_svg(body: bytes) -> bool:
    """Whether it is an SVG in UTF-8 that declares no entities, which may grow without end. In another encoding, such as
    UTF-16, a declaration would not be found."""
    try:
        text = body.decode("utf-8-sig")
        encoding = DECLARED.match(text)
        if encoding and encoding[1].lower() != "utf-8":
            return False
        if any(one in text for one in ("\0", "<!DOCTYPE", "<!ENTITY")):  # UTF-16 has zeros
            return False
        return ElementTree.fromstring(text).tag in ("svg", "{http://www.w3.org/2000/svg}svg")
    except (ElementTree.ParseError, ValueError):
        return False


def load_site(brand: Brand = Brand()) -> dict[str, Asset]:  # noqa: B008 - it never changes
    """The files by name below /static; the page itself is `index.html`."""
    found = (path for path in STATIC.rglob("*") if path.is_file())
    files = {path.relative_to(STATIC).as_posix(): path for path in found}
    for name in MAPLIBRE:
        path = find_maplibre(name)
        if path is not None:
            files.setdefault(name, path)
    bodies = {name: path.read_bytes() for name, path in files.items()}
    if brand.logo is not None:
        bodies[brand.logo[0]] = brand.logo[1]
    if INDEX in bodies:
        bodies[INDEX] = bodies[INDEX].replace(b"</head>", _marks(brand) + b"</head>", 1)
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


def _marks(brand: Brand) -> bytes:
    """What `page/brand.js` reads."""
    marks = b""
    if brand.title is not None:
        marks += b'<meta name="htf-title" content="%s">' % html.escape(brand.title).encode()
    if brand.logo is not None:
        name, body = brand.logo
        address = f"static/{name}?v={_etag(body)[:8]}"
        marks += b'<meta name="htf-logo" content="%s">' % address.encode()
    return marks


def _etag(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:32]


def _asset(name: str, body: bytes) -> Asset:
    media = MEDIA.get(Path(name).suffix, "application/octet-stream")
    headers = LOGO_HEADERS if name in LOGOS else PAGE_HEADERS
    return Asset(media.encode(), _etag(body), Packed.of(body), headers)
