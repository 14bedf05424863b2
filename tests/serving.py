"""Small releases and real servers for the tests of `htf serve`."""

from __future__ import annotations

import asyncio
import math
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from htf import Domain, FrequencyMatrix, Release, publish
from htf.curator.noise import SeededNoise
from htf.curator.noise_check import check_noise
from htf.frame.domain import Axis
from htf.serve.app import Service, Settings
from htf.serve.holdings import load_holdings
from htf.serve.server import Tls, listen, make_server
from support import PATIENCE, city_matrix, require, wait_for

HOST = "127.0.0.1"
BOUNDS = (-30.2, 39.9, -29.8, 40.1)


class Repeatable(SeededNoise):
    """The same noise every time, that counts as secret: what is served must not hang on luck."""

    private = True


def make_releases(folder: Path) -> dict[str, Path]:
    """A map in degrees, one with hours, one in metres, one of no known place, and one not private."""
    plane = city_matrix(64, 20_000)
    cells = plane.exact_coordinates
    generator = np.random.default_rng(3)

    def over(domain: Domain) -> FrequencyMatrix:
        counts = plane.exact_counts
        spread = [np.repeat(axis, counts) for axis in cells]
        if domain.dimensions == 3:
            spread.append(generator.integers(0, 24, len(spread[0])))
        return FrequencyMatrix.from_cells(domain, np.array(spread))

    degrees = Domain.from_bounds(*BOUNDS, cells=64)
    metres = Domain.from_bounds(445_000, 5_195_000, 455_000, 5_205_000, 64, crs="EPSG:32632")
    hours = Domain((*degrees.axes, Axis("hour", 0, 24, 24)), degrees.crs)
    nowhere = Domain.from_bounds(0, 0, 64, 64, 64, crs=None)
    check_noise(Repeatable(0))  # which takes draws, of the first that a process sees
    made = {
        "city": publish(over(degrees), 1, noise=Repeatable(1)),
        "hours": publish(over(hours), 1, noise=Repeatable(2)),
        "metres": publish(over(metres), 1, noise=Repeatable(3)),
        "nowhere": publish(over(nowhere), 1, "ug", noise=Repeatable(4)),
        "seeded": publish(over(degrees), 1, noise=SeededNoise(1)),
    }
    return {name: _save(release, folder / f"{name}.parquet") for name, release in made.items()}


def _save(release: Release, path: Path) -> Path:
    release.save(path)
    return path


@contextmanager
def running(
    paths: list[Path], tls: Tls | None = None, *, allow_not_private: bool = False, **settings: Any
) -> Iterator[tuple[str, Service]]:
    """A server in a thread of this process: its address and the service behind it."""
    holdings = load_holdings(paths, allow_not_private=allow_not_private)
    service = Service(holdings, Settings(**settings))
    vars(service.log)["write"] = service.log._lines.clear  # quiet
    server, sock = make_server(service, tls), listen(HOST, 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        wait_for(lambda: server.started or not thread.is_alive())
        yield f"{'https' if tls else 'http'}://{HOST}:{sock.getsockname()[1]}", service
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        service.close()


@contextmanager
def nginx(folder: Path, locations: str) -> Iterator[str]:
    """A real proxy in front of a server: its own address. `locations` is what stands in its block `server`."""
    program, port = require("nginx", "nginx"), _free_port()
    places = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{one}_temp_path {folder / one};" for one in places)
    server = f"server {{ listen {HOST}:{port}; {locations} }}"
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder / 'pid'}; error_log {folder / 'error.log'};"
        f"events {{}} http {{ access_log off; {temporary} {server} }}"
    )
    command = [program, "-p", str(folder), "-c", str(folder / "nginx.conf")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as started:
        try:
            wait_for(lambda: started.poll() is not None or _is_open(port))
            assert started.poll() is None, (folder / "error.log").read_text()
            yield f"http://{HOST}:{port}"
        finally:
            started.terminate()
            started.wait(PATIENCE)


def documented_proxies() -> list[str]:
    """The blocks `location` for a prefix in docs/serve.md, in order: stripped, kept, forwarded."""
    page = (Path(__file__).parent.parent / "docs" / "serve.md").read_text()
    return [
        block for block in re.findall(r"```nginx\n(.*?)```", page, re.DOTALL) if "/maps" in block
    ]


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as taken:
        return int(taken.getsockname()[1])


def _is_open(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex((HOST, port)) == 0


@contextmanager
def process(*arguments: str | Path, **environment: str) -> Iterator[tuple[str, Any]]:
    """`htf serve` as a user runs it: its address and the process, whose standard error is piped."""
    command = [sys.executable, "-m", "htf", "serve", *map(str, arguments), "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment or None
    ) as started:
        assert started.stdout is not None
        line = started.stdout.readline()
        try:
            yield line.rsplit(" ", 1)[-1].strip(), started
        finally:
            if started.poll() is None:
                started.terminate()


def client(address: str, **options: Any) -> httpx.Client:
    return httpx.Client(base_url=address, timeout=PATIENCE, trust_env=False, **options)


def run_async(work: Any) -> Any:
    """In a thread of its own: the browser's tests, in the same process, leave a loop running in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def tile_at(longitude: float, latitude: float, z: int) -> tuple[int, int]:
    """The usual formula, the other way round than the one tested."""
    turn = math.radians(latitude)
    y = (1 - math.asinh(math.tan(turn)) / math.pi) / 2
    return int((longitude + 180) / 360 * 2**z), int(y * 2**z)


def tiles_over(bounds: tuple[float, ...], z: int) -> list[tuple[int, int, int]]:
    west, north = tile_at(bounds[0], bounds[3], z)
    east, south = tile_at(bounds[2], bounds[1], z)
    return [(z, x, y) for x in range(west, east + 1) for y in range(north, south + 1)]
