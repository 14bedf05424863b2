"""The figures of this code base, which docs/architecture.md shows: how much there is of everything, and how long it takes.

    python tools/figures.py                      shows those that are quickly counted
    python tools/figures.py --write              writes them into the page, and the sizes of the trusted base
    python tools/figures.py --write --tests      … and runs `make test`, for its time
    python tools/figures.py --write --first-box RELEASE … and measures the first answer of a new process

What is not measured again stays as the page has it.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import resource
import subprocess
import sys
import time
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import click

import htf
from htf.cli.main import cli

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/architecture.md"
BEGIN, END = "<!-- figures: python tools/figures.py --write -->", "<!-- end of figures -->"
OF_TRUSTED_FILE = re.compile(r"^\| `([\w/]+\.py)` \| (\d+) \|", re.MULTILINE)
NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip
LIBRARY, ALL_CODE = "lines of code in `src/htf`", "lines of code with the bench"
OF_RELEASE, OF_ALL = "options of `htf release`", "options of all commands"
NAMES, WORDS = "public names", "words of documentation"
CAPS = {LIBRARY: 34_100, ALL_CODE: 38_000, OF_RELEASE: 40, OF_ALL: 190, NAMES: 45, WORDS: 45_000}
MISSED = {
    LIBRARY: 33_000
}  # what we wanted, where that is not reached; the cap is what must not be passed
TESTS, FIRST_BOX = "`make test`", "first box of a new process"
LIMITS = {TESTS: "9 minutes on two free cores", FIRST_BOX: "0.4 s of processor time"}


@dataclass(frozen=True)
class Figures:
    """What is quickly counted: numbers that have a cap, and the lines of each folder."""

    counted: dict[str, int]
    folders: dict[str, int]


def lines_of_code(text: str) -> int:
    """Without docstrings, comments and blank lines."""
    told: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if first is not None and ast.get_docstring(node) is not None:
                told |= set(range(first.lineno, (first.end_lineno or 0) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            code |= set(range(token.start[0], token.end[0] + 1))
    return len(code - told)


def lines_of_folders(source: Path) -> dict[str, int]:
    """Of a package, by folder; modules outside of folders go by their own names."""
    found: dict[str, int] = {}
    for path in sorted(source.rglob("*.py")):
        inside = path.relative_to(source)
        name = inside.name if len(inside.parts) == 1 else f"{inside.parts[0]}/"
        found[name] = found.get(name, 0) + lines_of_code(path.read_text())
    return found


def options(command: click.Command) -> list[str]:
    """The options of a command and of those below it, each as often as it can be given."""
    found = [str(one.name) for one in command.params if isinstance(one, click.Option)]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):  # those of the bench, too
            below = command.get_command(context, name)
            found += [] if below is None else options(below)
    return found


def words(text: str) -> int:
    """Of a page, without tables, code and comments."""
    text = re.sub(r"^\s*```.*?^\s*```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    lines = (one for one in text.splitlines() if not one.lstrip().startswith("|"))
    text = "\n".join(one for one in lines if not one.startswith("    "))
    text = re.sub(r"\]\([^)]*\)", "]", re.sub(r"<[^>]+>", "", text))
    return len(re.findall(r"\S*\w\S*", text))


def pages() -> Iterator[Path]:
    yield from sorted((ROOT / "docs").rglob("*.md"))
    yield from (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"))


def count() -> Figures:
    folders = lines_of_folders(ROOT / "src/htf")
    bench = sum(lines_of_folders(ROOT / "src/htf_bench").values())
    library = sum(folders.values())
    counted = {
        LIBRARY: library,
        ALL_CODE: library + bench,
        OF_RELEASE: len(options(import_module("htf.cli.release").release)),
        OF_ALL: len(options(cli)),
        NAMES: len(htf.__all__),
        WORDS: sum(words(path.read_text()) for path in pages()),
    }
    return Figures(counted, dict(sorted(folders.items(), key=lambda one: -one[1])))


def measure_tests() -> str:
    """How long `make test` takes, after what it needs was installed."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    ran = subprocess.run(["make", "test"], cwd=ROOT, capture_output=True, text=True, check=True)
    took, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    passed = re.search(r"(\d+) passed", ran.stdout)
    if passed is None:
        raise SystemExit(f"no test passed:\n{ran.stdout[-2000:]}")
    return f"{int(passed[1]):,} tests in {took / 60:.1f} minutes, {used / 60:.1f} of processor time"


def measure_first_box(release: str) -> str:
    """What benchmarks/query.py says of new processes: the least of several."""
    command = [sys.executable, str(ROOT / "benchmarks/query.py"), release]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    leaves = re.search(r"^([\d,]+) leaves", ran.stdout, re.MULTILINE)
    took = dict(re.findall(r"^(.+) in a new process: ([\d.]+) s", ran.stdout, re.MULTILINE))
    assert leaves is not None
    ours, command_line = took["Release.load and count"], took["htf query"]
    return f"{ours} s, as `htf query` {command_line} s ({leaves[1]} leaves)"


def shown(page: str) -> dict[str, str]:
    """The figures that a page has, by their names."""
    block = page.partition(BEGIN)[2].partition(END)[0]
    return dict(re.findall(r"^\| (.+?) \| (.+?) \|", block, re.MULTILINE))


def table(figures: Figures, measured: dict[str, str]) -> str:
    """The part of the page between the marks."""
    rows = [("what", "how much", "at most"), ("---", "---", "---")]
    rows += [(name, f"{number:,}", _most(name)) for name, number in figures.counted.items()]
    rows += [(name, measured.get(name, "not measured"), most) for name, most in LIMITS.items()]
    folders = [("folder", "lines"), ("---", "---")]
    folders += [(f"`{name}`", f"{number:,}") for name, number in figures.folders.items()]
    both = ["\n".join(f"| {' | '.join(row)} |" for row in part) for part in (rows, folders)]
    return f"{BEGIN}\n\n" + "\n\n".join(both) + f"\n\n{END}"


def _most(name: str) -> str:
    missed = f" (**missed: {MISSED[name]:,}**)" if name in MISSED else ""
    return f"{CAPS[name]:,}{missed}"


def with_sizes(page: str) -> str:
    """The page with the sizes of the files of the trusted base."""

    def sized(row: re.Match[str]) -> str:
        lines = lines_of_code((ROOT / "src/htf" / row[1]).read_text())
        return f"| `{row[1]}` | {lines} |"

    return OF_TRUSTED_FILE.sub(sized, page)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--write", action="store_true", help="write into docs/architecture.md")
    parser.add_argument("--tests", action="store_true", help="run make test, for its time")
    parser.add_argument("--first-box", metavar="RELEASE", help="measure the first answer")
    asked = parser.parse_args()
    figures, page = count(), PAGE.read_text()
    measured = shown(page)
    if asked.tests:
        measured[TESTS] = measure_tests()
    if asked.first_box:
        measured[FIRST_BOX] = measure_first_box(asked.first_box)
    made = table(figures, measured)
    print(made)
    if asked.write:
        before, _, rest = page.partition(BEGIN)
        PAGE.write_text(with_sizes(before + made + rest.partition(END)[2]))


if __name__ == "__main__":
    main()
