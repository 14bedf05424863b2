"""How many small mistakes the tests notice: change one operator, number or line at a time, and run them.

    python benchmarks/mutants.py src/htf/curator/medians.py --tests tests/properties/test_choices.py
    python benchmarks/mutants.py FILE --tests TEST … --sample 40          # 40 of the mutants, by a fixed seed
    python benchmarks/mutants.py FILE --tests TEST … --only 12 31         # again, by their numbers
    python benchmarks/mutants.py FILE --list                              # all mutants, without running any

Every mutant runs in a process of its own, forked from one that has loaded the large packages but nothing of ours. It
imports the changed module from a temporary file, so the sources stay as they are. Loops compiled by Numba run as plain
Python where the file holds any: cached machine code of an unchanged caller would hide the change. Tests that start `htf`
as a program do not see the mutant. A mutant that survives is either a gap in the tests or makes no difference: look at each.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import pytest
from hypothesis import Phase, settings

ROOT = Path(__file__).resolve().parents[1]
LARGE_PACKAGES = (
    "scipy.stats", "pyarrow.parquet", "duckdb", "ibis", "opendp.prelude",
)  # fmt: skip
OPERATORS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.FloorDiv,), ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,), ast.Mod: (ast.FloorDiv,), ast.Pow: (ast.Mult,),
    ast.LShift: (ast.RShift,), ast.RShift: (ast.LShift,), ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,),
    ast.And: (ast.Or,), ast.Or: (ast.And,),
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
OPPOSITES = dict(
    pair
    for one, other in (
        ("min", "max"), ("minimum", "maximum"), ("any", "all"), ("floor", "ceil"), ("add", "subtract"),
        ("low", "high"), ("starts", "stops"), ("left", "right"), ("least", "greatest"),
    )
    for pair in ((one, other), (other, one))
)  # fmt: skip
DROPPED_FACTORS = (ast.Mult, ast.FloorDiv, ast.Div)


@dataclass(frozen=True)
class Mutant:
    """One change of a file's text."""

    number: int
    line: int
    before: str
    after: str
    source: str

    def __str__(self) -> str:
        return f"{self.number:4d}  line {self.line:3d}  {_short(self.before)}  ->  {_short(self.after)}"


def find_mutants(source: str) -> list[Mutant]:
    """All changes of operators, numbers, names with an opposite, conditions and statements."""
    found: list[Mutant] = []
    for node in _nodes(ast.parse(source)):
        before = ast.get_source_segment(source, node) or ""
        for after in _changes(node):
            changed = _spliced(source, node, after)
            found.append(Mutant(len(found), node.lineno, before, after, changed))
    return found


