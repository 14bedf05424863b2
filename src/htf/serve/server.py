"""Runs the service: sockets, TLS, signals, and clients that are too slow.

The server is uvicorn. It has no time limit for the head of a request or for a client that does not read its
answer, and its fast parser has no limit on the size of a head. `Guarded` adds these limits. Uvicorn allows a
minute for the TLS handshake; `Server` shortens that.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import gc
import ipaddress
import signal
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from htf.errors import InputError
from htf.files import is_file
from htf.serve.app import Service, make_app
from htf.serve.holdings import Holding
from htf.serve.logs import catch_server_logs, log, log_fault

MOST_CONNECTIONS = 900  # below the usual 1024 files of a process
BACKLOG = 2048  # connections that wait to be accepted
TLS_SECONDS = 5.0  # for the handshake, and for saying goodbye
HEAD_SECONDS = 10.0
MOST_HEAD = 2**16  # bytes
KEEP_ALIVE_SECONDS = 15
READ_SECONDS = 20.0  # within which a client has to take some of its answer ...
LEAST_READ = 2**14  # ... at least so many bytes
HEAD, READER = "head", "reader"  # what the timers of a connection are for
HOSTS = "Give 127.0.0.1 for this machine only, 0.0.0.0 or :: for all its networks, or an address of its own"
TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"

START = "start"
Load = Callable[[], dict[str, Holding]]


@dataclass(frozen=True, slots=True)
class Tls:
    certificate: Path
    key: Path


class Guarded(HttpToolsProtocol):
    """A connection that is closed if its client is too slow or its head too long. Once there are too many
    connections, the one that has waited longest for a request is closed.

    `waiting` are the server's connections that wait for a request, the longest first.
    """

    _head_size = 0
    _in_head = True
    _ended = False  # a request, with the data that came last

    def __init__(self, *arguments: Any, waiting: dict[Guarded, None], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._waiting = waiting
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) >= MOST_CONNECTIONS and self._waiting:
            next(iter(self._waiting)).let_go()
        self._waiting[self] = None
        self._start(HEAD, HEAD_SECONDS, transport.abort)

    def let_go(self) -> None:
        self._waiting.pop(self, None)
        # At once: by the time the transport says so, others were refused.
        self.connections.discard(self)
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._waiting.pop(self, None)
        self._stop(HEAD)
        self._stop(READER)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._ended = False
        super().data_received(data)
        if self._ended or not self._in_head or self.transport.is_closing():
            return
        is_idle = self.cycle is None or self.cycle.response_complete
        self._head_size += len(data)
        if self._head_size > MOST_HEAD:
            if is_idle:
                self.transport.write(TOO_LONG)
            self.transport.close()
        elif is_idle and HEAD not in self._timers:
            self._start(HEAD, HEAD_SECONDS, self.transport.abort)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        # The next data belong to the next head.
        self._ended, self._in_head, self._head_size = True, True, 0

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._waiting.pop(self, None)
        self._stop(HEAD)
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        if not self.pipeline and not self.transport.is_closing():
            self._waiting[self] = None
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        self._stop(READER)
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._watch_reader()

    def shutdown(self) -> None:
        super().shutdown()
        self._watch_reader()

    def _watch_reader(self, before: int | None = None) -> None:
        """Close the connection if the client took less than `LEAST_READ` since the last look."""
        self._stop(READER)
        left = self.transport.get_write_buffer_size()
        if before is not None and before - left < min(LEAST_READ, before):
            self.transport.abort()
        elif left:
            self._start(READER, READ_SECONDS, self._watch_reader, left)

    def _start(self, timer: str, seconds: float, act: Callable[..., None], *values: int) -> None:
        self._timers[timer] = self.loop.call_later(seconds, act, *values)

    def _stop(self, timer: str) -> None:
        if timer in self._timers:
            self._timers.pop(timer).cancel()


class Server(uvicorn.Server):
    """Uvicorn with a time limit for the TLS handshake, for which it has no option: before the handshake ends there is no
    connection that `Guarded` could close. A thread loads the releases: once it listens, and again on SIGHUP."""

    def __init__(
        self, config: uvicorn.Config, service: Service, load: Load | None, tell: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._service, self._load, self._tell = service, load, tell
        self._again = threading.Event()
        self.failure: Exception | None = None  # of the first loading

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        loop: Any = asyncio.get_running_loop()
        if self.config.is_ssl:
            loop.create_server = functools.partial(
                loop.create_server,
                ssl_handshake_timeout=TLS_SECONDS,
                ssl_shutdown_timeout=TLS_SECONDS,
            )
        await super().startup(sockets)
        if self._load is not None:
            if hasattr(signal, "SIGHUP"):
                loop.add_signal_handler(signal.SIGHUP, self._again.set)
            threading.Thread(
                target=self._keep_loading, args=(loop, self._load), daemon=True
            ).start()

    def _keep_loading(self, loop: asyncio.AbstractEventLoop, load: Load) -> None:
        event = START
        while True:
            try:
                holdings = load()
            except Exception as error:
                if event == START:
                    self.failure, self.should_exit = error, True
                    return
                log_fault(error)
            else:
                if event == START:
                    # They stay for good, so requests need not wait while Python searches them for garbage.
                    gc.collect()
                    gc.freeze()
                loop.call_soon_threadsafe(self._hold, holdings, event)
                event = "reload"
            self._again.wait()
            self._again.clear()  # a further signal from here on loads once more

    def _hold(self, holdings: dict[str, Holding], event: str) -> None:
        self._service.hold(holdings)
        log(event, releases=len(holdings))
        if event == START:
            self._tell()


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 means any free port.

    It listens from the start: if two sockets are only bound to the same port, either may still get it."""
    if not host or not host.isprintable() or " " in host:
        raise InputError(f"--host {host!r} is no address. {HOSTS}")
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        _check_everywhere(host, listener.getsockname()[0])
        listener.listen(BACKLOG)
    except InputError:
        listener.close()
        raise
    except (OSError, OverflowError, ValueError, TypeError) as error:  # a name may be no name at all
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        is_taken = getattr(error, "errno", None) == errno.EADDRINUSE
        remedy = ". Give another --port; 0 is any that is free" if is_taken else ""
        raise InputError(f"cannot listen on {host:.100}, port {port}: {reason}{remedy}") from None
    return listener


