"""The page behind a real proxy with a prefix: it is drawn, counts, and describes its API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from htf.query.answer_texts import show_count
from serving import nginx, running

PROXIES: dict[str, tuple[str, Any]] = {  # what nginx does with the prefix, and settings
    "stripped": ("location /maps/ {{ proxy_pass {address}/; }}", {}),
    "kept": ("location /maps {{ proxy_pass {address}; }}", {"root_path": "/maps"}),
}


@pytest.mark.parametrize("kind", PROXIES)
def test_the_page_behind_nginx(
    kind: str, folder: Path, releases: Any, tmp_path: Path, window: Any
) -> None:
    location, settings = PROXIES[kind]
    names = [folder / "east.parquet", folder / "hours.parquet"]
    with (
        running(names, allow_not_private=True, **settings) as (address, _),
        nginx(tmp_path, location.format(address=address)) as proxy,
    ):
        one = window()
        page = one.open(f"{proxy}/maps#r=east&b=4.2,52.2,4.8,52.4")  # the way to /maps/ keeps it
        page.wait_for_selector("#answer[aria-busy=false] .row-count")
        count = releases["east"].count([4.2, 52.2, 4.8, 52.4]).count[0]
        assert page.inner_text("#answer .row-count") == show_count(count)
        page.wait_for_function("htf.panels[0].tiles.at({ lng: 4.6, lat: 52.36 })")  # it is drawn
        assert len(page.query_selector_all("#first option")) == 2
        with page.expect_download() as saved:
            page.click("#save-release")
        assert Path(saved.value.path()).read_bytes() == names[0].read_bytes()
        own = [url for url in one.requests if url.startswith("http")]
        assert all(url.startswith(f"{proxy}/maps") for url in own), own
