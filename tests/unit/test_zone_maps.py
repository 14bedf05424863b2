"""Maps of zones: what is drawn is what the release says, in true proportions."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from htf import Domain, InputError, Layer
from htf.cli.main import run
from htf.frame.areas import square_kilometres, to_equal_area
from htf.maps.browser.page import page_of
from htf.maps.browser.shapes import lighter
from htf.maps.kinds import MOST_LINES, Areas, Lines
from htf.maps.paint import BLANK
from htf.maps.picture import figure_of
from htf.maps.zone_views import middles, view_flows, view_zones
from zoning import COUNTS, boxes_with_offences, squares, zoned

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("crs", ["OGC:CRS84", "EPSG:4326", "EPSG:28992", "EPSG:2056"])
def test_areas_are_those_of_rectangles(crs: str) -> None:
    is_metric = crs not in ("OGC:CRS84", "EPSG:4326")
    bounds = (100_000, 400_000, 108_000, 406_000) if is_metric else (4, 52, 5, 52.6)
    west, south, east, north = bounds
    domain = Domain.from_bounds(west, south, east, north, cells=1, crs=crs)
    one = np.zeros((1, 2), dtype=np.int64)
    known = square_kilometres(domain, one, one + 1)
    change = to_equal_area(crs)
    assert known is not None
    assert change is not None
    assert shapely.area(shapely.transform(shapely.box(*bounds), change)) == pytest.approx(known[0])
    assert to_equal_area(None) is None


def test_zones_have_the_answers_of_the_release() -> None:
    release = zoned()
    for level in ("tract", "district"):
        view, table = view_zones(release, level), release.table(level)
        assert view.zones.labels == table[level].to_pylist()
        assert view.answers.count == pytest.approx(table["count"].to_numpy())
        assert view.area.sum() == pytest.approx(view_zones(release).area.sum())
        assert view.unit == "km²"
    tracts = view_zones(release)
    assert tracts.density == pytest.approx(tracts.answers.count / tracts.area)
    assert (tracts.is_clear == (tracts.answers.low > 0)).all()
    assert tracts.is_clear[0]
    assert not tracts.is_clear[2]
    assert tracts.zones.above[0][4:6] == ["District 2", "District 2"]
    assert Areas(release, "city").level_words == "by tract"


def test_a_district_is_the_union_of_its_tracts() -> None:
    joined = view_zones(zoned(), "district").zones.shapes
    assert joined[0].equals(shapely.union_all(squares()[:4]))
    assert middles(joined)[0] == pytest.approx([4.1, 52.1])


def test_a_place_is_named_within_a_zone_that_bends_around_its_middle() -> None:
    ring = np.array([shapely.box(0, 0, 9, 9) - shapely.box(1, 1, 8, 8)])
    assert ring[0].contains(shapely.Point(middles(ring)[0]))


def test_a_part_of_the_zones_is_drawn_and_a_cut_through_one_is_refused() -> None:
    release = zoned("kinds")
    part = view_zones(release, "tract", {"zone": "District 2", "offence": "Violent"})
    assert part.zones.labels == ["Tract 05", "Tract 06", "Tract 07", "Tract 08"]
    expected = release.count(where={"zone": "Tract 05", "offence": "Violent"})
    assert part.answers.count[0] == pytest.approx(expected.count[0])
    told = Areas(release, "part", where={"zone": "District 2", "offence": "Violent"}).summed
    assert told == "zone District 2; offence Violent"
    with pytest.raises(InputError, match="cut within a district: choose a lower level"):
        view_zones(release, "district", {"zone": "Tract 05"})


def test_the_named_end_of_trips_decides_which_zones_are_drawn() -> None:
    release = zoned("trips")
    there = view_zones(release, None, {"zone": "District 1"})
    back = view_zones(release, None, {"dest_zone": "District 1"})
    assert there.zones.axis.name == "dest_zone"
    assert back.zones.axis.name == "zone"
    expected = release.count(where={"zone": "District 1", "dest_zone": "Tract 07"}).count[0]
    assert there.answers.count[6] == pytest.approx(expected)
    with pytest.raises(InputError, match="no axis of zones 'hour'"):
        view_zones(release, axis="hour")
    with pytest.raises(InputError, match="there is no level 'town'"):
        view_zones(release, "town")


def test_trips_are_counted_for_each_pair() -> None:
    release = zoned("trips")
    flows = view_flows(release, "district")
    assert len(flows.answers) == 9
    origin, destination = flows.ends
    assert (origin[5], destination[5]) == (1, 2)
    where = {"zone": "District 2", "dest_zone": "District 3"}
    assert flows.answers.count[5] == pytest.approx(release.count(where=where).count[0])
    assert flows.is_within.tolist() == [True, False, False, False, True, False, False, False, True]
    start, end = flows.places
    assert (start[5][0], end[5][0]) == (pytest.approx(4.3), pytest.approx(4.5))


def test_lines_are_the_most_frequent_trips_and_the_rest_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trips = zoned("trips")
    flows = view_flows(trips)
    full = Layer.of(trips)
    assert isinstance(full, Lines)
    assert len(full.shown) <= MOST_LINES
    assert (flows.answers.low[full.shown] > 0).all()
    assert not flows.is_within[full.shown].any()
    monkeypatch.setattr("htf.maps.kinds.MOST_LINES", 5)
    few = Layer.of(trips)
    assert isinstance(few, Lines)
    assert list(few.shown) == list(full.shown[:5])
    told = few.notes[0]
    assert f"{len(full.shown) - 5} smaller ones" in told
    assert "that are no more than noise" in told
    assert "5 lines, " in told


def texts(figure: Any) -> str:
    from matplotlib.text import Text

    return "\n".join(text.get_text() for text in figure.findobj(Text))


def test_noise_is_blank_and_colours_follow_density() -> None:
    from matplotlib.collections import PathCollection
    from matplotlib.colors import to_hex

    release = zoned()
    figure = release.plot()
    figure.draw_without_rendering()
    (zones,) = figure.axes[0].findobj(PathCollection)
    colours = [to_hex(colour) for colour in zones.get_facecolor()]
    is_clear = view_zones(release).is_clear
    assert [colour == BLANK for colour in colours] == (~is_clear).tolist()
    brightness = np.asarray(zones.get_facecolor())[:, :3].sum(axis=1)
    assert brightness[0] < brightness[4] < brightness[1]
    assert "records per km²" in texts(figure)
    assert "no more\nthan noise" in texts(figure)
    assert "by tract" in texts(figure)


def test_zones_that_lie_nowhere_have_counts_per_zone() -> None:
    release = zoned(crs=None)
    assert view_zones(release).density == pytest.approx(release.table("tract")["count"].to_numpy())
    assert "records per tract" in texts(release.plot())
    assert "records per district" in texts(release.plot(level="district"))


def test_the_rest_is_told_below_the_map() -> None:
    release = zoned("rest")
    count = release.count(where={"zone": "elsewhere"}).count[0]
    assert f"Not on the map: {count:,.0f} records of 'elsewhere'" in texts(release.plot())
    assert np.isnan(view_zones(release).density[-1])


def test_a_picture_of_trips() -> None:
    figure = zoned("trips").plot()
    assert "records per pair of tracts" in texts(figure)
    assert "from the wide end of a line to its narrow end" in texts(figure)
    named = zoned("trips").plot(where={"zone": "District 1"})
    assert "records per km²" in texts(named)
    assert "The blue outline is the chosen end" in texts(named)


def test_panels_are_titled_with_names() -> None:
    panels = zoned("kinds").plot(by="offence", level="district")
    titles = [ax.get_title() for ax in panels.axes]
    assert titles[:3] == ["Assault", "Robbery", "Theft"]
    groups = [ax.get_title() for ax in zoned("kinds").plot(by="group").axes]
    assert groups[:2] == ["Violent", "Property"]
    hours = [ax.get_title() for ax in zoned("hours").plot(by="hour").axes]
    assert hours[:2] == ["hour 0 to 6", "hour 6 to 12"]
    ends = [ax.get_title() for ax in zoned("trips").plot(by="zone:district").axes]
    assert ends[:3] == ["zone District 1", "zone District 2", "zone District 3"]


def test_panels_and_parts_of_a_map_of_boxes_by_name() -> None:
    release = boxes_with_offences()
    figure = release.plot(by="offence")
    assert [ax.get_title() for ax in figure.axes][:3] == ["Assault", "Robbery", "Theft"]
    part = [ax.get_title() for ax in release.plot(by="offence", where={"offence": "Violent"}).axes]
    assert part[:2] == ["Assault", "Robbery"]
    assert "offence Assault" in texts(release.plot(where={"offence": "Assault"}))
    view = release.view(where={"offence": "Assault"})
    assert view.counts.sum() == pytest.approx(release.count(where={"offence": "Assault"}).count[0])


def test_two_releases_of_the_same_zones() -> None:
    releases = {"May": zoned(), "June": zoned(noise="seeded:2")}
    pair = [Layer.of(one, name, level="district") for name, one in releases.items()]
    assert "May\nhb" in texts(figure_of(pair))
    assert "The chance that any zone is marked without reason is at most 5 %" in texts(
        figure_of([pair[0].minus(pair[1])])
    ).replace("\n", " ")


@pytest.mark.parametrize(
    ("first", "second", "where", "says"),
    [
        ({}, {"side": 0.2}, None, "different zones"),
        ({}, {"kind": "trips"}, None, "different zones"),
        ({"kind": "trips"}, {"kind": "trips"}, None, "name one end, with --where zone=NAME"),
    ],
)
def test_what_cannot_be_compared(
    first: dict[str, Any], second: dict[str, Any], where: Any, says: str
) -> None:
    pair = [Layer.of(zoned(**first), where=where), Layer.of(zoned(**second), where=where)]
    for make in (figure_of, page_of, lambda pair: pair[0].minus(pair[1])):
        with pytest.raises(InputError, match=says):
            make(pair)


def test_zones_and_a_grid_cannot_be_compared() -> None:
    pair = [Layer.of(zoned()), Layer.of(boxes_with_offences())]
    for compare in (figure_of, page_of, lambda pair: pair[0].minus(pair[1])):
        with pytest.raises(InputError, match="one release has zones and the other a grid"):
            compare(pair)


def data_of(text: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found is not None
    return json.loads(found[1])


def unpack(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))


def test_the_file_has_every_level_with_its_answers() -> None:
    pytest.importorskip("maplibre")
    release = zoned()
    data = data_of(page_of([Layer.of(release, "city", level="district")]))
    assert [level["name"] for level in data["shapes"]] == ["tract", "district"]
    assert data["level"] == 1
    for level, answers in zip(data["shapes"], data["panels"][0]["steps"][0], strict=True):
        view = view_zones(release, level["name"])
        assert level["labels"] == view.zones.labels
        count = np.frombuffer(unpack(answers["count"]), "<f4")
        assert np.all(np.abs(count - view.answers.count) <= view.answers.std_error / 32)
        outlines = json.loads(unpack(level["shapes"]))
        shapes = [shapely.from_geojson(json.dumps(outline)) for outline in outlines]
        assert shapely.equals_exact(shapely.normalize(shapes), shapely.normalize(view.zones.shapes), 1e-6).all()  # fmt: skip
    assert data["shapes"][0]["above"][4] == ["District 2"]
    assert np.array(data["bounds"]) == pytest.approx(np.array([[4, 52], [4.6, 52.2]]))


def test_the_file_has_pairs_of_zones_for_trips() -> None:
    pytest.importorskip("maplibre")
    release = zoned("trips")
    data = data_of(page_of([Layer.of(release, "trips")]))
    answers = data["panels"][0]["steps"][0][1]["trips"]
    pairs = np.frombuffer(unpack(answers["pairs"]["count"]), "<f4")
    flows = view_flows(release, "district").answers
    assert np.all(np.abs(pairs - flows.count) <= flows.std_error / 32)
    named = data_of(page_of([Layer.of(release, "trips", where={"zone": "District 1"})]))
    assert not named["trips"]


def test_a_file_of_zones_in_metres_and_of_zones_nowhere() -> None:
    pytest.importorskip("maplibre")
    metres = zoned(crs="EPSG:28992", side=1000)
    bounds = np.array(data_of(page_of([Layer.of(metres, "m")]))["bounds"])
    assert np.all((bounds > [3.2, 47.9]) & (bounds < [3.6, 48.2]))
    nowhere = data_of(page_of([Layer.of(zoned(crs=None), "n")]))
    assert nowhere["plane"] is not None
    assert nowhere["shapes"][0]["unit"] == "tract"


def test_outlines_with_very_many_corners_become_lighter_and_still_meet() -> None:
    shapes = shapely.segmentize(squares(), 0.0005)
    light = lighter(shapes, most=1000)
    assert shapely.get_num_coordinates(light).sum() < 200
    assert shapely.union_all(light).area == pytest.approx(shapely.union_all(shapes).area)
    assert lighter(shapes) is shapes


@pytest.mark.parametrize("kind", ["plain", "trips", "rest"])
def test_a_notebook_shows_zones(kind: str) -> None:
    shown = zoned(kind)._repr_html_()
    assert "data:image/png;base64," in shown
    assert "zone: 1" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{zones}", "-o", "m.png", "--boxes"], "always shows their outlines"),
        (["{zones}", "-o", "m.html", "--boxes"], "always shows their outlines"),
        (["{zones}", "-o", "m.png", "--level", "town"], "there is no level 'town'"),
        (["{zones}", "-o", "m.html", "--level", "town"], "there is no level 'town'"),
        (["{zones}", "-o", "m.png", "--by", "zone"], "panels need an axis that is not drawn"),
        (["{zones}", "-o", "m.png", "--where", "zone=Tract 99"], "there is no 'Tract 99'"),
        (["{trips}", "-o", "m.png", "--by", "district"], "write --by zone:district or dest_zone:district"),
        (["{boxes}", "-o", "m.png", "--level", "district"], "a level is one of zones"),
        (["{boxes}", "-o", "m.html", "--level", "district"], "a level is one of zones"),
        (["{boxes}", "-o", "m.png", "--where", "offence=Arson"], "there is no 'Arson'"),
    ],
)  # fmt: skip
def test_mistakes(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    zoned().save("z.parquet")
    zoned("trips").save("t.parquet")
    boxes_with_offences().save("b.parquet")
    names = {"zones": "z.parquet", "trips": "t.parquet", "boxes": "b.parquet"}
    assert run(["map", *(argument.format(**names) for argument in arguments)]) == 2
    assert words in capfd.readouterr().err
    assert not list(tmp_path.glob("m.*"))


@pytest.mark.parametrize("ending", ["png", "svg", "html"])
def test_the_command_draws_zones(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    zoned("trips").save("t.parquet")
    for more in ([], ["--level", "district"], ["--where", "dest_zone=District 1"]):
        assert run(["map", "t.parquet", "-o", f"m.{ending}", "--overwrite", *more]) == 0
        assert Path(f"m.{ending}").stat().st_size > 5000


def test_many_panels_are_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    release = zoned("trips")
    twelve = release.plot(by="zone")
    assert len([ax for ax in twelve.axes if ax.get_title()]) == len(COUNTS)
    monkeypatch.setattr("htf.maps.steps.MOST_PANELS", 5)
    with pytest.raises(InputError, match=r"has 12 names, .* room for 5 panels: choose a higher"):
        release.plot(by="zone")
    with pytest.raises(InputError, match="panels are of one axis"):
        release.plot(by="tract")
