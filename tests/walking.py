"""Does what a reader of a page does: runs its blocks of Python and its commands, in order."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from htf.cli.main import run as run_here
from support import PATIENCE

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def commands(page: str = README) -> list[str]:
    shown = re.findall(r"^\$ (.*)$", page, re.M)
    indented = re.findall(r"^    (\S.*)$", re.sub(r"```.*?```", "", page, flags=re.S), re.M)
    inline = [text for text in re.findall(r"`([^`\n]+)`", page) if text.startswith("htf ")]
    return [line.split("  #")[0].strip() for line in [*shown, *indented, *inline]]


def run_process(command: str, place: Path) -> str:
    words = [sys.executable, "-m", *shlex.split(command)]
    ran = subprocess.run(words, cwd=place, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def run(command: str, place: Path) -> str:
    out, err = StringIO(), StringIO()
    with chdir(place), redirect_stdout(out), redirect_stderr(err):
        code = run_here(shlex.split(command)[1:])
    assert code == 0, err.getvalue()
    return out.getvalue()


def run_block(block: str, place: Path) -> str:
    out = StringIO()
    with chdir(place), redirect_stdout(out):
        exec(block, {})
    return out.getvalue()


def steps(page: str) -> list[tuple[str, str]]:
    """What a reader of the page does, in order: blocks of Python, recipes, and commands."""
    found = re.finditer(r"```(python|toml)\n(.*?)```|^    (htf [^\n]*)$", page, re.S | re.M)
    return [(m[1], m[2]) if m[1] else ("htf", m[3]) for m in found]


def write_recipe(block: str, place: Path) -> None:
    """A block of TOML, whose first line is a comment that names its file."""
    (place / block.partition("\n")[0].removeprefix("# ")).write_text(block)


def follow(page: str, place: Path, visit: Callable[[str], str]) -> list[str]:
    """Take every step of a page of docs in a folder. `visit` is given the address of what is served."""
    told = []
    for kind, text in steps((ROOT / page).read_text()):
        if kind == "python":
            run_block(text, place)
        elif kind == "toml":
            write_recipe(text, place)
        elif text.startswith("htf serve"):
            with served(text, place) as address:
                told.append(visit(address))
        else:
            told.append(run(text, place))
    return told


@contextmanager
def served(command: str, place: Path) -> Iterator[str]:
    """Run `htf serve` on a port that it finds free. Gives its address."""
    words = shlex.split(command)
    words[words.index("--port") + 1] = "0"
    with subprocess.Popen(
        [sys.executable, "-m", *words],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().rsplit(" ", 1)[-1].strip()
        finally:
            server.terminate()
            assert server.wait(PATIENCE) == 0
