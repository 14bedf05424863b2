"""How many small mistakes the tests notice: change one operator, number or line at a time, and run them.

    python benchmarks/mutants.py src/htf/curator/medians.py               # with the tests that mutants.toml names for it
    python benchmarks/mutants.py src/htf/*.py --summary                   # one line a file
    python benchmarks/mutants.py FILE --tests TEST …                      # with other tests
    python benchmarks/mutants.py FILE --sample 40                         # 40 of the mutants, by a fixed seed
    python benchmarks/mutants.py FILE --only 12 31 --show                 # some again, with what the tests print
    python benchmarks/mutants.py FILE --list                              # all mutants, without running any
    python benchmarks/mutants.py --mistakes                               # the mistakes that mutants.toml spells out

The sources stay as they are. A change within a function is made in a process forked from one that has loaded everything
and collected the tests: the function gets the code of the changed file. Only tests that call the function are run, the
quickest first. Any other change, and one that survived in a function that is called while modules load, is tried in a process
that has loaded the large packages but nothing of ours, and imports the changed file. Loops compiled by Numba run as plain
Python where the file holds any: cached machine code of an unchanged caller would hide the change. Tests that start `htf`
as a program do not see the mutant. A mutant that survives is either a gap in the tests or makes no difference: look at each.
`mutants.toml` keeps what was found harmless, and why.
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import math
import os
import pickle
import random
import resource
import signal
import sys
import tempfile
import threading
import time
import tomllib
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numba
import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings

ROOT = Path(__file__).resolve().parents[1]
PLAN = Path(__file__).with_suffix(".toml")
LONGEST = 600  # seconds by the clock, for tests that wait and do nothing
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
    place: str  # the function that it is in
    text: str  # of the line
    before: str
    after: str
    source: str

    @property
    def change(self) -> str:
        return f"{_short(self.before)}  ->  {_short(self.after)}"

    @property
    def key(self) -> tuple[str, str, str]:
        """As mutants.toml names it; numbers of lines and mutants change too often."""
        return self.place, self.text, self.change

    def __str__(self) -> str:
        return f"{self.number:4d}  line {self.line:3d}  {self.place}:  {self.change}"


def find_mutants(source: str) -> list[Mutant]:
    """All changes of operators, numbers, names with an opposite, conditions and statements."""
    found: list[Mutant] = []
    tree = ast.parse(source)
    places = _places(tree)
    lines = source.encode().splitlines(keepends=True)  # positions in the tree count bytes
    texts = [line.decode().strip() for line in lines]
    for node in _nodes(tree):
        changes, place = list(_changes(node)), places[node.lineno]
        before = _text(lines, node) if changes else ""
        for after in changes:
            changed = _spliced(lines, node, after)
            found.append(
                Mutant(
                    len(found), node.lineno, place, texts[node.lineno - 1], before, after, changed
                )
            )
    for first, second in _neighbours(tree):
        both: Any = ast.Module([first, second], [])
        both.lineno, both.col_offset = first.lineno, first.col_offset
        both.end_lineno, both.end_col_offset = second.end_lineno, second.end_col_offset
        before = f"{ast.unparse(first)}; {ast.unparse(second)}"
        after = f"{ast.unparse(second)}\n{ast.unparse(first)}"
        changed = _spliced(lines, both, after)
        found.append(
            Mutant(
                len(found),
                first.lineno,
                places[first.lineno],
                texts[first.lineno - 1],
                before,
                after,
                changed,
            )
        )
    return found


def _places(tree: ast.AST, name: str = "") -> dict[int, str]:
    """The name of the outermost function, or of the class, of each line."""
    found: dict[int, str] = defaultdict(str)
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            full = f"{name}.{node.name}" if name else node.name
            found.update(dict.fromkeys(range(node.lineno, (node.end_lineno or 0) + 1), full))
            if isinstance(node, ast.ClassDef):
                found.update(_places(node, full))
    return found


def _neighbours(tree: ast.AST) -> Iterator[tuple[Any, Any]]:
    """A call and the statement after it, which would be exchanged."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, ast.stmt) and isinstance(body, list):
            for first, second in pairwise(body):
                if isinstance(first, ast.Expr) and isinstance(first.value, ast.Call):
                    yield first, second


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
    for test in ("False", "True"):
        changed.test = ast.parse(test, mode="eval").body
        text = ast.unparse(changed)
        yield text if isinstance(node, ast.If) else f"({text})"


def _with(node: Any, **fields: Any) -> str:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    text = ast.unparse(changed)
    return text if isinstance(node, ast.Attribute) else f"({text})"


