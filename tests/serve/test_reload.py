"""Starting and reloading: what is answered meanwhile, and which releases are served afterwards."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from htf import InputError
from htf.serve.app import Service, Settings
from htf.serve.holdings import find_sources, load_holdings
from htf.serve.site import LONGEST_TITLE, MOST_LOGO, Brand, load_site, read_brand
from serving import client, process, run_async
from support import wait_for

SVG = (
    b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>alert(1)</script></svg>'
)
ENTITIES = "<!DOCTYPE svg [<!ENTITY a 'bb'>]><svg>&a;&a;</svg>"


def ask(service: Service, *paths: str) -> list[httpx.Response]:
    """Answers of a service without a server."""
    vars(service.log)["write"] = service.log._lines.clear

    async def ask_all() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=service)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as api:
            return [await api.get(path) for path in paths]

    found: list[httpx.Response] = run_async(ask_all())
    return found


def test_while_it_starts(files: dict[str, Path]) -> None:
    service = Service()
    health, listed, page, described = ask(
        service, "/healthz", "/api/releases", "/", "/openapi.json"
    )
    assert (health.status_code, health.json()) == (503, {"status": "starting"})
    assert listed.status_code == 503
    assert "starting" in listed.json()["detail"]
    assert {health.headers["retry-after"], listed.headers["retry-after"]} == {"1"}
    assert (page.status_code, described.status_code) == (200, 200)
    service.hold(load_holdings([files["city"]]))
    health, count = ask(service, "/healthz", "/api/releases/city/count")
    assert (health.status_code, health.json()) == (200, {"status": "ok"})
    assert count.status_code == 200
    service.close()


def ids_of(api: httpx.Client) -> dict[str, Any]:
    return {one["id"]: one["total"]["count"] for one in api.get("/api/releases").json()["releases"]}


def test_a_reload_under_load(files: dict[str, Path], tmp_path: Path) -> None:
    """One file is replaced, one is new, one is broken and one is gone; no request fails, and none gets a mixture."""
    folder = tmp_path / "releases"
    folder.mkdir()
    for name in ("one", "two", "three"):
        shutil.copy(files["city"], folder / f"{name}.parquet")
    statuses: list[int] = []
    stop = threading.Event()

    def keep_asking() -> None:
        with client(address) as own:
            while not stop.is_set():
                statuses.extend(
                    own.get(f"/api/releases/{path}").status_code
                    for path in ("one/count", "two", "one/tiles/9/213/193.mvt")
                )

    with process(folder, "--allow-not-private") as (address, started), client(address) as api:
        before = ids_of(api)
        assert [*before] == ["one", "three", "two"]
        askers = [threading.Thread(target=keep_asking) for _ in range(2)]
        for one in askers:
            one.start()
        shutil.copy(files["metres"], tmp_path / "new.parquet")
        os.replace(tmp_path / "new.parquet", folder / "one.parquet")
        shutil.copy(files["seeded"], folder / "four.parquet")
        (folder / "two.parquet").write_bytes(b"nothing of the kind")
        (folder / "three.parquet").unlink()
        started.send_signal(signal.SIGHUP)
        wait_for(lambda: "four" in ids_of(api))
        after = ids_of(api)
        wait_for(lambda: len(statuses) > 10)
        stop.set()
        for one in askers:
            one.join()
        assert api.get("/api/releases/three").status_code == 404
        assert api.get("/api/releases/two/download").status_code == 503
        started.terminate()
        log = [json.loads(line) for line in started.stderr.read().splitlines()]
    assert [*after] == ["four", "one", "two"]
    assert after["two"] == before["two"]
    assert after["one"] != before["one"]
    assert set(statuses) == {200}
    events = [line["event"] for line in log if line["event"] != "request"]
    assert events == ["load", "start", "reload-problem", "drop", "reload", "stop"]
    assert next(x["release"] for x in log if x["event"] == "drop") == "three"
    assert "two.parquet" in next(x["message"] for x in log if x["event"] == "reload-problem")


def test_what_did_not_change_is_not_read_again(files: dict[str, Path], tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        shutil.copy(files["city"], tmp_path / name / "city.parquet")
    paths = [tmp_path / "a", tmp_path / "b" / "city.parquet"]
    held = load_holdings(paths)
    assert [*held] == ["city", "city-2"]
    problems: list[str] = []
    again = load_holdings(paths, held, problems.append)
    assert [*again] == [*held]
    assert all(again[name] is held[name] for name in held)
    (tmp_path / "a" / "city.parquet").unlink()
    with pytest.raises(InputError, match=r"has no \.parquet file"):
        find_sources(paths)
    shutil.copy(files["seeded"], tmp_path / "b" / "city.parquet")
    refused = load_holdings(paths[1:], held, problems.append)
    assert refused["city-2"] is held["city-2"]
    assert "NOT PRIVATE" in problems[-1]


def test_a_server_goes_on_without_a_release(files: dict[str, Path], tmp_path: Path) -> None:
    """Whoever deletes the last file wants its release to be gone, and may bring another one."""
    folder = tmp_path / "releases"
    folder.mkdir()
    shutil.copy(files["city"], folder / "one.parquet")
    shutil.copy(files["city"], tmp_path / "two.parquet")
    with process(folder, tmp_path / "two.parquet") as (address, started), client(address) as api:
        assert [*ids_of(api)] == ["one", "two"]
        (folder / "one.parquet").unlink()
        (tmp_path / "two.parquet").unlink()
        started.send_signal(signal.SIGHUP)
        wait_for(lambda: not ids_of(api))
        assert api.get("/healthz").json() == {"status": "ok"}
        assert api.get("/api/releases/two/count").status_code == 404
        shutil.copy(files["city"], folder / "one.parquet")
        started.send_signal(signal.SIGHUP)
        wait_for(lambda: [*ids_of(api)] == ["one"])
        started.terminate()
        log = [json.loads(line) for line in started.stderr.read().splitlines()]
    dropped = [(x["release"], x["file"]) for x in log if x["event"] == "drop"]
    assert dropped == [("one", str(folder / "one.parquet")), ("two", str(tmp_path / "two.parquet"))]


@pytest.mark.parametrize("gone", ["the file", "the folder", "all in the folder"])
def test_what_is_deleted_is_dropped(files: dict[str, Path], tmp_path: Path, gone: str) -> None:
    folder = tmp_path / "releases"
    folder.mkdir()
    for path in (folder / "one.parquet", tmp_path / "two.parquet"):
        shutil.copy(files["city"], path)
    paths = [folder, tmp_path / "two.parquet"]
    held = load_holdings(paths)
    assert [*held] == ["one", "two"]
    if gone == "the file":
        (tmp_path / "two.parquet").unlink()
    elif gone == "the folder":
        shutil.rmtree(folder)
    else:
        (folder / "one.parquet").unlink()
    problems: list[str] = []
    assert [*load_holdings(paths, held, problems.append)] == [
        "one" if gone == "the file" else "two"
    ]
    assert len(problems) == 1
    assert str(paths[gone == "the file"]) in problems[0]


def test_new_files_get_ids_of_their_own(files: dict[str, Path], tmp_path: Path) -> None:
    """As at a fresh start, although two names make the same id."""
    shutil.copy(files["city"], tmp_path / "city.parquet")
    held = load_holdings([tmp_path])
    for name in ("a b", "a-b"):
        shutil.copy(files["city"], tmp_path / f"{name}.parquet")
    problems: list[str] = []
    found = load_holdings([tmp_path], held, problems.append)
    assert {name: one.path.stem for name, one in found.items()} == {
        "a-b": "a b",
        "a-b-2": "a-b",
        "city": "city",
    }
    assert not problems


def test_a_file_that_is_given_twice_stays_so(files: dict[str, Path]) -> None:
    paths = [files["city"], files["city"]]
    held = load_holdings(paths)
    assert [*held] == ["city", "city-2"]
    assert load_holdings(paths, held, pytest.fail) == held


def test_a_title_and_a_logo(tmp_path: Path) -> None:
    (tmp_path / "logo.svg").write_bytes(SVG)
    brand = read_brand('Bikes & "more" <b>', tmp_path / "logo.svg")
    service = Service({}, Settings(brand=brand))
    page, logo, described = ask(service, "/", "/static/logo.svg", "/openapi.json")
    assert 'name="htf-title" content="Bikes &amp; &quot;more&quot; &lt;b&gt;"' in page.text
    assert 'name="htf-logo" content="static/logo.svg?v=' in page.text
    assert described.json()["info"]["title"] == 'Bikes & "more" <b>'
    assert logo.content == SVG
    assert logo.headers["content-type"] == "image/svg+xml"
    assert "sandbox" in logo.headers["content-security-policy"]
    assert "script-src" not in logo.headers["content-security-policy"]
    service.close()
    assert b"htf-title" not in load_site(Brand())["index.html"].packed.plain


@pytest.mark.parametrize("before", ["", "\ufeff", '<?xml version="1.0" encoding="UTF-8"?>\n'])
def test_logos_in_utf_8_are_taken(tmp_path: Path, before: str) -> None:
    body = f"{before}<svg>\u00e9</svg>".encode()
    (tmp_path / "logo.svg").write_bytes(body)
    assert read_brand(None, tmp_path / "logo.svg").logo == ("logo.svg", body)


@pytest.mark.parametrize(
    ("title", "logo", "text"),
    [
        ("", None, "--title takes one line"),
        ("two\nlines", None, "--title takes one line"),
        ("x" * (LONGEST_TITLE + 1), None, "--title takes one line"),
        (None, b"GIF89a", "neither a PNG nor an SVG"),
        (None, b"<html></html>", "neither a PNG nor an SVG"),
        (None, b"<!DOCTYPE svg [<!ENTITY a 'b'>]><svg/>", "neither a PNG nor an SVG"),
        (None, b"<svg", "neither a PNG nor an SVG"),
        (None, ENTITIES.encode("utf-16"), "neither a PNG nor an SVG in UTF-8"),
        (None, ENTITIES.encode("utf-16-le"), "neither a PNG nor an SVG in UTF-8"),
        (None, b'<?xml version="1.0" encoding="latin-1"?><svg/>', "neither a PNG nor an SVG"),
        (None, b"<svg>\xe9</svg>", "neither a PNG nor an SVG in UTF-8"),
        (None, b" " * (MOST_LOGO + 1), "larger than 512 KB"),
    ],
)
def test_brands_that_are_refused(
    tmp_path: Path, title: str | None, logo: bytes | None, text: str
) -> None:
    path = tmp_path / "logo.svg"
    if logo is not None:
        path.write_bytes(logo)
    with pytest.raises(InputError, match=text):
        read_brand(title, None if logo is None else path)
    with pytest.raises(InputError, match="there is no file"):
        read_brand(None, tmp_path / "missing.png")
