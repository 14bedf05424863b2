"""Whether a built site loads anything from elsewhere. It must not: see mkdocs.yml."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

# The attributes by which a page loads something; <a href> waits for a click.
LOADING = {"src", "data", "poster", "background"}
REMOTE = re.compile(r"\s*(https?:)?//", re.I)
REMOTE_IN_CSS = re.compile(r"""(?:url\(|@import)\s*["']?(?:https?:)?//[^"')\s]+""", re.I)


def remote_resources(site: Path) -> list[str]:
    """Every address on another server that a page or style sheet of the site would load."""
    found = []
    for path in sorted(site.rglob("*")):
        if path.suffix == ".html":
            page = _Loads()
            page.feed(path.read_text("utf-8"))
            found += [f"{path.relative_to(site)}: {address}" for address in page.remote]
        elif path.suffix == ".css":
            hits = REMOTE_IN_CSS.findall(path.read_text("utf-8"))
            found += [f"{path.relative_to(site)}: {address}" for address in hits]
    return found


class _Loads(HTMLParser):
    """Collects what a page loads from other servers by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.remote: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_style = tag == "style"
        values = {name: value or "" for name, value in attrs}
        loaded = [value for name, value in values.items() if name in LOADING]
        loaded += values.get("srcset", "").split(",")
        if tag == "link" and values.get("rel") not in {"canonical", "next", "prev"}:
            loaded.append(values.get("href", ""))
        self.remote += [address for address in loaded if REMOTE.match(address)]
        self.remote += REMOTE_IN_CSS.findall(values.get("style", ""))

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 - the parser gives it
        self._in_style = False

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.remote += REMOTE_IN_CSS.findall(data)
