"""`htf serve`: releases and series over HTTP."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from htf.base.extras import need
from htf.base.options import argument, option
from htf.cli import declared
from htf.cli.options import NO_BASEMAP, basemap_option
from htf.cli.screen import remark, say, warn_if_not_private, working
from htf.errors import InputError
from htf.files import is_file

if TYPE_CHECKING:
    from htf.maps.browser.street_tiles import Archive
    from htf.serve.app import Service
    from htf.serve.holdings import Holding

TOKEN_VARIABLE = "HTF_TOKEN"
SHORTEST_TOKEN = 16
LOCAL = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, kw_only=True)
class Serving:
    """The options of `htf serve`."""

    host: str = option("Address to listen on.", default="127.0.0.1")
    port: int = option("Port; 0 means any free one.", default=8000, within=(0, 65535))
    token_file: Path | None = option(f"Require the token in this file, or in {TOKEN_VARIABLE}.")
    tls: tuple[Path, Path] | None = option(
        "Certificate and private key, as PEM without a password.", "CERT KEY"
    )
    cors: tuple[str, ...] = option("Accept requests from pages of this origin.", "ORIGIN")
    max_mb: float = option("Largest body of a request, in MB.", default=16.0, within=(0.001, 1024))
    max_seconds: float = option(
        "Time limit to send a request, and to answer it.", default=30.0, within=(0.1, 3600)
    )
    basemap: Path | None = basemap_option(
        "A .pmtiles file of vector tiles, such as streets, that the page draws below the counts."
    )
    root_path: str | None = option(
        "Path at which a proxy offers the server, such as /maps.", "PREFIX"
    )
    trust_proxy: bool = option(
        "Believe X-Forwarded-Prefix. Only if nobody reaches the server but through a proxy that sets it."
    )
    title: str | None = option("Title of the page and of the API.")
    logo: Path | None = option("Logo of the page, .svg or .png, up to 512 KB.")
    log_queries: bool = option("Log paths, queries and client addresses.")
    allow_not_private: bool = option("Also serve releases with seeded noise.")


@declared.command()
def serve(
    release_files: tuple[Path, ...] = argument("RELEASE|SERIES..."),
    asked: Serving = declared.record_of(Serving),
) -> None:
    """Serve counts, polygons and map tiles of releases over HTTP, with a page at /.

    A series, the folder that `htf series` made, stands for the last release of each of its periods. The page then has a
    slider through time. Any other folder stands for all releases in it.

    The server holds releases and no data. It logs JSON lines on standard error, which do not say what was
    asked. On SIGTERM or Ctrl-C it finishes the requests under way and stops. On SIGHUP it reads the files
    again that have changed, and drops the releases whose files are gone.
    """
    token = _read_token(asked.token_file)
    need("htf serve", "starlette", "uvicorn", "httptools", "orjson", extra="serve")
    streets = _read_basemap(asked.basemap)
    host, port = asked.host, asked.port
    scheme = "http" if asked.tls is None else "https"
    place = f"{scheme}://{f'[{host}]' if ':' in host else host}"
    _announce(release_files, f"{place}:{port}" if port else None)
    from htf.serve.app import Service, Settings
    from htf.serve.limits import MEGABYTE, Limits
    from htf.serve.prefix import read_prefix
    from htf.serve.server import listen, read_tls, run
    from htf.serve.site import read_brand

    tls = read_tls(asked.tls)
    brand = read_brand(asked.title, asked.logo)
    prefix = read_prefix(asked.root_path or "", "--root-path")
    with listen(host, port) as sock:
        if token is not None and tls is None and host not in LOCAL:
            remark("The token is sent unencrypted: use TLS, here or in a proxy.")
        settings = Settings(
            token,
            asked.cors,
            asked.log_queries,
            Limits(body=int(asked.max_mb * MEGABYTE), seconds=asked.max_seconds),
            asked.basemap != NO_BASEMAP,
            brand,
            streets,
            prefix,
            asked.trust_proxy,
        )
        service = Service(settings=settings)

        def tell() -> None:
            say(f"Serving {', '.join(service.holdings)} on {place}:{sock.getsockname()[1]}")

        run(
            service, sock, lambda: _load(service, release_files, asked.allow_not_private), tls, tell
        )


def _read_basemap(path: Path | None) -> Archive | None:
    if path in (None, NO_BASEMAP):
        return None
    from htf.maps.browser.street_tiles import Archive

    return Archive(path)


def _load(service: Service, files: tuple[Path, ...], allow_not_private: bool) -> dict[str, Holding]:
    """The releases of the files, at the start or again."""
    from htf.serve.holdings import load_holdings
    from htf.serve.logs import log

    load = partial(load_holdings, files, allow_not_private=allow_not_private)
    held = service.holdings
    if service.is_ready:
        found = load(held, lambda problem: log("reload-problem", message=problem))
    else:
        with working("loading") as step:
            found = load(tell=step)
        for holding in found.values():
            warn_if_not_private(holding.release)
    for name in held:
        if name not in found:
            log("drop", release=name, file=str(held[name].path))
    return found


def _announce(files: tuple[Path, ...], address: str | None) -> None:
    """Say so at once, because loading takes a while. Without a terminal it is a line of the log. How many releases a folder
    stands for is known only later."""
    from htf.serve.logs import log

    is_one = len(files) == 1 and not files[0].is_dir()
    what = ("a release" if is_one else "releases") + (f" for {address}" if address else "")
    message = f"Loading {what}. The first start also compiles, which takes about 15 seconds."
    if sys.stderr.isatty():
        remark(message)
    else:
        log("load", message=message)


def _read_token(path: Path | None) -> bytes | None:
    """Never from the command line, which every user of the machine can see."""
    text = os.environ.get(TOKEN_VARIABLE)
    source = TOKEN_VARIABLE
    if path is not None:
        if not is_file(path):
            raise InputError(f"there is no file {path}")
        text, source = path.read_text(encoding="utf-8", errors="replace"), str(path)
    if text is None:
        return None
    token = text.strip()
    if (
        len(token) < SHORTEST_TOKEN
        or not token.isascii()
        or not token.isprintable()
        or " " in token
    ):
        raise InputError(
            f"the token in {source} must be one word of at least {SHORTEST_TOKEN} plain characters: "
            "`openssl rand -hex 32` makes one"
        )
    return token.encode()