def _check_everywhere(host: str, bound: str) -> None:
    """Refuse short forms such as `0` for all interfaces: only an address that says so may mean them."""
    if bound in ("0.0.0.0", "::"):
        try:
            ipaddress.ip_address(host)
        except ValueError:
            raise InputError(f"--host {host!r} would listen everywhere. {HOSTS}") from None


def read_tls(files: tuple[Path, Path] | None) -> Tls | None:
    """The certificate and key, if they are given. They are refused if they cannot be used."""
    if files is None:
        return None
    tls = Tls(*files)
    for path in (tls.certificate, tls.key):
        if not is_file(path):
            raise InputError(f"there is no file {path}")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            tls.certificate, tls.key, password=_no_password
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise InputError(
            f"{tls.certificate} and {tls.key} are not a certificate and its key, as PEM without a "
            f"password: {reason}"
        ) from None
    return tls


def _no_password() -> str:
    raise ValueError("the key has a password")


def make_server(
    service: Service,
    tls: Tls | None = None,
    load: Load | None = None,
    tell: Callable[[], None] = lambda: None,
) -> Server:
    """A server that has not been started yet. Once it listens it will `load` releases, and `tell` that they are there."""
    protocol: Any = functools.partial(Guarded, waiting={})
    config = uvicorn.Config(
        make_app(service),
        http=protocol,
        ws="none",
        lifespan="off",
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(service.limits.seconds) + 5,
        ssl_certfile=tls.certificate if tls else None,
        ssl_keyfile=tls.key if tls else None,
    )
    return Server(config, service, load, tell)


def run(
    service: Service, sock: socket.socket, load: Load, tls: Tls | None, tell: Callable[[], None]
) -> None:
    """Serve until SIGTERM or SIGINT; requests that are being answered are finished first.

    It answers from the start, that it is starting, while a thread loads the releases. SIGHUP loads them again in a thread, and
    they take the place of the others between two requests.
    """
    catch_server_logs()
    server = make_server(service, tls, load, tell)
    # Until uvicorn listens to signals, and after: it raises them again when it is done.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: setattr(server, "should_exit", True))
    server.run(sockets=[sock])
    service.close()
    if server.failure is not None:
        raise server.failure
    log("stop")
