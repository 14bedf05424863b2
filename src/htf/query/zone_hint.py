"""Whether polygons would be better served by a release of zones. From the release alone."""

from __future__ import annotations

import numpy as np

from htf.estimation.noise_law import count_variances
from htf.estimation.worth import worth_of
from htf.frame.domain import FloatArray
from htf.query.answer import Answer
from htf.release.release import Release

FEWEST = 3  # polygons: fewer are hardly a layer of zones
WORTH_TELLING = 2.0  # times the error that zones would have
# The lowest level of a hierarchy of zones, compared with one count per zone for all of epsilon (docs/zones.md).
OF_LOWEST_LEVEL = 1.1


def errors_in_zones(release: Release, counts: FloatArray) -> float:
    """The standard error that half of such zones would have at most, if the same epsilon were spent on them."""
    units = np.array([release.record_epsilon.units], dtype=np.int64)
    worth = worth_of(release)
    raw = counts / worth.each
    noise = np.full(len(raw), OF_LOWEST_LEVEL * float(np.sqrt(count_variances(units)[0])))
    return float(np.median(worth.of_answers(raw, noise, raw, raw)[1]))


def zone_hint(release: Release, answers: Answer) -> str | None:
    """What to tell about these polygons; None if a release of zones would not be much better."""
    on_map = answers.inside > 0
    if int(on_map.sum()) < FEWEST:
        return None
    here = float(np.median(answers.std_error[on_map]))
    there = errors_in_zones(release, answers.count[on_map])
    if here < WORTH_TELLING * there:
        return None
    return (
        f"If these are the zones you publish, a release of them would be better: the median standard error of these "
        f"{int(on_map.sum()):,} polygons is {here:,.3g} {release.quantity} here, and about {there:,.3g} from `htf release "
        f"--zones FILE` with the same epsilon (docs/zones.md)."
    )
