"""`htf serve`: releases and series over HTTP."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import click

from htf.cli.screen import progress_bar, say, warn_if_not_private
from htf.cli.types import FileName, Number, WholeNumber
from htf.errors import InputError, MissingExtraError
from htf.files import is_file

TOKEN_VARIABLE = "HTF_TOKEN"
SHORTEST_TOKEN = 16
LOCAL = ("127.0.0.1", "::1", "localhost")

file_type = FileName()


@click.command()
@click.argument(
    "release_files", metavar="RELEASE|SERIES...", nargs=-1, required=True, type=file_type
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=8000,
    show_default=True,
    type=WholeNumber(0, 65535),
    help="Port; 0 means any free one.",
)
@click.option(
    "--token-file", type=file_type, help=f"Require the token in this file, or in {TOKEN_VARIABLE}."
)
@click.option("--tls-cert", type=file_type, help="Certificate (PEM); with --tls-key.")
@click.option("--tls-key", type=file_type, help="Private key (PEM, without a password).")
@click.option(
    "--cors", multiple=True, metavar="ORIGIN", help="Accept requests from pages of this origin."
)
@click.option(
    "--max-mb",
    default=16.0,
    show_default=True,
    type=Number(0.001, 1024),
    help="Largest body of a request, in MB.",
)
@click.option(
    "--max-seconds",
    default=30.0,
    show_default=True,
    type=Number(0.1, 3600),
    help="Time limit to send a request, and to answer it.",
)
@click.option(
    "--no-basemap", is_flag=True, help="Leave out water, borders and names of places on the page."
)
@click.option("--log-queries", is_flag=True, help="Log paths, queries and client addresses.")
@click.option("--allow-not-private", is_flag=True, help="Also serve releases with seeded noise.")
def serve(
    release_files: tuple[Path, ...],
    host: str,
    port: int,
    token_file: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    cors: tuple[str, ...],
    max_mb: float,
    max_seconds: float,
    no_basemap: bool,
    log_queries: bool,
    allow_not_private: bool,
) -> None:
    """Serve counts, polygons and map tiles of releases over HTTP, with a page at /.

    A series, the folder that `htf series` made, stands for the last release of each of its periods. The page then has a
    slider through time.

    The server holds releases and no data. It logs JSON lines on standard error, which do not say what was
    asked. On SIGTERM or Ctrl-C it finishes the requests under way and stops.
    """
    token = _read_token(token_file)
    _check_installed()
    _announce(len(release_files))
    from htf.serve.app import Service, Settings
    from htf.serve.holdings import load_holdings
    from htf.serve.limits import MEGABYTE, Limits
    from htf.serve.server import listen, read_tls, run

    tls = read_tls(tls_cert, tls_key)
    with listen(host, port) as sock:  # before loading, which takes longer
        with progress_bar() as bar:
            task = bar.add_task("loading", total=None)
            holdings = load_holdings(
                release_files,
                allow_not_private=allow_not_private,
                tell=lambda step: bar.update(task, description=step),
            )
        for holding in holdings.values():
            warn_if_not_private(holding.release)
        if token is not None and tls is None and host not in LOCAL:
            say("The token is sent unencrypted: use TLS, here or in a proxy.", err=True)
        limits = Limits(body=int(max_mb * MEGABYTE), seconds=max_seconds)
        settings = Settings(token, cors, log_queries, limits, basemap=not no_basemap)
        service = Service(holdings, settings)
        place = f"{f'[{host}]' if ':' in host else host}:{sock.getsockname()[1]}"
        message = f"Serving {', '.join(holdings)} on {'https' if tls else 'http'}://{place}"
        run(service, sock, tls, lambda: say(message))


def _announce(number: int) -> None:
    """Say so at once, because loading takes a while. Without a terminal it is a line of the log."""
    from htf.serve.logs import log

    releases = "1 release" if number == 1 else f"{number} releases"
    message = f"Loading {releases}. The first start also compiles, which takes about 15 seconds."
    if sys.stderr.isatty():
        say(message, err=True)
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


def _check_installed() -> None:
    for package in ("starlette", "uvicorn", "httptools", "orjson"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "serve", "htf serve")
