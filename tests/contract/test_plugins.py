"""Mechanisms of other packages: found by their entry points, held to the same contract, and unable to
take a name that is in use or to break what is not theirs."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import htf
from htf import mechanisms
from htf.base import plugins
from htf.cli.main import run
from htf.errors import InputError
from htf.mechanisms import Histogram, make_mechanism, refused, registry

ROOT = Path(__file__).parents[2]
# The example that CONTRIBUTING shows: it must be a mechanism that works.
GOOD = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.S)[0]


GREET = """
import click

@click.command()
@click.option("--name", default="you")
def greet(name):
    "Greet whoever is there."
    click.echo(f"good day, {name}")
"""


def install(
    folder: Path, package: str, source: str, offers: dict[str, str], group: str = "htf.mechanisms"
) -> None:
    """A package as an installer leaves it: a module, and a dist-info folder that names its entry points."""
    module = package.replace("-", "_")
    (folder / f"{module}.py").write_text(source)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    entries = [f"{name} = {module}:{inner}" for name, inner in offers.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *entries, ""]))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path of modules, which nothing remembers afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    forget()
    yield folder
    for path in folder.glob("*.py"):  # no other module: a class that is loaded twice is two classes
        sys.modules.pop(path.stem, None)
    forget()


def forget() -> None:
    importlib.invalidate_caches()
    plugins.offers.cache_clear()
    mechanisms._offered.cache_clear()


def run_with(site: Path, *words: str) -> str:
    """Python in a new process, where the packages of the folder are installed."""
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [sys.executable, "-m", *words],
        env={**os.environ, "PYTHONPATH": path},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_a_mechanism_of_another_package_is_found(site: Path) -> None:
    own = list(registry())
    install(site, "htf-halves", GOOD, {"halves": "Halves"})
    forget()
    assert set(registry()) == {*own, "halves"}
    assert make_mechanism("halves", label="both").parameters() == {"label": "both"}
    assert refused() == {}
    assert "Two halves of the map" in run_with(site, "htf", "mechanisms")


def test_it_keeps_the_contract(site: Path) -> None:
    """The contract tests find it in the registry, like any other."""
    install(site, "htf-halves", GOOD, {"halves": "Halves"})
    files = [
        f"tests/contract/test_{name}.py" for name in ("mechanisms", "noise_rates", "wrong_types")
    ]
    told = run_with(site, "pytest", "-p", "no:cacheprovider", "-k", "halves", *files)
    assert int(re.findall(r"(\d+) passed", told)[-1]) > 20
    assert "skipped" not in told


def test_its_docstring_is_true_about_the_budget(site: Path) -> None:
    install(site, "htf-halves", GOOD, {"halves": "Halves"})
    forget()
    assert "each counted with the whole budget" in registry()["halves"].describe()["summary"]
    domain = htf.Domain.from_bounds(0, 0, 1, 1, cells=4)
    matrix = htf.FrequencyMatrix.from_dense(domain, np.full((4, 4), 1000))
    release = htf.publish(matrix, 1, "halves", noise="seeded:1")
    assert release.measurements.epsilon.tolist() == [release.epsilon.units] * 2
    assert release.spent == release.epsilon
    assert abs(release.estimates - 8000).max() < 50


def test_facts_that_are_numbers_of_numpy_can_be_saved(tmp_path: Path) -> None:
    """Else the release would be lost with its epsilon spent."""
    told = {"height": np.int64(3), "grid": np.array([2, 1]), "by": {"level": (np.float64(0.5),)}}
    one = np.zeros(1)
    facts = Histogram(one.astype(int), one, one, "last-count", told).facts
    domain = htf.Domain.from_bounds(0, 0, 1, 1, cells=4)
    matrix = htf.FrequencyMatrix.from_dense(domain, np.full((4, 4), 1000))
    release = replace(htf.publish(matrix, 1, "singular", noise="seeded:1"), facts=facts)
    release.save(tmp_path / "out.parquet")
    loaded = htf.Release.load(tmp_path / "out.parquet")
    assert loaded.facts == {"height": 3, "grid": [2, 1], "by": {"level": [0.5]}}


@pytest.mark.parametrize(
    ("source", "inner", "says"),
    [
        ("import nowhere_to_be_found", "Halves", "ModuleNotFoundError: No module named"),
        ("raise SystemExit('stop')", "Halves", "SystemExit: stop"),
        (GOOD, "Missing", "AttributeError"),
        ("Halves = 3", "Halves", "must be a subclass of htf.mechanisms.Mechanism"),
        ("from htf.mechanisms import Mechanism as Halves", "Halves", "must be a subclass"),
        (
            GOOD.replace('name = "halves"', 'name = "other"'),
            "Halves",
            "'halves' of its entry point",
        ),
        (GOOD.replace('citation = "an example"', ""), "Halves", "a citation"),
        (GOOD + "\nHalves.__doc__ = None\n", "Halves", "needs a docstring"),
    ],
)
def test_a_broken_package_leaves_the_others_alone(
    site: Path, source: str, inner: str, says: str
) -> None:
    own = dict(registry())
    install(site, "htf-halves", source, {"halves": inner})
    forget()
    assert registry() == own
    assert "htf" in own
    with pytest.raises(InputError, match=r"'halves' cannot be used: .*'htf-halves'") as error:
        make_mechanism("halves")
    assert says in str(error.value)
    make_mechanism("htf")


def test_a_package_is_loaded_only_when_its_mechanism_is_asked_for(
    site: Path, tmp_path: Path
) -> None:
    """Neither another mechanism nor a file of somebody else makes it run."""
    install(site, "htf-halves", GOOD, {"halves": "Halves"})
    forget()
    domain = htf.Domain.from_bounds(0, 0, 1, 1, cells=4)
    matrix = htf.FrequencyMatrix.from_dense(domain, np.full((4, 4), 1000))
    release = htf.publish(matrix, 1, "singular", noise="seeded:1")
    release.save(tmp_path / "theirs.parquet")
    hostile = replace(htf.Release.load(tmp_path / "theirs.parquet"), mechanism="halves")
    assert all(check.passed for check in htf.verify(hostile))
    assert "htf_halves" not in sys.modules
    make_mechanism("halves")
    assert "htf_halves" in sys.modules


def test_a_package_cannot_replace_how_releases_are_verified(site: Path) -> None:
    lenient = "\nHalves.estimators = {'last-count': lambda release: (release.estimates, release.scales)}\n"
    install(site, "htf-halves", GOOD + lenient, {"halves": "Halves"})
    forget()
    domain = htf.Domain.from_bounds(0, 0, 1, 1, cells=4)
    matrix = htf.FrequencyMatrix.from_dense(domain, np.full((4, 4), 1000))
    release = htf.publish(matrix, 1, "halves", noise="seeded:1")
    doctored = replace(release, estimates=release.estimates + 1)
    assert [check.name for check in htf.verify(doctored) if not check.passed] == ["sums"]


def test_the_list_of_mechanisms_tells_of_a_broken_package(
    site: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    install(site, "htf-halves", "import nowhere_to_be_found", {"halves": "Halves"})
    forget()
    assert run(["mechanisms", "--json"]) == 0
    told = capfd.readouterr()
    assert "halves cannot be used: the package 'htf-halves' could not load it" in told.err
    assert "halves" not in {mechanism["name"] for mechanism in json.loads(told.out)}


def test_a_name_that_is_in_use_is_refused(site: Path) -> None:
    install(site, "htf-thief", GOOD.replace('"halves"', '"htf"'), {"htf": "Halves"})
    forget()
    both = r"htf-dp itself and the package 'htf-thief' have a mechanism of this name\. Uninstall"
    with pytest.raises(InputError, match=both):
        make_mechanism("htf")
    assert registry()["htf"].__module__ == "htf.mechanisms.htf"  # so that releases can be verified
    assert "htf_thief" not in sys.modules
    make_mechanism("htf-paper")


def test_two_packages_with_one_name_are_both_refused(site: Path) -> None:
    for package in ("htf-one", "htf-two"):
        install(site, package, GOOD, {"halves": "Halves"})
    forget()
    assert "halves" not in registry()
    with pytest.raises(InputError, match="the package 'htf-one' and the package 'htf-two' have"):
        htf.make_mechanism("halves")


def said(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    forget()
    code = run(list(words))
    told = capfd.readouterr()
    return code, told.out + told.err


def test_a_command_of_another_package_is_found(
    site: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    install(site, "htf-greet", GREET, {"greet": "greet"}, "htf.commands")
    assert said(capfd, "greet", "--name", "all") == (0, "good day, all\n")
    assert re.search(r"greet +Greet whoever is there", said(capfd, "--help")[1])


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            "import nowhere_to_be_found",
            "could not load it from htf_greet:greet (ModuleNotFoundError",
        ),
        ("raise SystemExit('stop')", "SystemExit: stop"),
        ("greet = 3", "htf_greet:greet of the package 'htf-greet' must be a click.Command"),
    ],
)
def test_a_broken_command_is_named_where_it_is_used(
    site: Path, capfd: pytest.CaptureFixture[str], source: str, reason: str
) -> None:
    install(site, "htf-greet", source, {"greet": "greet"}, "htf.commands")
    for words in (["greet"], ["greet", "--help"], ["greet", "--name", "all"]):
        code, told = said(capfd, *words)
        assert code == 2
        assert "Error: the command 'greet' cannot be used: " in told
        assert reason in told
    code, told = said(capfd, "--help")
    assert code == 0
    assert re.search(r"greet +Cannot be used", told)
    assert said(capfd, "info", "--help")[0] == 0


def test_a_command_with_a_name_that_is_in_use_is_refused(
    site: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    install(site, "htf-thief", GREET, {"verify": "greet"}, "htf.commands")
    both = "htf-dp itself and the package 'htf-thief' have a command of this name. Uninstall"
    code, told = said(capfd, "verify", "release.parquet")
    assert (code, both in told) == (2, True)
    install(site, "htf-greet", GREET, {"evaluate": "greet"}, "htf.commands")
    code, told = said(capfd, "evaluate")
    assert (code, "the package 'htf-dp-bench' and the package 'htf-greet' have" in told) == (
        2,
        True,
    )
    assert "htf_thief" not in sys.modules
    assert "htf_greet" not in sys.modules


def test_only_the_package_of_the_command_is_loaded(
    site: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    install(site, "htf-greet", GREET, {"greet": "greet"}, "htf.commands")
    assert said(capfd, "mechanisms", "--help")[0] == 0
    assert "htf_greet" not in sys.modules