def _text(lines: list[bytes], node: Any) -> str:
    text = lines[node.lineno - 1 : node.end_lineno]
    text[-1] = text[-1][: node.end_col_offset]
    text[0] = text[0][node.col_offset :]
    return b"".join(text).decode()


def _spliced(lines: list[bytes], node: Any, text: str) -> str:
    """The source with the text of the node replaced."""
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


@dataclass(frozen=True)
class Trial:
    """A file, the tests that should notice its mutants, and how they are run."""

    file: Path
    source: str
    tests: Sequence[str]
    seconds: float = (
        math.inf
    )  # of a processor for a mutant: the quickest tests that take no longer together
    show: bool = False


class InPlace:
    """A pytest plugin: tries mutants on the tests that were collected, each in a forked child."""

    def __init__(
        self, trial: Trial, mutants: Sequence[Mutant], early: set[str], report: Any
    ) -> None:
        self.file, self.source, self.mutants = str(trial.file), trial.source, mutants
        self.early, self.report = early, report
        self.show, self.seconds = trial.show, trial.seconds

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        sys.settrace(None)
        _load_loops()
        functions = self._functions()
        calls = self._baseline(session.items)
        before = codes_of(self.source, self.file)
        gc.freeze()
        chosen = self._quickest(calls, None)
        self.report.write(json.dumps([session.items[test].nodeid for _, test in chosen]) + "\n")
        for mutant in self.mutants:
            changed = _changed_codes(before, codes_of(mutant.source, self.file))
            if changed is None or not changed.keys() <= functions.keys():
                continue
            timed = self._quickest(calls, changed.keys())
            child = os.fork()
            if child == 0:
                self._try([(session.items[t], s) for s, t in timed], functions, changed)
            result = _wait_for(child, LONGEST)
            if result == "survived" and not changed.keys().isdisjoint(self.early):
                continue  # what it does while modules load has not been tried
            self.report.write(f"{mutant.number} {result}\n")
        return True

    def _quickest(
        self, calls: dict[int, tuple[float, set[str]]], names: AbstractSet[str] | None
    ) -> list[tuple[float, int]]:
        """Seconds and numbers of tests that call one of these, or any, as far as the time goes."""
        timed = sorted(
            (seconds, test)
            for test, (seconds, called) in calls.items()
            if (called if names is None else called & names)
        )
        ends = accumulate(seconds for seconds, _ in timed)
        return [test for test, end in zip(timed, ends, strict=True) if end <= self.seconds]

    def _functions(self) -> dict[str, list[FunctionType]]:
        """Those of the file, by their names; without names that stand for several."""
        found: dict[str, list[FunctionType]] = {}
        for thing in gc.get_objects():
            if type(thing) is FunctionType and thing.__code__.co_filename == self.file:
                found.setdefault(thing.__code__.co_qualname, []).append(thing)
        return found

    def _baseline(self, items: Sequence[pytest.Item]) -> dict[int, tuple[float, set[str]]]:
        """Seconds of each test, and the functions of the file that it calls."""
        came, goes = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(came)
            with os.fdopen(goes, "wb") as sink:
                pickle.dump([self._timed(item) for item in items], sink)
            os._exit(0)
        os.close(goes)
        with os.fdopen(came, "rb") as told:
            found: list[tuple[bool, float, set[str]]] = pickle.load(told)
        os.waitpid(child, 0)
        failed = [
            item.nodeid for item, (passed, *_) in zip(items, found, strict=True) if not passed
        ]
        if failed:
            raise pytest.UsageError(f"tests fail without any change: {', '.join(failed)}")
        return {number: (seconds, calls) for number, (_, seconds, calls) in enumerate(found)}

    def _timed(self, item: pytest.Item) -> tuple[bool, float, set[str]]:
        """Tests that take longer than there is time for are broken off, and never run."""
        calls: set[str] = set()
        start = time.process_time()
        with traced(self.file, calls), broken_off(self.seconds) as late:
            passed = _passes(item)
        if late.is_set():
            return True, math.inf, calls
        return passed, time.process_time() - start, calls

    def _try(
        self,
        tests: Sequence[tuple[pytest.Item, float]],
        functions: dict[str, list[FunctionType]],
        changed: dict[str, CodeType],
    ) -> None:
        status = 1
        try:
            os.setsid()
            _limit_memory()
            for name, code in changed.items():
                for function in functions[name]:
                    function.__code__ = code
            status = 0 if all(self._passes_in_time(*test) for test in tests) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def _passes_in_time(self, item: pytest.Item, seconds: float) -> bool:
        _limit_time(4 + 5 * seconds)
        return _passes(item, self.show)


