"""Districts from a file on the page of `htf serve`: counted, drawn, sorted and saved."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import shapely

from htf import Release
from htf.query.answer_texts import show_count

NAMES = ("Harbour", "Hills", "Old Town", "Far away")
PLACES = [
    (4.1, 52.1, 4.4, 52.3),
    (4.4, 52.1, 4.7, 52.3),
    (4.4, 52.3, 4.7, 52.5),
    (8, 52, 8.1, 52.1),
]


def district(number: int, tilt: float = 0.0) -> dict[str, Any]:
    west, south, east, north = PLACES[number]
    ring = [[west, south], [east, south + tilt], [east, north], [west, north], [west, south]]
    return {
        "type": "Feature",
        "properties": {"code": f"00{number}", "name": NAMES[number], "count": number, "more": [1]},
        "geometry": {"type": "Polygon", "coordinates": [ring]},
    }


def layer(number: int = 4, **members: Any) -> dict[str, Any]:
    features = [district(at, 0.05) for at in range(number)]
    return {"type": "FeatureCollection", "features": features, **members}


@pytest.fixture
def page(address: str, window: Any, with_token: str) -> Any:
    one = window()
    one.context.add_init_script(with_token)
    found = one.open(f"{address}/#r=east")
    found.click("#district-card summary")
    return found


def give(page: Any, name: str, content: str | bytes | dict[str, Any]) -> None:
    text = json.dumps(content) if isinstance(content, dict) else content
    data = text.encode() if isinstance(text, str) else text
    files = [{"name": name, "mimeType": "text/plain", "buffer": data}]
    page.set_input_files("#district-file", files)


def column(page: Any, place: int) -> list[str]:
    cells = page.locator(f"#district-table tbody tr > :nth-child({place})")
    return [text.strip() for text in cells.all_inner_texts()]


def saved(page: Any, button: str) -> str:
    with page.expect_download() as download:
        page.click(button)
    return Path(download.value.path()).read_text(encoding="utf-8")


def test_polygons_are_counted_sorted_and_saved(page: Any, releases: dict[str, Release]) -> None:
    shapes = [shapely.from_geojson(json.dumps(one["geometry"])) for one in layer()["features"]]
    expected = releases["east"].count_polygons(shapes).to_dicts()
    give(page, "places.geojson", layer())
    page.wait_for_selector("#district-table tbody tr >> nth=3")
    order = sorted(range(4), key=lambda at: -expected[at]["count"])
    assert column(page, 1) == [NAMES[at] for at in order]
    assert column(page, 2) == [show_count(expected[at]["count"]) for at in order]
    ends = [[show_count(one[end]) for end in ("low", "high")] for one in expected]
    assert column(page, 3) == [" to ".join(ends[at]) for at in order]
    assert column(page, 4) == ["0 %" if at == 3 else "100 %" for at in order]
    page.click("[data-sort=district]")
    assert column(page, 1) == sorted(NAMES)
    page.select_option("#district-names", "code")
    assert set(column(page, 1)) == {"000", "001", "002", "003"}
    rows = list(csv.DictReader(saved(page, "#save-csv").splitlines()))
    for at, row in enumerate(rows):
        assert (row["code"], row["name"], row["given_count"]) == (f"00{at}", NAMES[at], str(at))
        assert (row["more"], row["counted"]) == ("[1]", "records")
        for name in ("count", "std_error", "low", "high", "partial", "inside"):
            assert float(row[name]) == pytest.approx(expected[at][name])
    told = json.loads(saved(page, "#save-geojson"))
    assert [one["geometry"] for one in told["features"]] == [
        one["geometry"] for one in layer()["features"]
    ]
    assert told["features"][1]["properties"]["name"] == NAMES[1]
    assert told["releases"][0]["statement"] == releases["east"].statement


def test_rows_and_districts_belong_together(page: Any) -> None:
    give(page, "places.geojson", layer(3))
    page.wait_for_selector("#district-table tbody tr >> nth=2")
    page.check("#district-colours")
    frame = page.evaluate("htf.maps[0].getContainer().getBoundingClientRect().toJSON()")
    at = page.evaluate("htf.maps[0].project([4.6, 52.4])")
    page.mouse.move(frame["x"] + at["x"], frame["y"] + at["y"])
    page.wait_for_selector(".tooltip >> text='Old Town'")
    assert page.inner_text("tr.pointed th") == "Old Town"
    shown = page.inner_text(".tooltip .big").removesuffix(" records")
    assert shown == page.inner_text("tr.pointed td >> nth=0")
    zoom = page.evaluate("htf.maps[0].getZoom()")
    page.click("#district-table button >> text='Harbour'")
    for _ in range(200):
        page.wait_for_timeout(50)
        if not page.evaluate("htf.maps[0].isMoving()"):
            break
    assert page.evaluate("htf.maps[0].getZoom()") > zoom
    assert page.evaluate("htf.maps[0].getBounds().contains([4.25, 52.2])")
    pressed = page.locator("#district-table [aria-pressed=true]").all_inner_texts()
    assert pressed == ["Harbour"]
    page.click("#drop-districts")
    assert not page.is_visible("#district-table")


def test_two_releases_and_boxes_of_hours(page: Any, releases: dict[str, Release]) -> None:
    lines = ["name;west;south;east;north;hour_low;hour_high"]
    lines += [
        f"{NAMES[at]};{';'.join(str(edge).replace('.', ',') for edge in PLACES[at])};4;12"
        for at in range(3)
    ]
    page.select_option("#first", "hours")
    page.select_option("#second", "later")
    give(page, "boxes.csv", "\n".join(lines))
    page.wait_for_selector("#district-table tbody tr >> nth=2")
    rows = [[*box[:2], 4, *box[2:], 12] for box in PLACES[:3]]
    first, second = (releases[name].count(rows) for name in ("hours", "later"))
    changes = first.minus(second)
    table = list(csv.DictReader(saved(page, "#save-csv").splitlines()))
    for at, row in enumerate(table):
        assert row["name"] == NAMES[at]
        assert float(row["hours count"]) == pytest.approx(first.count[at])
        assert float(row["later high"]) == pytest.approx(second.high[at])
        assert float(row["difference_low"]) == pytest.approx(changes.low[at])
        assert row["beyond_noise"] == str(bool(changes.beyond_noise[at])).lower()
    order = sorted(range(3), key=lambda at: -changes.change[at])
    marks = [
        "more than noise" if changes.beyond_noise[at] else "no more than noise" for at in order
    ]
    assert [text.splitlines()[2] for text in column(page, 2)] == marks


WKT = 'name,wkt\nTwo,"MULTIPOLYGON (((4 52, 4.2 52, 4.2 52.2, 4 52)), ((4.5 52, 5 52, 5 52.2, 4.5 52)))"\n'


def test_outlines_as_text_in_batches(page: Any, releases: dict[str, Release]) -> None:
    many = "".join(WKT.partition("\n")[2] for _ in range(1001))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    give(page, "outlines.csv", f"name,wkt\n{many}Nothing,POINT (4 52)\n")
    page.wait_for_selector("#district-table caption >> text=/500 of 1001/")
    assert sum(url.endswith("/polygons") for url in asked) == 2
    shape = shapely.from_wkt(WKT.split('"')[1])
    answers = releases["east"].count_polygons([shape])
    assert set(column(page, 2)) == {show_count(float(answers.count[0]))}
    assert page.inner_text("#district-note") == "1 row has no polygon and is left out."


FAR = {"type": "Polygon", "coordinates": [[[2e5, 5e5], [3e5, 5e5], [3e5, 6e5], [2e5, 5e5]]]}
LINE = {"type": "LineString", "coordinates": [[4, 52], [5, 53]]}
CROSSED: dict[str, Any] = {
    "crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::28992"}}
}


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.geojson", "{", "“a.geojson” is not valid JSON"),
        ("b.geojson", FAR, "coordinates 200000, 500000, which are not degrees"),
        ("c.geojson", layer(**CROSSED), "reference system urn:ogc:def:crs:EPSG::28992"),
        ("d.geojson", LINE, "“d.geojson” has no polygons"),
        ("e.json", {"type": "Topology"}, "not GeoJSON but TopoJSON"),
        ("f.csv", "name,west,south\nA,1,2\n", "lacks the columns east, north"),
        ("g.csv", "west,south,east,north\n5,52,4,53\n", "no box in row 1"),
        ("h.csv", b"west,south\n\xff\xfe", "not text in UTF-8"),
        ("i.geojson", [[4, 52]] * 200_002, "corners. The server takes 200000 at once"),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value[:9] else "",
)
def test_a_file_that_cannot_be_counted(shared: Any, name: str, content: Any, told: str) -> None:
    if isinstance(content, list):
        content = {"type": "Polygon", "coordinates": [content]}
    give(shared, name, content)
    shared.wait_for_selector("#district-problem:not([hidden])")
    assert told in shared.inner_text("#district-problem")
    assert not shared.is_visible("#district-table")
    shared.evaluate("document.getElementById('drop-districts').click()")


DROP = """
    ([name, text]) => {
        const given = new DataTransfer();
        given.items.add(new File([text], name));
        for (const kind of ["dragover", "drop"]) {
            const event = new DragEvent(kind, { dataTransfer: given, bubbles: true, cancelable: true });
            document.getElementById("maps").dispatchEvent(event);
            if (kind === "dragover") window.wasAsked = !document.getElementById("drop-here").hidden;
        }
        return window.wasAsked;
    }
"""


def test_a_file_is_dropped_on_the_map(page: Any) -> None:
    assert page.evaluate(DROP, ["places.geojson", json.dumps(layer(2))])
    page.wait_for_selector("#district-table tbody tr >> nth=1")
    assert not page.is_visible("#drop-here")
    page.select_option("#first", "plane")  # which has no map
    page.wait_for_selector("#district-card", state="hidden")