def _nodes(tree: ast.AST) -> Iterator[Any]:
    """What is worth a change: no annotations, decorators, texts, representations or imports."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, (ast.JoinedStr, ast.Import)):
                continue
            if isinstance(child, ast.FunctionDef) and child.name == "__repr__":
                continue
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, (ast.expr, ast.stmt)):
                yield child
            yield from _nodes(child)


def _changes(node: Any) -> Iterator[str]:  # noqa: PLR0912
    match node:
        case ast.BinOp() | ast.BoolOp():
            for other in OPERATORS.get(type(node.op), ()):
                yield _with(node, op=other())
            if isinstance(node, ast.BinOp) and isinstance(node.op, DROPPED_FACTORS):
                yield f"({ast.unparse(node.left)})"
                yield f"({ast.unparse(node.right)})"
        case ast.Compare():
            for place, operator in enumerate(node.ops):
                for other in OPERATORS.get(type(operator), ()):
                    yield _with(node, ops=[*node.ops[:place], other(), *node.ops[place + 1 :]])
        case ast.UnaryOp():
            yield f"({ast.unparse(node.operand)})"
        case ast.Constant():
            yield from _changes_of_constant(node.value)
        case ast.Name(id=name, ctx=ast.Load()) if name in OPPOSITES:
            yield OPPOSITES[name]
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in OPPOSITES:
            yield _with(node, attr=OPPOSITES[name])
        case ast.If() | ast.IfExp():
            yield from _changes_of_condition(node)
        case (
            ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.AugAssign() | ast.Raise()
        ):
            yield "pass"
        case ast.Expr(value=ast.Call()):
            yield "pass"


def _changes_of_constant(value: Any) -> Iterator[str]:
    match value:
        case bool():
            yield str(not value)
        case int():
            yield str(value + 1)
            if value > 0:
                yield str(value - 1)
        case float():
            yield str(2 * value)
        case "left" | "right":
            yield repr(OPPOSITES[value])


def _changes_of_condition(node: ast.If | ast.IfExp) -> Iterator[str]:
    changed: Any = copy.deepcopy(node)
    for test in (f"not ({ast.unparse(node.test)})", "False", "True"):
        changed.test = ast.parse(test, mode="eval").body
        text = ast.unparse(changed)
        yield text if isinstance(node, ast.If) else f"({text})"


def _with(node: Any, **fields: Any) -> str:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    text = ast.unparse(changed)
    return text if isinstance(node, ast.Attribute) else f"({text})"


def _spliced(source: str, node: Any, text: str) -> str:
    """The source with the text of the node replaced; positions in the tree count bytes."""
    lines = source.encode().splitlines(keepends=True)
    first, last = node.lineno - 1, node.end_lineno - 1
    indented = text.replace("\n", "\n" + " " * node.col_offset).encode()
    middle = lines[first][: node.col_offset] + indented + lines[last][node.end_col_offset :]
    return b"".join([*lines[:first], middle, *lines[last + 1 :]]).decode()


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 70 else flat[:67] + "…"


class Changed(importlib.abc.MetaPathFinder):
    """Finds one module in another file."""

    def __init__(self, module: str, path: Path) -> None:
        self.module, self.path = module, path

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        if name != self.module:
            return None
        return importlib.util.spec_from_file_location(name, self.path)


class FailFast:
    """A pytest plugin: the first failing example will do, the smallest is not looked for."""

    @staticmethod
    def pytest_configure() -> None:
        settings.register_profile("fast", settings.default, phases=[Phase.explicit, Phase.generate])
        settings.load_profile("fast")


def run_tests(
    file: Path, source: str, tests: Sequence[str], seconds: float, *, show: bool = False
) -> str:
    """`survived`, `killed` or, for tests that did not end, `timeout`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file.name
        path.write_text(source)
        child = os.fork()
        if child == 0:
            _become_tests(file, path, tests, show)
        return _wait_for(child, seconds)


def _become_tests(file: Path, path: Path, tests: Sequence[str], show: bool) -> None:
    status = 2
    try:
        os.setsid()
        if not show:
            sink = os.open(os.devnull, os.O_WRONLY)
            os.dup2(sink, 1)
            os.dup2(sink, 2)
        if "@njit" in path.read_text():
            numba.config.DISABLE_JIT = True
        module = ".".join(file.resolve().relative_to(ROOT / "src").with_suffix("").parts)
        sys.path.insert(0, str(ROOT / "src"))
        sys.meta_path.insert(0, Changed(module, path))
        os.chdir(ROOT)
        loaded = "ignore::pytest.PytestAssertRewriteWarning"  # Hypothesis is there already
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", loaded]
        status = int(pytest.main([*options, *tests], plugins=[FailFast()]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def _wait_for(child: int, seconds: float) -> str:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "survived" if status == 0 else "killed"
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--tests", nargs="+", default=[], help="what pytest is given")
    parser.add_argument("--deselect", nargs="+", default=[], help="tests to leave out")
    parser.add_argument("--sample", type=int, help="try so many of the mutants")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--only", type=int, nargs="+", help="the numbers of mutants to try")
    parser.add_argument("--seconds", type=float, default=90, help="a run may take")
    parser.add_argument("--show", action="store_true", help="what the tests print")
    parser.add_argument("--list", action="store_true", help="show the mutants and stop")
    given = parser.parse_args()
    tests = [*given.tests, *(f"--deselect={test}" for test in given.deselect)]
    source = given.file.read_text()
    mutants = find_mutants(source)
    if given.only is not None:
        mutants = [mutant for mutant in mutants if mutant.number in given.only]
    elif given.sample is not None and given.sample < len(mutants):
        chosen = random.Random(given.seed).sample(mutants, given.sample)
        mutants = sorted(chosen, key=lambda mutant: mutant.number)
    if given.list:
        print(*mutants, sep="\n")
        return
    for package in LARGE_PACKAGES:
        importlib.import_module(package)
    if run_tests(given.file, source, tests, given.seconds, show=given.show) != "survived":
        raise SystemExit("the tests fail without any change: choose others, or mend them first")
    results: Counter[str] = Counter()
    for mutant in mutants:
        result = run_tests(given.file, mutant.source, tests, given.seconds, show=given.show)
        results[result] += 1
        print(f"{result:8}  {mutant}", flush=True)
    told = ", ".join(f"{number} {result}" for result, number in sorted(results.items()))
    print(f"{given.file}: {len(mutants)} mutants: {told}")


if __name__ == "__main__":
    main()