def _passes(item: pytest.Item, show: bool = False) -> bool:
    reports = runtestprotocol(item, log=False)
    if show:
        print(*(r.longreprtext for r in reports if r.failed), file=sys.__stderr__)
    return not any(report.failed for report in reports)


def _limit_time(seconds: float) -> None:
    """From now on, and of a processor's time, so that a busy machine changes nothing."""
    end = math.ceil(time.process_time() + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (end, resource.RLIM_INFINITY))


def _limit_memory() -> None:
    """For loops that gather without an end."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    room = pages * resource.getpagesize() + 2**32
    resource.setrlimit(resource.RLIMIT_AS, (room, room))


@contextmanager
def broken_off(seconds: float) -> Iterator[threading.Event]:
    """Raise in a test that takes longer, and say so. Not in pytest around it, which would end then."""
    late = threading.Event()

    def stop(_: int, frame: FrameType | None) -> None:
        late.set()
        while frame is not None and frame.f_code.co_name != "pytest_pyfunc_call":
            frame = frame.f_back
        if frame is not None:
            raise TimeoutError(f"more than {seconds} s")

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, min(seconds, 10**6), 1)  # again, if it was caught
    try:
        yield late
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


@contextmanager
def traced(file: str, calls: set[str]) -> Iterator[None]:
    """Gather the functions of the file that are called, by the names of the outermost."""

    def note(frame: FrameType, *_: Any) -> None:
        if frame.f_code.co_filename == file:
            calls.add(frame.f_code.co_qualname.split(".<locals>")[0])

    threading.settrace(note)
    sys.settrace(note)
    try:
        yield
    finally:
        sys.settrace(None)
        threading.settrace(None)


def codes_of(source: str, file: str) -> dict[str, CodeType]:
    """The compiled functions of a source; under the empty name what is left without them."""
    found: dict[str, CodeType] = {}

    def without_functions(code: CodeType) -> CodeType:
        return code.replace(co_consts=tuple(map(gathered, code.co_consts)))

    def gathered(value: Any) -> Any:
        if not isinstance(value, CodeType):
            return value
        if not value.co_flags & inspect.CO_NEWLOCALS:
            return without_functions(value)  # the body of a class
        name = value.co_qualname
        found[name if name not in found else ""] = value
        return name

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # a changed source may make no sense
        rest = without_functions(compile(source, file, "exec"))
    return {**found, "": rest}


def _changed_codes(
    before: dict[str, CodeType], after: dict[str, CodeType]
) -> dict[str, CodeType] | None:
    """Functions that are not the same; None where anything else is not."""
    if before.keys() != after.keys() or _essence(before[""]) != _essence(after[""]):
        return None
    return {name: after[name] for name in before if _essence(before[name]) != _essence(after[name])}


def _essence(code: Any) -> Any:
    """All but the numbers of lines. Types tell 1 from True."""
    if not isinstance(code, CodeType):
        return type(code), repr(code)
    inner = tuple(_essence(value) for value in code.co_consts)
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, inner


def _load_loops() -> None:
    """Once for all children, and not so that it looks done to tests."""
    from htf.curator.rehearsal import load_loops  # noqa: PLC0415

    load_loops()
    load_loops.cache_clear()


def try_in_place(
    trial: Trial, mutants: Sequence[Mutant], chosen: list[str]
) -> Iterator[tuple[int, str]]:
    """Numbers and results of those that can be tried so. `chosen` gets the quickest tests that call the file."""
    came, goes = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(came)
        with os.fdopen(goes, "w", buffering=1) as report:
            early: set[str] = set()
            with traced(str(trial.file), early):
                _become_tests(trial, None, InPlace(trial, mutants, early, report))
    os.close(goes)
    with os.fdopen(came) as told:
        chosen += json.loads(told.readline() or "[]")
        for line in told:
            number, result = line.split()
            yield int(number), result
    if os.waitpid(child, 0)[1] != 0:
        raise SystemExit(
            "the tests fail without any change: choose others, or mend them first (--show)"
        )


def try_imported(trial: Trial, source: str) -> str:
    """`survived`, `killed` or, for tests that did not end, `timeout`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / trial.file.name
        path.write_text(source)
        child = os.fork()
        if child == 0:
            os.setsid()
            _limit_memory()
            _limit_time(300)
            _become_tests(trial, path)
        return _wait_for(child, LONGEST)


