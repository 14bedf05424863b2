"""The line between sensitive and public, read off the imports; and the names we promise."""

from __future__ import annotations

import ast
import gc
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import htf
import htf_bench
from support import run_without_bench

SOURCE = Path(htf.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
BENCH = Path(htf_bench.__file__).parent

# What holds or computes exact values, or draws noise.
SENSITIVE = {
    "htf.curator.frequency",
    "htf.ingest",
    "htf.curator.cells",
    "htf.curator.kernels",
    "htf.curator.curve_kernels",
    "htf.curator.curator",
    "htf.curator.contributions",
    "htf.curator.payment",
    "htf.curator.distinct",
    "htf.curator.clipping",
    "htf.recipes.make",
}
# In htf.ingest, but only the declared options of reading: it opens nothing.
OPTIONS_OF_READING = {"htf.ingest.reading"}
NOISE = {"htf.curator.noise", "htf.curator.sampler", "opendp", "secrets", "random"}
# Who may: the curator's folder, what leads data to it, the edges that start it, forecasts of made-up data.
MAY_SEE_DATA = (
    "curator/",
    "ingest/",
    "forecasts/",
    "publication.py",
    "recipes/",
    "cli/check.py",
    "cli/demo.py",
)
MAY_NAME_NOISE = ("curator/", "publication.py", "verification.py", "recipes/make.py")
RANDOM_NAMES = (  # of temporary folders, of unfinished files, and of entries
    "base/leftovers.py",
    "files.py",
    "privacy/budget.py",
    "cli/making.py",
)


COMMANDS = (SOURCE / "cli", BENCH / "cli")
PAGE = (Path(__file__).parents[2] / "docs/architecture.md").read_text()
LISTS_COMMANDS = "cli/main.py"


@cache
def parsed(path: Path) -> ast.Module:
    """Python 3.11 fails here if a collection of garbage in between runs much code of its own."""
    gc.disable()
    try:
        return ast.parse(path.read_text())
    finally:
        gc.enable()


@cache
def homes() -> dict[str, str]:
    """Where each public name is defined, as the stub of `htf` says."""
    taken = [
        node for node in parsed(SOURCE / "__init__.pyi").body if isinstance(node, ast.ImportFrom)
    ]
    return {one.name: f"{node.module}.{one.name}" for node in taken for one in node.names}


@cache
def imports(path: Path) -> set[str]:
    """Modules imported at run time; what is imported for type checking only is no path. A public name that is taken as
    `htf.Name` is imported from where it is defined; `htf` in any other use leads to everything."""
    found: set[str] = set()
    waiting: list[ast.AST] = [parsed(path)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name != "htf" or alias.asname}
        if isinstance(node, ast.Name) and node.id == "htf":
            found.add("htf")
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "htf":
            found.add(homes().get(node.attr, "htf"))
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {node.module} - {"htf"}  # the names above say what is taken from it
        waiting += ast.iter_child_nodes(node)
    return found


def touches(found: set[str], forbidden: set[str]) -> set[str]:
    return {f for f in found for bad in forbidden if f == bad or f.startswith(bad + ".")}


def place(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def test_only_the_curators_side_reaches_data_and_noise() -> None:
    assert [fault for path in MODULES for fault in trespasses(place(path), imports(path))] == []


def trespasses(name: str, found: set[str]) -> Iterator[str]:
    if "htf" in found:
        yield f"{name} takes `htf`, whose names lead to everything, and would not be seen here"
    if not name.startswith(MAY_SEE_DATA):
        reached = touches(found, SENSITIVE) - touches(found, OPTIONS_OF_READING)
        yield from (f"{name} reaches data by {one}" for one in reached)
    if not name.startswith(MAY_NAME_NOISE):
        allowed = {"secrets"} if name in RANDOM_NAMES else set()
        yield from (f"{name} reaches noise by {one}" for one in touches(found, NOISE) - allowed)


def defines_command(path: Path) -> bool:
    """Whether a decorator of a function makes a command or a group of it."""
    functions = (node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef))
    decorators = (one for node in functions for one in node.decorator_list)
    return any(
        name.split("(")[0].endswith((".command", ".group")) for name in map(ast.unparse, decorators)
    )


def commands() -> dict[str, Path]:
    """The modules that define commands, by name; but for the one that lists them."""
    return {
        ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts): path
        for folder in COMMANDS
        for path in sorted(folder.glob("*.py"))
        if defines_command(path) and not path.as_posix().endswith(LISTS_COMMANDS)
    }


