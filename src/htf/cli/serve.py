"""`htf serve`: releases over HTTP."""

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
@click.argument("release_files", metavar="RELEASE...", nargs=-1, required=True, type=file_type)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8000, show_default=True, type=WholeNumber(0, 65535), help="0: any free."
)
@click.option(
    "--token-file", type=file_type, help=f"Ask for the token in this file, or in {TOKEN_VARIABLE}."
)
@click.option("--tls-cert", type=file_type, help="Certificate (PEM); with --tls-key.")
@click.option("--tls-key", type=file_type, help="Its private key (PEM, no password).")
@click.option("--cors", multiple=True, metavar="ORIGIN", help="Let pages of this origin ask.")
@click.option(
    "--max-mb",
    default=16.0,
    show_default=True,
    type=Number(0.001, 1024),
    help="Largest body.",
)
@click.option(
    "--max-seconds",
    default=30.0,
    show_default=True,
    type=Number(0.1, 3600),
    help="Longest answer.",
)
@click.option("--log-queries", is_flag=True, help="Log paths, queries and addresses of clients.")
@click.option("--allow-not-private", is_flag=True, help="Serve releases with seeded noise too.")
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
    log_queries: bool,
    allow_not_private: bool,
) -> None:
    """Answer counts, polygons and map tiles of releases over HTTP, with a page at /.

    It holds releases only. --max-mb is the largest body of a request, --max-seconds the time to send one and
    to answer it. Logs are lines of JSON on standard error and do not say what was asked. It ends on SIGTERM
    or Ctrl-C, when requests that are under way are answered.
    """
    token = _read_token(token_file)
    _check_installed()
    _tell_start(len(release_files))
    from htf.serve.app import Service, Settings
    from htf.serve.holdings import load_holdings
    from htf.serve.limits import MEGABYTE, Limits
    from htf.serve.server import listen, read_tls, run

    tls = read_tls(tls_cert, tls_key)
    with listen(host, port) as sock:  # before the loading, which takes longer
        with progress_bar() as bar:
            task = bar.add_task("loading", total=None)
            holdings = load_holdings(
                release_files,
                allow_not_private=allow_not_private,
                tell=lambda told: bar.update(task, description=told),
            )
        for holding in holdings.values():
            warn_if_not_private(holding.release)
        if token is not None and tls is None and host not in LOCAL:
            say("The token travels unencrypted: use TLS, here or at a proxy.", err=True)
        limits = Limits(body=int(max_mb * MEGABYTE), seconds=max_seconds)
        service = Service(holdings, Settings(token, cors, log_queries, limits))
        place = f"{f'[{host}]' if ':' in host else host}:{sock.getsockname()[1]}"
        told = f"Serving {', '.join(holdings)} on {'https' if tls else 'http'}://{place}"
        run(service, sock, tls, lambda: say(told))


def _tell_start(number: int) -> None:
    """At once, since the rest takes a while. Where nobody sits in front of it, it is a line of the log."""
    from htf.serve.logs import log

    releases = "1 release" if number == 1 else f"{number} releases"
    told = f"Loading {releases}. The first start also compiles, which takes about 15 seconds."
    if sys.stderr.isatty():
        say(told, err=True)
    else:
        log("load", message=told)


def _read_token(path: Path | None) -> bytes | None:
    """Never from the command line, which every user of a machine can read."""
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
            "openssl rand -hex 32 makes one"
        )
    return token.encode()


def _check_installed() -> None:
    for package in ("starlette", "uvicorn", "httptools", "orjson"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "serve", "htf serve")