def _become_tests(trial: Trial, path: Path | None, *plugins: Any) -> None:
    status = 2
    try:
        if not trial.show:
            sink = os.open(os.devnull, os.O_WRONLY)
            os.dup2(sink, 1)
            os.dup2(sink, 2)
        if "@compiled" in trial.source:
            numba.njit = _plain
        sys.path.insert(0, str(ROOT / "src"))
        if path is not None:
            module = ".".join(trial.file.relative_to(ROOT / "src").with_suffix("").parts)
            sys.meta_path.insert(0, Changed(module, path))
        os.chdir(ROOT)
        loaded = "ignore::pytest.PytestAssertRewriteWarning"  # Hypothesis is there already
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", loaded]
        status = int(pytest.main([*options, *trial.tests], plugins=[FailFast(), *plugins]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def _plain(**_: Any) -> Any:
    """Instead of Numba's decorator: the function as it is."""

    def decorate(function: Any) -> Any:
        function.py_func = function
        return function

    return decorate


def _wait_for(child: int, seconds: float) -> str:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            slow = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (
                signal.SIGXCPU,
                signal.SIGKILL,
            )
            return "timeout" if slow else "survived" if status == 0 else "killed"
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument(
        "--tests", nargs="+", help="what pytest is given, instead of what mutants.toml names"
    )
    parser.add_argument("--sample", type=int, help="try so many of the mutants")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument(
        "--only", type=int, nargs="+", help="the numbers of mutants, or of mistakes, to try"
    )
    parser.add_argument(
        "--quick",
        type=float,
        default=math.inf,
        metavar="SECONDS",
        help="of a processor for each mutant: only the quickest tests that call it",
    )
    parser.add_argument("--show", action="store_true", help="what the tests print")
    parser.add_argument("--list", action="store_true", help="show the mutants and stop")
    parser.add_argument(
        "--summary", action="store_true", help="no line for mutants that were caught"
    )
    parser.add_argument("--mistakes", action="store_true", help="try the mistakes of mutants.toml")
    given = parser.parse_args()
    plan = tomllib.loads(PLAN.read_text())
    for package in () if given.list else LARGE_PACKAGES:
        importlib.import_module(package)
    if given.mistakes:
        raise SystemExit(try_mistakes(plan, given.only, given.show))
    for file in given.files:
        try_file(file.resolve(), plan, given)


def try_mistakes(plan: dict[str, Any], only: Sequence[int] | None, show: bool) -> int:
    """How many of those that are spelled out were missed."""
    missed = 0
    for number, mistake in enumerate(plan["mistakes"]):
        if only is not None and number not in only:
            continue
        file = ROOT / mistake["file"]
        source = file.read_text()
        changed = source.replace(mistake["before"], mistake["after"])
        result = try_imported(Trial(file, source, mistake["tests"], show=show), changed)
        missed += result == "survived"
        print(f"{result:8}  {number:4d}  {mistake['file']}: {mistake['what']}", flush=True)
    return missed


def try_file(file: Path, plan: dict[str, Any], given: argparse.Namespace) -> None:
    source, name = file.read_text(), str(file.relative_to(ROOT))
    mutants = find_mutants(source)
    if given.only is not None:
        mutants = [mutant for mutant in mutants if mutant.number in given.only]
    elif given.sample is not None and given.sample < len(mutants):
        chosen = random.Random(given.seed).sample(mutants, given.sample)
        mutants = sorted(chosen, key=lambda mutant: mutant.number)
    if given.list:
        print(*mutants, sep="\n")
        return
    tests = given.tests or plan["tests"][name]
    harmless = {
        (h["place"], h["line"], h["change"]): h["why"]
        for h in plan.get("harmless", [])
        if h["file"] == name
    }
    results: Counter[str] = Counter()
    trial = Trial(file, source, tests, given.quick, given.show)
    for mutant, result in _results(trial, mutants):
        known = result == "survived" and mutant.key in harmless
        results["harmless" if known else result] += 1
        if not given.summary or (result == "survived" and not known):
            why = f"  ({harmless[mutant.key]})" if known else ""
            print(f"{'harmless' if known else result:8}  {mutant}{why}", flush=True)
    caught = results["killed"] + results["timeout"]
    print(
        f"{name}: {len(mutants)} made, {caught} caught, {results['harmless']} harmless, "
        f"{results['survived']} left",
        flush=True,
    )


def _results(trial: Trial, mutants: Sequence[Mutant]) -> Iterator[tuple[Mutant, str]]:
    waiting, chosen = {mutant.number: mutant for mutant in mutants}, list[str]()
    for number, result in try_in_place(trial, mutants, chosen):
        yield waiting.pop(number), result
    trial = replace(trial, tests=chosen)
    for mutant in waiting.values():
        yield mutant, try_imported(trial, mutant.source)


if __name__ == "__main__":
    main()
