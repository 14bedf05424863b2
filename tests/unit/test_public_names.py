"""The public names: every type that their signatures name is public too, each is explained, and each
example in a docstring runs.

Names are those of the page on Python: `htf.__all__`, and types with their modules. The example of a method goes on from that of its class.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import htf
from htf.curator.measurements import Measurement
from htf.curator.noise import NoiseSource
from htf.mechanisms import Histogram, Mechanism, Window
from htf.privacy.activity import Activity
from htf.privacy.purchases import PURCHASES
from promised import promised

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# What only the Curator calls, with what only it has.
BEHIND_THE_WALL = {"Measurement.answer"}
# How answers are computed. These are not promised: they may change from one version to the next.
INTERNAL = {"MeasurementTable.tree_counts", "Release.derived", "DistinctCounts.division"}
# How a release checks and shows what it bought, and how a recipe is taken apart. Not promised either.
INTERNAL |= {
    f"{kind.__name__}.{name}"
    for kind in PURCHASES
    for name in ("check_map", "sentences", "known", "rows")
}
INTERNAL |= {f"Recipe.{name}" for name in ("prepare", "reading", "made_by")}


def public() -> dict[str, Any]:
    """All public names with their objects, and the public methods and properties of classes."""
    found: dict[str, Any] = {}
    for name, value in sorted(promised().items()):
        found[name] = value
        if inspect.isclass(value) and not issubclass(value, BaseException):
            found |= {
                f"{name}.{inner}": thing
                for inner, thing in vars(value).items()
                if not inner.startswith("_")
                and is_ours(thing)
                and f"{name}.{inner}" not in INTERNAL
            }
    return found


def is_ours(thing: Any) -> bool:
    return isinstance(thing, (classmethod, property, cached_property, types.FunctionType))


def function_of(thing: Any) -> Callable[..., Any]:
    """What has the signature."""
    if isinstance(thing, classmethod):
        return thing.__func__
    if isinstance(thing, property):
        assert thing.fget is not None
        return thing.fget
    if isinstance(thing, cached_property):
        return thing.func
    found: Callable[..., Any] = thing.__init__ if inspect.isclass(thing) else thing
    return found


def is_property(thing: Any) -> bool:
    return isinstance(thing, (property, cached_property))


class Everything(dict[str, Any]):
    """The names of a module, those that it imports for type checking only included."""

    def __init__(self, module: str) -> None:
        known = sys.modules[module]
        super().__init__(vars(known))
        source = inspect.getsource(known)
        for block in re.findall(r"^if TYPE_CHECKING:\n((?:    .*\n|\n)*)", source, re.M):
            exec(inspect.cleandoc(block), self)


def types_in(annotation: Any) -> Iterator[type]:
    """All classes that an annotation is made of, also within aliases and callables."""
    if isinstance(annotation, type) and not typing.get_args(annotation):
        yield annotation
    for part in (typing.get_origin(annotation), *typing.get_args(annotation)):
        if isinstance(part, list):
            for inner in part:
                yield from types_in(inner)
        elif part is not None:
            yield from types_in(part)


def named_types(thing: Any) -> set[type]:
    """Types of ours that a signature or the fields of a class name."""
    if inspect.isclass(thing) and issubclass(thing, BaseException):
        return set()
    function = function_of(thing)
    if function is object.__init__:
        return set()
    hints = dict(inspect.get_annotations(function))
    if inspect.isclass(thing):
        hints |= inspect.get_annotations(thing)
    found = set()
    for name, hint in hints.items():
        if not name.startswith("_"):
            value = eval(hint, Everything(function.__module__)) if isinstance(hint, str) else hint
            found |= set(types_in(value))
    return {one for one in found if one.__module__.partition(".")[0] == "htf"}


def test_signatures_name_public_types_only() -> None:
    for name, thing in public().items():
        secret = {one.__name__ for one in named_types(thing)} - set(promised())
        if name in BEHIND_THE_WALL:
            assert secret == {"ExactCells"}, name
        else:
            assert secret == set(), f"{name} names {secret}: make it public, or the method private"


def test_a_secret_type_would_be_seen() -> None:
    from htf.curator.cells import ExactCells

    assert named_types(Measurement.answer) == {ExactCells, NoiseSource}
    assert named_types(Mechanism.build) == {Window, Histogram, Measurement}
    assert named_types(htf.publish) > {htf.BudgetFile, htf.Release, Activity}


def test_every_public_name_is_explained() -> None:
    """What it is; for functions also their parameters and result; and an example."""
    assert [fault for name, thing in public().items() for fault in unexplained(name, thing)] == []


def test_a_missing_explanation_would_be_seen() -> None:
    def bare(left: int) -> int:
        """Only a sentence."""
        return left

    assert [fault.partition(" ")[2] for fault in unexplained("bare", bare)] == [
        "has no example",
        "explains [], but takes ['left']",
        "does not say what it returns, or says so and returns nothing",
    ]
    bare.__doc__ = None
    assert "bare has no docstring" in unexplained("bare", bare)


def unexplained(name: str, thing: Any) -> Iterator[str]:
    told = inspect.getdoc(thing) or ""
    if not told.strip():
        yield f"{name} has no docstring"
    if is_property(thing) or name in BEHIND_THE_WALL:
        return
    if "Examples\n--------\n>>>" not in told:
        yield f"{name} has no example"
    if not inspect.isclass(thing):
        signature = inspect.signature(function_of(thing))
        given = [p for p in signature.parameters if p not in ("self", "cls")]
        if parameters(told) != given:
            yield f"{name} explains {parameters(told)}, but takes {given}"
        gives = signature.return_annotation not in ("None", "NoReturn")
        if ("Returns\n-------\n" in told) != gives:
            yield f"{name} does not say what it returns, or says so and returns nothing"


def parameters(told: str) -> list[str]:
    """The names in the section of parameters."""
    found = re.search(r"Parameters\n-+\n(.*?)(?:\n\n[A-Z]\w+\n---|\Z)", told, re.S)
    if found is None:
        return []
    heads = [line for line in found[1].splitlines() if line and not line.startswith(" ")]
    return [name.strip(" *") for head in heads for name in head.split(" : ")[0].split(",")]


# Their examples change the object, so each method's starts from a new one.
CHANGING = {"BudgetFile", "RegionTree"}
EXAMPLES = sorted(n for n, thing in public().items() if ">>>" in (thing.__doc__ or ""))


@pytest.mark.parametrize("owner", sorted({name.partition(".")[0] for name in EXAMPLES}))
def test_examples_run(owner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of each method goes on from that of its class, and from no other method's."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    run_example(owner, names)
    for name in EXAMPLES:
        if name.startswith(f"{owner}."):
            if owner in CHANGING:
                (tmp_path / name).mkdir()
                monkeypatch.chdir(tmp_path / name)
                run_example(owner, names := {})
            run_example(name, dict(names))


def run_example(name: str, names: dict[str, Any]) -> None:
    """In these names, which it adds to."""
    told = doctest.DocTestParser().get_doctest(
        inspect.getdoc(public()[name]) or "", names, name, None, None
    )
    text: list[str] = []
    ran = doctest.DocTestRunner(optionflags=OPTIONS).run(told, out=text.append, clear_globs=False)
    names |= told.globs
    assert ran.failed == 0, "".join(text)


def test_what_authors_of_mechanisms_need_is_in_one_place() -> None:
    module = importlib.import_module("htf.mechanisms")
    assert {"Histogram", "Mechanism", "Steps", "Window", "parameter"} <= set(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None
