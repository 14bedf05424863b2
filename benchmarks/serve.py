"""What `htf serve` answers a second, as ratios within one run, over the loopback interface.

    python benchmarks/serve.py RELEASE [--part single,batch,memory,slow] [--requests N]

The client is a bare asyncio protocol in this process; the servers are processes of their own. A count of one box
is compared with a route of the same framework that says {"ok": true} and nothing else; batches are compared with
`release.count` in this process. The load is bounded and goes to 127.0.0.1 only.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from htf import Release
from htf.frame.domain import FloatArray
from htf.serve.server import listen

HOST = "127.0.0.1"
CONNECTIONS = 32
REPEATS = 5
BATCH = 50_000
SLOW_CLIENTS = 200
ARROW = "application/vnd.apache.arrow.stream"


def serve_bare() -> None:
    """A route that does nothing, on the same server."""

    async def bare(_: Request) -> JSONResponse:
        return JSONResponse({"ok": True})

    sock = listen(HOST, 0)
    sock.listen()
    print(f"http://{HOST}:{sock.getsockname()[1]}", flush=True)
    config = uvicorn.Config(
        Starlette(routes=[Route("/bare", bare)]), access_log=False, log_level="error"
    )
    uvicorn.Server(config).run(sockets=[sock])


@dataclass(frozen=True)
class Server:
    port: int
    pid: int


@contextmanager
def server(*arguments: str) -> Iterator[Server]:
    """A server in a process of its own, until the block ends."""
    command = [sys.executable, *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            yield Server(int(line.rsplit(":", 1)[1]), process.pid)
        finally:
            process.terminate()


class Client(asyncio.Protocol):
    """Sends the next request when the answer to the last one is there."""

    def __init__(self, requests: Iterator[bytes], done: asyncio.Future[None]) -> None:
        self.requests, self.done, self.received = requests, done, b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        request = next(self.requests, None)
        if request is None:
            self.transport.close()
            self.done.set_result(None)
        else:
            self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, found, rest = self.received.partition(b"\r\n\r\n")
        if not found:
            return
        if not head.startswith(b"HTTP/1.1 200"):
            self.done.set_exception(RuntimeError(head.decode()))
            return
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(rest) >= size:
            self.received = rest[size:]
            self.ask()


async def send_all(port: int, requests: Iterator[bytes]) -> None:
    loop = asyncio.get_running_loop()
    ended = [loop.create_future() for _ in range(CONNECTIONS)]
    for done in ended:
        await loop.create_connection(lambda done=done: Client(requests, done), HOST, port)  # type: ignore[misc]
    await asyncio.gather(*ended)


def rate(port: int, requests: list[bytes], number: int) -> float:
    """Requests answered a second."""
    started = time.perf_counter()
    uvloop.run(send_all(port, islice(cycle(requests), number)))
    return number / (time.perf_counter() - started)


def random_boxes(release: Release, share: float, number: int, seed: int) -> FloatArray:
    """Boxes with sides of this share of the map."""
    x, y = release.domain.axes[:2]
    low, size = np.array([x.low, y.low]), np.array([x.high - x.low, y.high - y.low])
    corners = low + np.random.default_rng(seed).uniform(0, 1 - share, (number, 2)) * size
    return np.column_stack([corners, corners + share * size])


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()


def count_requests(name: str, boxes: FloatArray) -> list[bytes]:
    return [
        get(f"/api/releases/{name}/count?box={','.join(f'{edge:.6f}' for edge in box)}")
        for box in boxes
    ]


def post(port: int, path: str, media: str, body: bytes) -> bytes:
    """One request by the plainest client; the body of the answer."""
    connection = http.client.HTTPConnection(HOST, port, timeout=120)
    connection.request("POST", path, body, {"Content-Type": media})
    answer = connection.getresponse()
    found = answer.read()
    assert answer.status == 200, found
    connection.close()
    return found


def show(what: str, values: list[float], target: str = "") -> None:
    print(f"{what}: {median(values):.2f} ({min(values):.2f} to {max(values):.2f}) {target}")


def processor_seconds(pid: int) -> float:
    """Time that a process has computed, which others on the machine disturb less than a clock."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rates(at: Server, requests: list[bytes], number: int) -> tuple[float, float]:
    """Requests a second, by the clock and of the server's own processor time."""
    before = processor_seconds(at.pid)
    by_clock = rate(at.port, requests, number)
    return by_clock, number / (processor_seconds(at.pid) - before)


def measure_single(release: Release, name: str, ours: Server, bare: Server, number: int) -> None:
    print(f"\nSingle boxes, {CONNECTIONS} connections, {number:,} requests, {REPEATS} times")
    bare_requests = [get("/bare")]
    rate(bare.port, bare_requests, 2000)
    for share in (0.02, 0.1):
        requests = count_requests(name, random_boxes(release, share, 20_000, 1))
        rate(ours.port, requests, 2000)
        pairs = [
            (rates(bare, bare_requests, number), rates(ours, requests, number))
            for _ in range(REPEATS)
        ]
        print(f"  Boxes of {share:.0%} of the map's side")
        for place, said in enumerate(("by the clock", "by processor time")):
            idle = [one[place] for one, _ in pairs]
            counted = [one[place] for _, one in pairs]
            show(f"    thousand a second, {said}: bare route", [one / 1000 for one in idle])
            show(f"    thousand a second, {said}: count", [one / 1000 for one in counted])
            ratios = [count / one for one, count in zip(idle, counted, strict=True)]
            show("    ratio", ratios, "(target 0.7)")