def test_no_command_imports_another() -> None:
    found = commands()
    assert {"htf.cli.release", "htf.cli.series", "htf_bench.cli.paper"} <= set(found)
    assert [
        f"{name} imports {other}"
        for name, path in found.items()
        for other in touches(imports(path), set(found) - {name})
    ] == []


# From the foundation to the roof. A folder imports from those before it, and from itself.
LAYERS = (
    "errors", "base", "files", "frame", "synthetic", "privacy", "estimation", "release", "curator", "mechanisms",
    "publication", "verification", "query", "ingest", "recipes", "series", "maps", "export", "serve", "forecasts", "report", "cli", "__main__",
)  # fmt: skip
# Imports upwards, each within a function, and why. A module named here must need its exception.
UPWARD = {
    # Release.count, .plot and .sample: methods that people expect on the record itself.
    ("release/release.py", "query"),
    ("release/release.py", "maps"),
    ("release/release.py", "export"),
    # Whether a file that would be written over is a release is known where releases are read.
    ("files.py", "release"),
    # The budget file writes the releases it was charged for, and checks those that it is told of.
    ("privacy/budget.py", "release"),
    ("privacy/budget.py", "verification"),
}


def layer(name: str) -> str:
    """The folder or the loose module of `htf.folder.module` or `folder/module.py`."""
    return name.removeprefix("htf.").removesuffix(".py").replace("/", ".").split(".")[0]


def upward(name: str, found: set[str]) -> set[tuple[str, str]]:
    """What the module imports from layers above its own."""
    own = LAYERS.index(layer(name))
    others = {layer(f) for f in found if f.startswith("htf.")}
    return {(name, other) for other in others if LAYERS.index(other) > own}


def test_folders_import_only_downwards() -> None:
    """Imports within functions included; those for type checking only are no paths."""
    found = {
        pair
        for path in MODULES
        if place(path) != "__init__.py"  # which leads to all public names
        for pair in upward(place(path), imports(path))
    }
    assert found == UPWARD


def test_the_page_lists_the_folders_in_this_order() -> None:
    table = PAGE.partition("\n## Folders\n")[2].partition("\n\nA grid")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = [layer(name) for cell in rows for name in re.findall(r"`([\w./]+)`", cell)]
    assert [*named, "__main__"] == [*LAYERS]


def test_an_upward_import_would_be_seen() -> None:
    assert upward("frame/tree.py", {"htf.privacy.epsilon", "htf.errors", "numpy"}) == {
        ("frame/tree.py", "privacy")
    }
    assert upward("cli/main.py", {"htf.frame.tree", "htf.verification"}) == set()
    assert set(map(layer, map(place, MODULES))) <= {*LAYERS, "__init__"}


def test_few_modules_are_loose() -> None:
    loose = {path.name for path in SOURCE.glob("*.py")}
    assert loose == {
        "__init__.py", "__main__.py", "errors.py", "files.py", "publication.py", "verification.py",
    }  # fmt: skip


ALLOWED_RIVALS = {"htf_bench.grids", "htf_bench.mechanisms"}


def test_mechanisms_see_only_the_public_side() -> None:
    allowed = {
        "htf.base", "htf.curator.window", "htf.errors", "htf.estimation.agreeing", "htf.estimation.hierarchy",
        "htf.estimation.homogeneous", "htf.estimation.least_squares", "htf.estimation.noise_law", "htf.estimation.sharp", "htf.frame", "htf.mechanisms", "htf.privacy.epsilon",
    }  # fmt: skip
    for path in (*SOURCE.glob("mechanisms/*.py"), *BENCH.glob("mechanisms/*.py")):
        ours = {f for f in imports(path) if f.startswith("htf")}
        assert ours == touches(ours, {*allowed, *ALLOWED_RIVALS}), path
        assert "numpy.random" not in path.read_text(), path


def test_the_library_does_without_the_bench() -> None:
    """The bench imports the library, never the other way round."""
    assert [place(path) for path in MODULES if touches(imports(path), {"htf_bench"})] == []
    names = [".".join(["htf", *path.relative_to(SOURCE).with_suffix("").parts]) for path in MODULES]
    code = "import importlib; [importlib.import_module(name) for name in sys.argv[1:]]"
    ran = run_without_bench(code, *(name for name in names if not name.endswith("__main__")))
    assert ran.returncode == 0, ran.stderr
    assert run_without_bench("import htf_bench.specs").returncode != 0  # it would be seen


