"""`htf serve` under load: 200 clients at once on the loopback, asking what can be answered and what cannot.

Every request must be answered, none with an error of ours (500), and the memory of the server must not
grow with the number of requests. Malformed ones may be answered or cut off. While a queue is full the
server says 503, which is as documented.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from reliability.hostile import make_seeds
from reliability.sandbox import Tally

T = TypeVar("T")

HOST = "127.0.0.1"
CLIENTS = 200
REQUESTS = 40_000  # at scale 1
ROUNDS = 4  # memory is looked at after each
MOST_GROWTH = 48 * 2**20  # bytes between the first round and the last
LONGEST_WAIT = 300  # seconds for one answer, on a busy machine too
STATUS = re.compile(rb"HTTP/1\.1 (\d{3})")


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode("utf-8", "surrogateescape")


def post(path: str, media: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: {media}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def make_request(chance: random.Random) -> tuple[str, bytes]:
    """What kind it is, and its bytes."""
    name = chance.choice(("plane", "hours", "metres", "ug"))
    west, south = chance.uniform(-30.3, -29.9), chance.uniform(39.8, 40.05)
    box = f"{west},{south},{west + 0.1},{south + 0.05}"
    ring = [[west, south], [west + 0.1, south], [west, south + 0.05], [west, south]]
    boxes = [[west, south, west + 0.1, south + 0.05]] * chance.choice((1, 10, 500))
    good = (
        get(f"/api/releases/{name}/count?box={box}"),
        get(f"/api/releases/{name}"),
        get("/api/releases"),
        get(chance.choice(("/", "/healthz", "/metrics", "/openapi.json", f"/api/releases/{name}/download"))),
        get(f"/api/releases/{name}/leaves"),
        get(f"/api/releases/{name}/tiles/8/{chance.randrange(106, 108)}/{chance.randrange(96, 98)}.mvt"),
        post(f"/api/releases/{name}/counts", "application/json", json.dumps({"boxes": boxes}).encode()),
        post(f"/api/releases/{name}/polygons", "application/geo+json", json.dumps({"type": "Polygon", "coordinates": [ring]}).encode()),
    )  # fmt: skip
    odd = chance.choice(
        (
            "nan",
            "1e999",
            "",
            "a,b,c,d",
            "1,2,3",
            "٣,0,1,1",
            "0,0,1,1&box=1",
            "%00",
            "%ff",
            "9" * 3000,
        )
    )
    bad = (
        get(f"/api/releases/{name}/count?box={odd}"),
        get(f"/api/releases/{odd[:50] or '..'}/count?box={box}"),
        get(f"/api/releases/{name}/count?box={box}&where={odd}"),
        get(f"/api/releases/{name}/tiles/{odd[:20]}/-1/x.mvt"),
        get("/../../etc/passwd"),
        get("/" + "a" * 9000),
        post(f"/api/releases/{name}/counts", "application/json", chance.choice((b"", b"{", b"[[1]]", b'{"boxes": [[null]]}', b"\xff", b"[" * 5000, b'{"boxes": 1e999}'))),
        post(f"/api/releases/{name}/counts", "application/vnd.apache.arrow.stream", chance.randbytes(200)),
        post(f"/api/releases/{name}/polygons", "application/geo+json", chance.choice((b"{}", b'{"type": "Polygon", "coordinates": [[[1]]]}', b"null"))),
        post(f"/api/releases/{name}/counts", "text/plain", b"x"),
        b"BREW / HTTP/1.1\r\nHost: x\r\n\r\n",
        get("/").replace(b"GET", b"DELETE"),
    )  # fmt: skip
    broken = (
        chance.randbytes(60) + b"\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 2000 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
    )
    kind = chance.choices(("well-formed", "refusable", "malformed"), (6, 3, 1))[0]
    return kind, chance.choice({"well-formed": good, "refusable": bad, "malformed": broken}[kind])


@contextmanager
def server(folder: Path) -> Iterator[tuple[int, int]]:
    """Its port and its process."""
    made = make_seeds(folder, every_mechanism=True)
    files = [str(made[name]) for name in ("plane", "hours", "metres", "ug")]
    command = [sys.executable, "-m", "htf", "serve", *files, "--port", "0", "--allow-not-private"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            yield int(line.rsplit(":", 1)[1]), process.pid
        finally:
            process.terminate()


async def ask(port: int, request: bytes) -> str:
    """The status, or how else it ended. One connection for each request, as careless clients do."""
    try:
        reader, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return "not connected"
    try:
        writer.write(request)
        line = await asyncio.wait_for(reader.readline(), LONGEST_WAIT)
        found = STATUS.match(line)
        if found is None:
            return "cut off"
        await asyncio.wait_for(reader.read(2**16), LONGEST_WAIT)
        return found[1].decode()
    except TimeoutError:
        return "no answer"
    except OSError:
        return "cut off"
    finally:
        writer.close()


async def one_round(port: int, requests: Iterator[tuple[str, bytes]]) -> dict[str, Counter[str]]:
    ends: dict[str, Counter[str]] = {}

    async def client() -> None:
        for kind, request in requests:  # shared: each takes the next
            ends.setdefault(kind, Counter())[await ask(port, request)] += 1

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return ends


def resident(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def _run(work: Coroutine[Any, Any, T]) -> T:
    """In a thread of its own: this one may have a loop that is running, of a browser's tests."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def campaign(scale: float, seed: int, folder: Path) -> list[Tally]:
    number, chance = max(int(REQUESTS * scale), 400), random.Random(seed)
    tallies = {
        kind: Tally(f"server, {kind} requests")
        for kind in ("well-formed", "refusable", "malformed")
    }
    memory = []
    with server(folder) as (port, pid):
        for _ in range(ROUNDS):
            requests = (make_request(chance) for _ in range(number // ROUNDS))
            for kind, ends in _run(one_round(port, requests)).items():
                tallies[kind].take(ends, _wrong(kind, ends))
            memory.append(resident(pid))
    growth = Tally("server, memory after each round")
    told = ", ".join(f"{held >> 20} MB" for held in memory)
    for _ in memory:
        growth.add(told, f"it grew: {told}" if memory[-1] - memory[0] > MOST_GROWTH else "")
    return [*tallies.values(), growth]


def _wrong(kind: str, ends: Counter[str]) -> list[str]:
    """A malformed request may be cut off. Everything else has an answer, and never an error of ours."""
    allowed = {"cut off"} if kind == "malformed" else set()
    bad = ("500", "501", "502", "not connected", "no answer", "cut off")
    return [f"{kind}: {end} ({ends[end]} times)" for end in bad if ends[end] and end not in allowed]