def measure_batch(release: Release, name: str, port: int) -> None:
    boxes = random_boxes(release, 0.1, BATCH, 2)
    columns = dict(zip(("west", "south", "east", "north"), boxes.T, strict=True))
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    arrow, json = bytes(sink.getvalue()), orjson.dumps({"boxes": boxes.tolist()})
    path = f"/api/releases/{name}/counts"
    release.count(boxes[:10])
    times: dict[str, list[float]] = {"library": [], "arrow": [], "json": []}
    for _ in range(REPEATS):
        started = time.perf_counter()
        expected = release.count(boxes).count
        times["library"].append(time.perf_counter() - started)
        started = time.perf_counter()
        found = pa.ipc.open_stream(post(port, path, ARROW, arrow)).read_all()
        times["arrow"].append(time.perf_counter() - started)
        assert np.array_equal(found["count"].to_numpy(), expected)
        started = time.perf_counter()
        answer = orjson.loads(post(port, path, "application/json", json))
        times["json"].append(time.perf_counter() - started)
        assert answer["count"] == expected.tolist()
    print(f"\nBatches of {BATCH:,} boxes of 10% of the map's side, {REPEATS} times")
    for kind, target in (("library", ""), ("arrow", "(target 0.5)"), ("json", "(target 0.05)")):
        show(f"  {kind}, thousand boxes a second", [BATCH / 1000 / t for t in times[kind]])
        if target:
            ratios = [a / b for a, b in zip(times["library"], times[kind], strict=True)]
            show(f"  {kind} beside the library", ratios, target)


def resident(pid: int) -> float:
    """MB of memory that a process has."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def measure_memory(release: Release, name: str, ours: Server, number: int) -> None:
    print(f"\nMemory of the server, {number:,} requests for one box")
    requests = count_requests(name, random_boxes(release, 0.02, 50_000, 3))
    rate(ours.port, requests, 5000)
    print(f"  at first: {resident(ours.pid):.1f} MB")
    for step in range(1, 6):
        rate(ours.port, requests, number // 5)
        print(f"  after {step * number // 5:,}: {resident(ours.pid):.1f} MB")


async def hold(port: int, seconds: float) -> None:
    """Half of them send a head byte by byte, half ask for much and do not read. Closed ones come again."""
    held: dict[int, asyncio.StreamWriter] = {}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for number in range(SLOW_CLIENTS):
            writer = held.get(number)
            if writer is None or writer.is_closing():
                reader, writer = await asyncio.open_connection(HOST, port, limit=1024)
                held[number] = writer
                if number % 2:
                    reader._transport.pause_reading()  # type: ignore[attr-defined]
                    writer.write(get("/openapi.json") * 100)
                else:
                    writer.write(b"GET / HTTP/1.1\r\nX: ")
            elif not number % 2:
                writer.write(b"a")
        await asyncio.sleep(0.5)


def measure_slow(release: Release, name: str, ours: Server) -> None:
    """The rate alone, and while slow clients are held by another process."""
    requests = count_requests(name, random_boxes(release, 0.02, 20_000, 4))
    pairs = []
    for _ in range(3):
        alone = rates(ours, requests, 10_000)
        command = [sys.executable, __file__, "--hold", str(ours.port)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as holder:
            time.sleep(3)
            pairs.append((alone, rates(ours, requests, 10_000)))
            holder.terminate()
    print(f"\n{SLOW_CLIENTS} slow clients, {len(pairs)} times")
    for place, said in enumerate(("by the clock", "by processor time")):
        show(f"  thousand a second, {said}: without", [one[place] / 1000 for one, _ in pairs])
        show(f"  thousand a second, {said}: with", [one[place] / 1000 for _, one in pairs])
        show("    ratio", [beside[place] / alone[place] for alone, beside in pairs])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("release", nargs="?", type=Path)
    parser.add_argument("--part", default="single,batch,memory,slow")
    parser.add_argument("--requests", type=int, default=100_000, help="of the part memory")
    parser.add_argument("--bare", action="store_true")
    parser.add_argument("--hold", type=int)
    asked = parser.parse_args()
    if asked.bare:
        serve_bare()
    elif asked.hold:
        asyncio.run(hold(asked.hold, 30))
    else:
        release, parts = Release.load(asked.release), asked.part.split(",")
        release.count()
        arguments = ("-m", "htf", "serve", str(asked.release), "--port", "0", "--allow-not-private")
        name = asked.release.stem.lower()
        with server(*arguments) as ours, server(__file__, "--bare") as bare:
            if "single" in parts:
                measure_single(release, name, ours, bare, 10_000)
            if "batch" in parts:
                measure_batch(release, name, ours.port)
            if "memory" in parts:
                measure_memory(release, name, ours, asked.requests)
            if "slow" in parts:
                measure_slow(release, name, ours)


if __name__ == "__main__":
    main()
