"""`htf serve` of a series: each period is a release, and says which period it is."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import jsonschema
import numpy as np
import pytest

from htf import Domain, FrequencyMatrix, InputError, Recipe, Series
from htf.serve.holdings import find_sources, load_holdings
from serving import BOUNDS, client, process, running

MONTHS = ("2026-01", "2026-02")


def make_series(folder: Path) -> Series:
    domain = Domain.from_bounds(*BOUNDS, cells=16)
    recipe = Recipe(domain=domain, epsilon="0.5")
    made = Series.create(folder, recipe, "month", releases=12, total=1)
    for number, month in enumerate(MONTHS):
        counts = np.full((16, 16), 20 + 50 * number)
        made.add(FrequencyMatrix.from_dense(domain, counts), month, noise="fast")
    return made


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Series:
    """Two months, of which the first was corrected."""
    made = make_series(tmp_path_factory.mktemp("served") / "My City")
    domain = made.plan.domain
    corrected = FrequencyMatrix.from_dense(domain, np.full((16, 16), 40))
    made.add(corrected, MONTHS[0], noise="fast", correct=True)
    return made


@pytest.fixture(scope="module")
def api(series: Series, files: dict[str, Path]) -> Iterator[httpx.Client]:
    with running([files["city"], series.folder]) as (address, _), client(address) as found:
        yield found


def test_each_period_is_a_release(api: httpx.Client, series: Series) -> None:
    listed = api.get("/api/releases").json()["releases"]
    assert [one["name"] for one in listed] == ["city", "My City 2026-01", "My City 2026-02"]
    assert [one["id"] for one in listed] == ["city", "my-city-2026-01", "my-city-2026-02"]
    told = {"id": "my-city", "name": "My City"}
    assert [one["series"] for one in listed] == [None, *({**told, "period": m} for m in MONTHS)]
    for one in listed[1:]:
        release = series.release(one["series"]["period"])  # the correction, where there is one
        answer = api.get(f"/api/releases/{one['id']}/count?box=-30.1,39.95,-30,40").json()
        assert answer["count"] == release.count([-30.1, 39.95, -30, 40]).count[0]


def test_the_list_is_as_described(api: httpx.Client) -> None:
    document = api.get("/openapi.json").json()
    for form, path in (
        ("/api/releases", "/api/releases"),
        ("/api/releases/{id}", "/api/releases/my-city-2026-01"),
    ):
        answer = api.get(path)
        told = document["paths"][form]["get"]["responses"]["200"]
        schema = told["content"][answer.headers["content-type"]]["schema"]
        whole = {**schema, "components": document["components"]}
        jsonschema.validate(answer.json(), whole, cls=jsonschema.Draft202012Validator)


def test_a_correction_can_be_downloaded(api: httpx.Client, series: Series) -> None:
    answer = api.get("/api/releases/my-city-2026-01/download")
    assert answer.content == (series.folder / "2026-01.2.parquet").read_bytes()


def test_two_series_of_one_name_are_told_apart(tmp_path: Path) -> None:
    folders = [tmp_path / one / "city" for one in ("a", "b")]
    for folder in folders:
        make_series(folder)
    found = [one.series for one in find_sources(folders)]
    assert [one and one["id"] for one in found] == ["city", "city", "city-2", "city-2"]


def test_a_series_keeps_its_id_when_another_is_withdrawn(tmp_path: Path) -> None:
    """Its new periods would otherwise be in a series of their own."""
    folders = [tmp_path / one / "city" for one in ("a", "b")]
    made = [make_series(folder) for folder in folders]
    held = load_holdings(folders)
    shutil.rmtree(folders[0])
    counts = FrequencyMatrix.from_dense(made[1].plan.domain, np.full((16, 16), 30))
    made[1].add(counts, "2026-03", noise="fast")
    problems: list[str] = []
    found = load_holdings(folders, held, problems.append)
    assert [one.about["series"]["id"] for one in found.values()] == ["city-2"] * 3
    assert len(problems) == 1


def test_an_empty_series_is_refused(tmp_path: Path) -> None:
    domain = Domain.from_bounds(*BOUNDS, cells=16)
    recipe = Recipe(domain=domain, epsilon=1)
    Series.create(tmp_path / "empty", recipe, "month", releases=12)
    with pytest.raises(InputError, match="has no release yet: add one with `htf series add`"):
        find_sources([tmp_path / "empty"])


def test_the_command_takes_a_folder(series: Series) -> None:
    with process(series.folder) as (address, _), client(address) as found:
        assert found.get("/api/releases").json()["number"] == 2


def test_serving_a_series_loads_nothing_sensitive(series: Series) -> None:
    """A series can also be added to, but not by the server."""
    code = (
        "import sys; from pathlib import Path; from htf.serve.app import Service\n"
        "from htf.serve.holdings import load_holdings\n"
        f"Service(load_holdings([Path({str(series.folder)!r})])).close()\n"
        "print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert "htf.series.folder" in loaded
    reach = (
        "publication",
        "curator.frequency",
        "curator.curator",
        "curator.cells",
        "curator.noise",
    )
    assert not {f"htf.{name}" for name in reach} & loaded
