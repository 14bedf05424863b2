"""`htf serve` as a process: its logs, its end, TLS, slow clients, and what it refuses to start with."""

from __future__ import annotations

import http.client
import io
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from htf import InputError
from htf.cli.main import run as run_command
from htf.query.boxes import count_boxes
from htf.serve import answers as serve_answers
from htf.serve import logs
from htf.serve import server as serve_server
from htf.serve.limits import Limits
from htf.serve.logs import RequestLog
from htf.serve.server import Guarded, Tls, listen, read_tls
from serving import HOST, client, process, run_async, running
from support import PATIENCE, run_program, wait_for

TOKEN = "0123456789abcdef"


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    """A certificate of our own."""
    folder = tmp_path_factory.mktemp("tls")
    found = Tls(folder / "cert.pem", folder / "key.pem")
    run_program(
        "openssl", "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
        "-days", "2", "-subj", "/CN=localhost", "-addext", f"subjectAltName=IP:{HOST}",
        "-keyout", found.key, "-out", found.certificate,
    )  # fmt: skip
    return found


def test_a_process_from_start_to_end(files: dict[str, Path], tls: Tls, tmp_path: Path) -> None:
    """One process for the log, the token, TLS and the end, because starting takes seconds."""
    secret = tmp_path / "token"
    secret.write_text(TOKEN + "\n")
    options = ("--token-file", secret, "--tls", tls.certificate, tls.key)
    with process(files["city"], *options) as (address, started):
        assert address.startswith("https://")
        trusting = ssl.create_default_context(cafile=str(tls.certificate))
        headers = {"Authorization": f"Bearer {TOKEN}", "User-Agent": "a-browser"}
        with client(address, verify=trusting, headers=headers) as api:
            ask_all(api)
            port = int(address.rsplit(":", 1)[1])
            late = http.client.HTTPSConnection(HOST, port, timeout=PATIENCE, context=trusting)
            rest = ask_half(late, headers)
            wait_for(lambda: "htf_running_requests 2\n" in api.get("/metrics").text)  # and this one
        started.send_signal(signal.SIGTERM)
        wait_for(lambda: not is_listening(port))
        late.send(rest)
        answer = late.getresponse()
        assert answer.status == 200  # what was under way is finished
        assert len(json.load(answer)["count"]) == 1000
        late.close()
        assert started.wait(PATIENCE) == 0
        log = started.stderr.read()
    check_log(log, port)


def ask_all(api: httpx.Client) -> None:
    api.get("/api/releases/city/count", params={"box": "-30.0123,39.9512,-29.9177,40.0314"})
    api.get("/api/releases/city/count?box=-30.0123,39.9512,-31.9177,40.0314")
    api.get("/api/releases/city/tiles/13/3412/3101.mvt?where=nothing=39.9512:40")
    api.post("/api/releases/city/counts", json={"boxes": [[-30.0123, 39.9512, -29.9177, 40.0314]]})
    api.get("/39.9512", headers={"X-Forwarded-For": "203.0.113.77"})
    api.request("DELETE", "/", headers={"Authorization": "Bearer wrong-39.9512"})


