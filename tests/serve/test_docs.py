"""The commands and the block of docs/serve.md work as they stand, but for the address."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from htf.serve.app import Service
from serving import client
from support import require

PAGE = (Path(__file__).parents[2] / "docs/serve.md").read_text()
ADDRESS = "http://127.0.0.1:8000"


def test_the_page(served: tuple[str, Service], tmp_path: Path, files: dict[str, Path]) -> None:
    require("curl", "curl")
    commands = re.findall(r"^    (curl .*)$", PAGE, re.M)
    assert len(commands) == 8
    said = {}
    for command in commands:
        words = shlex.split(command.replace(ADDRESS, served[0]))
        ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
        said[words[-1].rsplit("/", 1)[1]] = ran.stdout
    assert '"count":[' in said["counts"]
    assert '"inside":1.0' in said["polygons"]
    assert b"counts" in (tmp_path / "tile.mvt").read_bytes()
    assert (tmp_path / "copy.parquet").read_bytes() == files["city"].read_bytes()
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    code = block.replace(ADDRESS, served[0])
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "'std_error': [" in ran.stdout


def test_the_numbers_of_the_page(served: tuple[str, Service]) -> None:
    from htf.maps.tiles import GRID, MOST_LEAVES
    from htf.serve.limits import MEGABYTE, Limits
    from htf.serve.server import HEAD_SECONDS, MOST_CONNECTIONS, READ_SECONDS

    limits = Limits()
    told = (
        f"{limits.body // MEGABYTE} MB", f"{limits.boxes:,} boxes", f"{limits.polygons:,} polygons",
        f"{limits.corners:,} corners", f"{HEAD_SECONDS:.0f} seconds for the head", f"{limits.seconds:.0f} for its body",
        f"{READ_SECONDS:.0f} without reading", f"{MOST_CONNECTIONS} connections", f"({MOST_LEAVES})", f"{GRID} x {GRID}",
    )  # fmt: skip
    for one in told:
        assert one in PAGE, one
    with client(served[0]) as api:
        assert f"{limits.boxes:,} boxes" in api.get("/openapi.json").text
