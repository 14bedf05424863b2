"""The vector tiles of the server as MapLibre reads them, beside what the page reads with its own few lines."""

from __future__ import annotations

from typing import Any

import pytest

LOAD = """
async ([token, name]) => {
    const map = htf.maps[0];
    map.setTransformRequest((url) => ({ url, headers: { Authorization: `Bearer ${token}` } }));
    const tiles = [`${location.origin}/api/releases/${name}/tiles/{z}/{x}/{y}.mvt`];
    map.addSource("tested", { type: "vector", tiles, minzoom: 8, maxzoom: 10 });
    const paint = { "fill-color": "#000", "fill-opacity": 0 };
    map.addLayer({ id: "tested", type: "fill", source: "tested", "source-layer": "counts", paint });
    map.jumpTo({ center: [4.5, 52.3], zoom: 9 });
    await new Promise((done) => map.once("idle", done));
    const found = map.querySourceFeatures("tested", { sourceLayer: "counts" })
        .map(({ properties, geometry }) => ({ ...properties, kind: geometry.type }));
    const shown = map.queryRenderedFeatures({ layers: ["tested"] }).length;
    map.removeLayer("tested");
    map.removeSource("tested");
    map.setTransformRequest(null);
    const { readTile } = await import("/static/page/vector-tile.js");
    const own = [];
    for (const place of ["8/131/84", "9/262/168", "9/262/169"]) {
        const path = `/api/releases/${name}/tiles/${place}.mvt`;
        const reply = await fetch(path, { headers: { Authorization: `Bearer ${token}` } });
        const tile = readTile(await reply.arrayBuffer());
        for (let i = 0; tile && i < tile.length; i++) {
            own.push(Object.fromEntries(Object.entries(tile.columns).map(([key, all]) => [key, all[i]])));
        }
    }
    return [found, shown, own];
}
"""


@pytest.mark.parametrize("name", ["west", "metres"])
def test_maplibre_reads_what_the_page_reads(shared: Any, with_token: str, name: str) -> None:
    token = with_token.split("'")[3]
    if name == "metres":  # elsewhere: only the page's reader is asked
        script = LOAD.replace("[4.5, 52.3]", "[0, 51.3]").replace("131/84", "128/85")
        script = script.replace("262/168", "256/170").replace("262/169", "255/170")
    else:
        script = LOAD
    found, shown, own = shared.evaluate(script, [token, name])
    assert shown > 0
    assert {one["kind"] for one in found} == {"Polygon"}

    def known(one: dict[str, Any]) -> tuple[float, ...]:
        names = ("west", "south", "width", "height", "count", "density", "low", "high", "std_error")
        return tuple(float(one[name]) for name in names)

    theirs = {known(one): one["clear"] for one in found}
    ours = {known(one): one["clear"] == 1 for one in own}
    common = theirs.keys() & ours.keys()
    assert len(common) > 50
    assert all(theirs[one] == ours[one] for one in common)