def ask_half(connection: http.client.HTTPConnection, headers: dict[str, str]) -> bytes:
    """The head and half of the body of a question; its other half."""
    body = json.dumps({"boxes": [[-30.1, 39.92, -29.9, 40.05]] * 1000}).encode()
    connection.putrequest("POST", "/api/releases/city/counts")
    for name, value in {**headers, "Content-Length": str(len(body))}.items():
        connection.putheader(name, value)
    connection.endheaders(body[: len(body) // 2])
    return body[len(body) // 2 :]


def is_listening(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=PATIENCE).close()
    except ConnectionRefusedError:
        return False
    return True


def check_log(log: str, port: int) -> None:
    lines = [json.loads(line) for line in log.splitlines()]
    events = [line["event"] for line in lines]
    assert [*events[:2], events[-1]] == ["load", "start", "stop"]
    asked = [line for line in lines if line["event"] == "request" and line["route"] != "/metrics"]
    assert [line["status"] for line in asked] == [200, 422, 422, 200, 404, 405, 200]
    assert asked[0].keys() == {"time", "event", "method", "route", "status", "seconds", "bytes"}
    numbers = ("time", "seconds", "bytes")  # in which any digits may come by chance
    told = str([{key: line[key] for key in line.keys() - numbers} for line in lines])
    for secret in (
        "39.95",
        "-30.0123",
        "3412",
        "203.0.113.77",
        HOST,
        str(port),
        "a-browser",
        TOKEN,
        "wrong",
    ):
        assert secret not in told


def test_queries_are_logged_where_that_is_asked_for(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    with running([files["city"]], log_queries=True) as (address, service), client(address) as api:
        del vars(service.log)["write"]
        api.get("/api/releases/city/count?box=-30,39.95,-29.9,40")
    line = json.loads(capsys.readouterr().err.splitlines()[0])
    assert line["query"] == "box=-30,39.95,-29.9,40"
    assert line["path"] == "/api/releases/city/count"
    assert line["client"] == HOST


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "ascii"])
def test_lines_are_json_whatever_was_asked_and_wherever_they_go(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text that the encoding lacks would be escaped in ways that JSON does not know."""
    written = io.BytesIO()
    stderr = io.TextIOWrapper(written, encoding, errors="backslashreplace")
    monkeypatch.setattr(sys, "stderr", stderr)
    paths = ['/"\\', "/\n\r\0\x7f", "/é☃😀", "/\ufffd\u2028\x85"]
    log = RequestLog(log_queries=True)

    async def add_all() -> None:
        for path in paths:
            scope = {"method": "GET", "path": path, "query_string": b'x="\\\n\xe9'}
            log.add(scope, "", 404, 0.25, 68)

    run_async(add_all())
    log.write()
    lines = [json.loads(line) for line in written.getvalue().decode().split("\n")[:-1]]
    assert [line["path"] for line in lines] == paths
    assert {(line["query"], line["client"]) for line in lines} == {('x="\\\né', "")}
    assert all(
        (line["status"], line["seconds"], line["bytes"]) == (404, 0.25, 68) for line in lines
    )


def test_times_in_the_log_around_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a clock that was set back, and of the first second of a year."""
    times = [1767225599.9999995, 1767225600.0, 1767225600.0000005, 1767225599.25, 1767225600.5]
    clock = iter(times)
    monkeypatch.setattr(logs, "time", SimpleNamespace(**{**vars(time), "time": clock.__next__}))
    for expected in times:
        told = logs._now()
        assert len(told) == len("2026-01-01T00:00:00.000000Z")
        assert abs(datetime.fromisoformat(told).timestamp() - expected) < 2e-6


def test_it_holds_nothing_sensitive(files: dict[str, Path]) -> None:
    """Not even in the same process: the modules that reach data are never loaded."""
    code = (
        "import sys; from pathlib import Path; from htf.serve.app import Service; import htf.serve.server\n"
        "from htf.serve.holdings import load_holdings\n"
        f"Service(load_holdings([Path({str(files['city'])!r})])).close()\n"
        "print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert "htf.release.release" in loaded
    sensitive = ("frequency", "publication", "curator.curator", "curator.cells", "curator.noise")
    assert not {f"htf.{name}" for name in sensitive} & loaded
    declared = {
        "htf.ingest",
        "htf.ingest.reading",
        "htf.ingest.time_formats",
    }  # options, which open nothing
    assert not [name for name in loaded - declared if name.startswith("htf.ingest")]


def connect(address: str) -> socket.socket:
    host, port = address.rsplit("/", 1)[1].split(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


def test_slow_clients_do_not_stop_others(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty that send a head or a body byte by byte, or do not read; others are answered, they are closed."""
    for name, value in (("HEAD_SECONDS", 3.0), ("READ_SECONDS", 0.7), ("KEEP_ALIVE_SECONDS", 1)):
        monkeypatch.setattr(serve_server, name, value)
    lost: list[int] = []  # the ports of clients whose connections are closed
    original = Guarded.connection_lost

    def remember(self: Guarded, error: Exception | None) -> None:
        original(self, error)
        assert self.client is not None
        lost.append(self.client[1])

    monkeypatch.setattr(Guarded, "connection_lost", remember)
    limits, once = Limits(seconds=PATIENCE), {"Connection": "close"}
    with (
        running([files["city"]], limits=limits) as (address, service),
        client(address, headers=once) as api,
    ):
        slow: list[socket.socket] = []
        post = b"POST /api/releases/city/counts HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n{"
        get = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n"
        for number in range(40):
            slow.append(connect(address))
            slow[-1].sendall((b"GET / HT", post, get * 500, b"")[number % 4])
        wait_for(lambda: service.metrics.running >= len(slow[1::4]))
        for _ in range(20):
            assert api.get("/api/releases/city/count").status_code == 200
        assert service.metrics.running >= len(slow[1::4])  # while those are waited for
        closed = {sock.getsockname()[1] for sock in slow[::4] + slow[2::4] + slow[3::4]}
        wait_for(lambda: closed.issubset(lost))
        for sock in slow[::4] + slow[3::4]:  # no head in time: closed
            assert read_all(sock) == b""
        for sock in slow[2::4]:  # nothing read: cut off in the middle
            assert len(read_all(sock)) < 500 * 16_000
        wait_for(
            lambda: service.metrics.running == len(slow[1::4])
        )  # those have a body to send yet
        for sock in slow:
            sock.close()


def read_all(sock: socket.socket) -> bytes:
    found = b""
    try:
        while chunk := sock.recv(2**16):
            found += chunk
    except ConnectionResetError:
        pass
    return found


def test_nothing_but_empty_lines(files: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """They are no head, and do not keep a connection open that was used before."""
    monkeypatch.setattr(serve_server, "HEAD_SECONDS", 2.0)
    with running([files["city"]]) as (address, _), connect(address) as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        found = b""
        while not found.endswith(b"}"):
            found += sock.recv(2000)
        wait_for(lambda: not takes(sock, b"\r\n"))


def takes(sock: socket.socket, data: bytes) -> bool:
    try:
        sock.sendall(data)
    except OSError:
        return False
    return True


def test_a_head_without_end(served: tuple[str, Any]) -> None:
    with connect(served[0]) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000)
        assert sock.recv(100).startswith(b"HTTP/1.1 431")
    with connect(served[0]) as sock:
        sock.sendall(b"nonsense\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 400")


def test_counting_does_not_stop_the_others(
    served: tuple[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a batch is counted, others are answered; that compiled loops let go of Python's lock is tested too."""
    counting, go_on = threading.Event(), threading.Event()

    def held_up(*arguments: Any) -> Any:
        counting.set()
        go_on.wait(PATIENCE)
        return count_boxes(*arguments)

    monkeypatch.setattr(serve_answers, "count_boxes", held_up)
    boxes = [[-30.1, 39.92, -29.9, 40.05]] * 10
    with client(served[0]) as api, ThreadPoolExecutor(1) as pool:
        batch = pool.submit(api.post, "/api/releases/city/counts", json={"boxes": boxes})
        assert counting.wait(PATIENCE)
        others = [api.get(path) for path in ("/healthz", "/api/releases/city/count")]
        assert not batch.done()
        go_on.set()
        assert [answer.status_code for answer in [*others, batch.result()]] == [200] * 3


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ((), "Missing argument 'RELEASE|SERIES...'"),
        (("{missing}",), "there is no file"),
        (("{seeded}",), "NOT PRIVATE"),
        (("{city}", "--tls", "{city}"), "Option '--tls' requires 2 arguments"),
        (("{city}", "--tls", "{missing}", "{city}"), "there is no file"),
        (("{city}", "--tls", "{city}", "{city}"), "not a certificate and its key"),
        (("{city}", "--token-file", "{missing}"), "there is no file"),
        (("{city}", "--token-file", "{short}"), "at least 16 plain characters"),
        (("{city}", "--host", "203.0.113.1"), "cannot listen on 203.0.113.1, port 8000"),
        (("{city}", "--token", "x"), "No such option"),
        (
            ("{city}", "--host", ""),
            "--host '' is no address. Give 127.0.0.1 for this machine only, 0.0.0.0 or",
        ),
        (("{city}", "--host", " "), "--host ' ' is no address"),
        (("{city}", "--host", "127.0.0.1\t"), "is no address"),
        (("{city}", "--host", "a\0b"), "is no address"),
        (("{city}", "--host", "0"), "--host '0' would listen everywhere"),
        (("{city}", "--host", "0x0.0"), "would listen everywhere"),
        (("{city}", "--host", "h" * 300), "cannot listen on hhh"),
        (("{city}", "--host", "ä" * 300), "cannot listen on äää"),
    ],
)
def test_it_does_not_start_with(
    files: dict[str, Path],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    text: str,
) -> None:
    (tmp_path / "short").write_text("short")
    names = {**files, "missing": tmp_path / "missing.parquet", "short": tmp_path / "short"}
    assert run_command(["serve", *(option.format(**names) for option in options)]) == 2
    assert text in capfd.readouterr().err


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "0::0"])
def test_everywhere_is_said_by_an_address(host: str) -> None:
    if ":" in host and not socket.has_dualstack_ipv6():
        pytest.skip("a machine without IPv6")
    with listen(host, 0) as found:
        assert found.getsockname()[0] in ("0.0.0.0", "::")


def test_a_port_is_taken_from_the_start(
    files: dict[str, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    """Sockets that are bound but do not listen yet share a port: two servers that start together would
    learn of each other only when both have loaded."""
    with listen(HOST, 0) as first:
        port = first.getsockname()[1]
        assert first.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
        assert run_command(["serve", str(files["city"]), "--port", str(port)]) == 2
    told = capfd.readouterr().err
    assert f"cannot listen on {HOST}, port {port}: Address already in use" in told
    assert "Give another --port; 0 is any that is free" in told


def unused_port() -> int:
    """Below those that the system hands out by itself, to other tests say."""
    for port in range(20_000 + os.getpid() % 10_000, 32_000):
        with suppress(InputError), listen(HOST, port):
            return port
    pytest.fail("no port is free")


def test_two_that_start_together(files: dict[str, Path]) -> None:
    """One gets the port; the other says so."""
    port = str(unused_port())
    command = [sys.executable, "-m", "htf", "serve", str(files["city"]), "--port", port]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as one, subprocess.Popen(command, **pipes) as other:
        ready = {started: started.stdout.readline() for started in (one, other) if started.stdout}
        winner, loser = sorted(ready, key=lambda started: not ready[started])
        winner.terminate()  # at once, which is not overheard
        told = loser.communicate(timeout=PATIENCE)[1]
        winner.communicate(timeout=PATIENCE)
    assert [bool(ready[winner]), bool(ready[loser])] == [True, False]
    assert (winner.returncode, loser.returncode) == (0, 2)
    assert "Give another --port" in told


def test_it_says_at_once_what_it_is_doing(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Before anything is loaded, which takes seconds: as a line of the log, or for a person."""
    said: list[str] = []

    def load(*_: Any, **__: Any) -> None:
        said.append(capfd.readouterr().err)
        raise InputError("not now")

    monkeypatch.setattr("htf.serve.holdings.load_holdings", load)
    command = ["serve", str(files["city"]), str(files["hours"]), "--port", "0"]
    assert run_command(command) == 2
    line = json.loads(said[0])
    assert line["event"] == "load"
    assert line["message"].startswith("Loading releases. The first start also compiles")
    assert line["message"].isascii()  # the log would write \\u2026 for three dots
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    capfd.readouterr()
    assert run_command(command) == 2
    assert said[1].startswith("Loading releases. The first start also compiles")


def test_a_handshake_has_seconds(
    files: dict[str, Path], tls: Tls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that never say anything are let go; others come in all the while."""
    assert serve_server.TLS_SECONDS <= 5
    monkeypatch.setattr(serve_server, "TLS_SECONDS", 0.7)
    trusting = ssl.create_default_context(cafile=str(tls.certificate))
    with running([files["city"]], tls) as (address, _):
        silent = [connect(address) for _ in range(40)]
        for number in range(0, 40, 2):
            silent[number].sendall(b"\x16\x03\x01")  # the start of a handshake
        with client(address, verify=trusting) as api:
            assert api.get("/healthz").status_code == 200
        for sock in silent:  # connect() gave them 10 seconds; without a limit it is a minute
            assert read_all(sock) == b""
            sock.close()


def test_idle_connections_make_room(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that have waited longest go first; one that is being answered stays."""
    monkeypatch.setattr(serve_server, "MOST_CONNECTIONS", 20)
    post = b"POST /api/releases/city/counts HTTP/1.1\r\nHost: a\r\nContent-Length: 13\r\n\r\n"
    with running([files["city"]]) as (address, _):
        busy, used = connect(address), connect(address)
        busy.sendall(post)
        used.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert used.recv(2000).startswith(b"HTTP/1.1 200")
        idle = [connect(address) for _ in range(30)]
        with client(address) as api:
            assert api.get("/healthz").status_code == 200
        for sock in (used, *idle[:12]):
            assert read_all(sock) == b""
        idle[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert idle[-1].recv(2000).startswith(b"HTTP/1.1 200")
        busy.sendall(b'{"boxes": []}')
        assert busy.recv(2000).startswith(b"HTTP/1.1 200")
        for sock in (busy, used, *idle):
            sock.close()


def test_what_was_asked_does_nothing_to_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(written, "utf-8"))
    log = RequestLog(log_queries=True)

    async def add() -> None:
        scope = {"method": "GET", "path": "/\x9b2J\x7f\u202e\x1b[31m", "query_string": b"\x9b"}
        log.add(scope, "", 404, 0.25, 68)

    run_async(add())
    log.write()
    logs.log("server", message="\x9b2J")
    lines = written.getvalue().decode()
    assert all(" " <= character <= "~" or character == "\n" for character in lines)
    assert json.loads(lines.splitlines()[0])["path"] == "/\x9b2J\x7f\u202e\x1b[31m"


def test_a_log_that_cannot_be_written_stops_nothing(files: dict[str, Path]) -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "htf", "serve", str(files["city"]), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=full, text=True) as started:
            assert started.stdout is not None
            address = started.stdout.readline().rsplit(" ", 1)[-1].strip()
            with client(address) as api:
                for _ in range(3):
                    assert api.get("/api/releases/city/count").status_code == 200
                    time.sleep(2 * logs.EVERY)
            started.terminate()
            assert started.wait(PATIENCE) == 0


def test_a_token_of_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from htf.cli.serve import _read_token

    monkeypatch.delenv("HTF_TOKEN", raising=False)
    assert _read_token(None) is None
    monkeypatch.setenv("HTF_TOKEN", TOKEN)
    assert _read_token(None) == TOKEN.encode()
    (tmp_path / "token").write_text("fedcba9876543210\n")
    assert _read_token(tmp_path / "token") == b"fedcba9876543210"
    assert os.environ["HTF_TOKEN"] == TOKEN


def test_a_key_with_a_password(tls: Tls, tmp_path: Path) -> None:
    locked = tmp_path / "locked.pem"
    run_program(
        "openssl",
        "openssl",
        "ec",
        "-in",
        tls.key,
        "-aes128",
        "-passout",
        "pass:secret",
        "-out",
        locked,
    )
    with pytest.raises(InputError, match="without a password"):
        read_tls((tls.certificate, locked))
    assert read_tls((tls.certificate, tls.key)) == tls
