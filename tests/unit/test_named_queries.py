"""Questions by name: every row is the count of the cells that carry its label."""

from __future__ import annotations

import numpy as np
import pytest

import htf
from htf import Axis, InputError, Names
from htf.frame.division import read_level
from htf.frame.ground import ground_of
from htf.query.zone_hint import errors_in_zones, zone_hint
from support_zones import DISTRICTS, TRACTS, zone_domain, zone_release, zones

HOURS = Axis("hour", 0, 24, 4)
KINDS = Axis.named(
    "offence",
    Names.of(
        {"offence": ["Assault", "Robbery", "Theft"], "group": ["Violent", "Violent", "Goods"]}
    ),
)
DESTINATION = Axis.named("dest_zone", zones())


def cells_of(release: htf.Release) -> np.ndarray:
    """What each cell counts; of a release of single cells."""
    counts = np.zeros(release.domain.shape)
    counts[tuple(release.low.T)] = release.estimates
    return counts


def test_by_level() -> None:
    release = zone_release(zone_domain(HOURS))
    cells = cells_of(release)
    table = release.table("district")
    assert table["district"].to_pylist() == ["North", "South", "East"]
    assert table["count"].to_pylist() == pytest.approx(
        cells.sum(axis=1).reshape(3, 3).sum(axis=1).tolist()
    )
    whole = release.table()
    assert whole["tract"].to_pylist() == TRACTS
    assert whole["district"].to_pylist() == DISTRICTS
    assert whole["dwellings"].to_pylist() == [*range(9)]
    assert whole["counted"].to_pylist() == ["records"] * 9


def test_by_two_axes() -> None:
    release = zone_release(zone_domain(HOURS))
    table = release.table("district", "hour", where=None)
    assert table["hour"].to_pylist()[:5] == ["0 to 6", "6 to 12", "12 to 18", "18 to 24", "0 to 6"]
    wanted = cells_of(release).reshape(3, 3, 4).sum(axis=1)
    assert table["count"].to_pylist() == pytest.approx(wanted.ravel().tolist())
    morning = release.table("district", where={"hour": (6, 12)})
    assert morning["count"].to_pylist() == pytest.approx(wanted[:, 1].tolist())


def test_flows_between_districts() -> None:
    release = zone_release(zone_domain(DESTINATION))
    table = release.table("district")
    assert len(table) == 9
    assert table["district"].to_pylist()[:4] == ["North", "North", "North", "South"]
    assert table["dest_zone district"].to_pylist()[:4] == ["North", "South", "East", "North"]
    wanted = cells_of(release).reshape(3, 3, 3, 3).sum(axis=(1, 3))
    assert table["count"].to_pylist() == pytest.approx(wanted.ravel().tolist())
    origins = release.table("zone:district")
    assert origins["count"].to_pylist() == pytest.approx(wanted.sum(axis=1).tolist())
    to_south = release.table("zone:district", where={"dest_zone": "South"})
    assert to_south["count"].to_pylist() == pytest.approx(wanted[:, 1].tolist())
    with pytest.raises(InputError, match="as in --level dest_zone:district"):
        release.table("district", where={"zone": "South"})


def test_categories_beside_a_map() -> None:
    domain = htf.Domain((Axis("x", 0, 2, 2), Axis("y", 0, 2, 2), KINDS), "OGC:CRS84")
    release = zone_release(domain)
    cells = cells_of(release)
    assert release.count(where={"offence": "Theft"}).count[0] == pytest.approx(cells[:, :, 2].sum())
    violent = release.count([0, 0, 1, 2], where={"offence": "Violent"})
    assert violent.count[0] == pytest.approx(cells[0, :, :2].sum())
    assert release.table("group")["count"].to_pylist() == pytest.approx(
        [cells[:, :, :2].sum(), cells[:, :, 2].sum()]
    )


@pytest.mark.parametrize(
    ("by", "says"),
    [
        ("county", "no level 'county': zone has tract, district; offence has offence, group"),
        ("zone:county", "no level 'county': there are tract, district"),
        ("hour:day", "have no names"),
        ("", "no level ''"),
    ],
)
def test_no_such_level(by: str, says: str) -> None:
    domain = zone_domain(HOURS, KINDS)
    with pytest.raises(InputError, match=says):
        read_level(domain, by)


def test_what_cannot_be_asked() -> None:
    release = zone_release(zone_domain(HOURS))
    with pytest.raises(InputError, match="`--by hour` counts every hour"):
        release.table("hour", where={"hour": (6, 12)})
    with pytest.raises(InputError, match="no zones: its axes are x, y"):
        zone_release(htf.Domain.from_bounds(0, 0, 1, 1, cells=2)).table()
    with pytest.raises(InputError, match="AXIS=LOW:HIGH, such as hour=7:10, got 'hour=noon'"):
        release.count(where={"hour": "noon"})
    with pytest.raises(InputError, match="there is no 'North Pole'"):
        release.count(where={"zone": "North Pole"})


def test_too_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htf.query.named.MOST_ROWS", 30)
    domain = zone_domain(HOURS)
    with pytest.raises(InputError, match="36 rows, but at most 30"):
        htf.Question.by("zone", "hour").rows(domain)


def test_outlines_of_districts_are_joined() -> None:
    domain = zone_domain(rest="elsewhere")
    asked = htf.Question.by("district").rows(domain)
    shapes = ground_of(domain).shapes(asked.rows)
    assert [shape.area for shape in shapes] == pytest.approx([3, 3, 3, 0])


def test_zones_are_told_where_they_would_be_better() -> None:
    """By the law of the noise: one count for epsilon 1 has a standard deviation of about 1.36."""
    city = htf.synthetic_city(20_000, seed=1)
    domain = htf.Domain.from_bounds(*city.domain_bounds, cells=64)
    matrix = htf.read_points([city.x, city.y], domain)
    release = htf.publish(matrix, 1, noise="seeded:1")
    polygons = htf.grid_zones(domain, columns=9).geometries
    answers = release.count_polygons(polygons)
    assert errors_in_zones(release, answers.count) == pytest.approx(1.1 * 1.357, rel=0.01)
    told = zone_hint(release, answers)
    assert told is not None
    assert "81 polygons" in told
    assert "records here, and about 1.49" in told
    assert zone_hint(release, release.count_polygons(polygons[:2])) is None
    singular = htf.publish(matrix, 1, "singular", noise="seeded:1")
    aligned = htf.grid_zones(domain, columns=64).geometries[:50]
    assert zone_hint(singular, singular.count_polygons(aligned)) is None