def test_the_walls_are_where_this_test_thinks() -> None:
    """The check can fail: the modules that may reach data do, and a trespasser would be seen."""
    for name, wall in (
        ("curator/curator.py", SENSITIVE),
        ("publication.py", NOISE),
        ("curator/noise.py", NOISE),
    ):
        assert touches(imports(SOURCE / name), wall)
        assert len(list(trespasses("query/boxes.py", imports(SOURCE / name)))) > 0
    assert list(trespasses("query/boxes.py", {"htf", "htf.frame"})) != []
    assert list(trespasses("cli/query.py", {homes()["read_points"]})) != []


def test_exact_values_are_named_exact() -> None:
    """Attributes that hold exact counts carry the word, and only the sensitive side says it."""
    found = {
        f"{place(path)}: {node.attr}"
        for path in MODULES
        if not place(path).startswith(MAY_SEE_DATA)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("exact")
        and ast.unparse(node) != "numerals.exact"  # which reads a decimal without rounding
    }
    assert found == set()


MOST_STEPS = 14
TRACES = PAGE.partition("\n## From a command to its result\n")[2].partition("\n## ")[0]


def defined(path: Path) -> set[str]:
    """Functions and classes of a module, and methods as `Class.method`."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    own = [node for node in parsed(path).body if isinstance(node, kinds)]
    inner = {
        f"{node.name}.{one.name}" for node in own for one in node.body if isinstance(one, kinds)
    }
    return {node.name for node in own} | inner


def test_the_traces_of_the_page_name_what_there_is() -> None:
    parts = TRACES.split("\n### ")[1:]
    assert len(parts) == 3
    for part in parts:
        steps = re.findall(r"^(\d+)\. (.*)$", part, re.MULTILINE)
        assert [int(number) for number, _ in steps] == [*range(1, len(steps) + 1)]
        assert 1 < len(steps) <= MOST_STEPS
        found = [re.findall(r"`([\w/]+\.py)` `([\w.]+)`", words) for _, words in steps]
        assert all(found)
        named = [pair for pairs in found for pair in pairs]
        assert [pair for pair in named if pair[1] not in defined(SOURCE / pair[0])] == []


def test_the_table_of_changes_names_files_that_exist() -> None:
    section = PAGE.partition("\n## Where does a new … go\n")[2]
    named = set(re.findall(r"`(\w+(?:/\w+)*\.py)`", section))
    assert "cli/main.py" in named
    assert [name for name in sorted(named) if not (SOURCE / name).is_file()] == []


MOST_NAMES = 45
NAMES = """
Axis BudgetError BudgetFile Curator Domain Epsilon FrequencyMatrix HtfError InputError Layer Names PeopleByBox Protection
Question Recipe RecordsPerPerson Release Series SeriesPlan ToldApart best_max_records check_points draw grid_zones h3_zones
inside_zones make_mechanism measure_activity measure_clipped measure_distinct publish read_people_by_box read_points
read_prior read_records_per_person read_zones synthetic_city synthetic_trips synthetic_visits synthetic_zones verify
write_report
"""


def test_public_names() -> None:
    """Each as one would type it. Types of results are named with their modules."""
    assert sorted(htf.__all__) == NAMES.split()
    assert len(htf.__all__) <= MOST_NAMES
    for name in htf.__all__:
        assert getattr(htf, name).__name__ == name
    assert set(htf.__all__) <= set(dir(htf))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        htf.nonsense  # type: ignore[attr-defined]  # noqa: B018


def test_importing_is_light() -> None:
    """`import htf` and `htf --help`, which loads the commands of the bench too, load none of the heavy packages."""
    heavy = [
        "numpy",
        "numba",
        "duckdb",
        "pyarrow",
        "opendp",
        "matplotlib",
        "pandas",
        "polars",
        "geopandas",
        "rich",
    ]
    for start in ("import htf", "from htf.cli.main import run; run(['--help'])"):
        code = f"{start}; import sys; print([m for m in {heavy} if m in sys.modules])"
        ran = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert ran.stdout.splitlines()[-1] == "[]"
    assert "Compare mechanisms on exact data" in ran.stdout


def test_functions_are_short() -> None:
    """A function that needs more than a screen is two functions. (Compiled loops are one by need.)

    Docstrings do not count: those of public names have sections and examples.
    """
    too_long = [
        f"{path}: {node.name}"
        for path in (*MODULES, *BENCH.rglob("*.py"))
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef)
        and length(node) > (110 if path.name.endswith("kernels.py") else 48)
    ]
    assert too_long == []


def length(node: ast.FunctionDef) -> int:
    """Lines after the first, without the docstring."""
    lines = (node.end_lineno or 0) - node.lineno
    if ast.get_docstring(node) is not None:
        lines -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
    return lines
