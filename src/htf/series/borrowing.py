"""Lets a release borrow from those of earlier periods. Everything here is computed from releases, and costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from htf.estimation.background import Background
from htf.estimation.homogeneous import PRIOR_TRUST, estimate_regions
from htf.estimation.prior import MOST_AXES
from htf.frame.grids import rows_of
from htf.recipes.recipe import Recipe, read_settings
from htf.release.release import BORROWING, Release
from htf.verification import estimated

# The fact that has the digests of the files that were borrowed from
BORROWED_FROM = "borrowed_from"
# Growth from round to round of a tree whose cuts earlier maps foresee.
FORESIGHT, USUAL_FORESIGHT = "foresight", 4.0
MOST_FORESEEN = 3  # axes; docs/decisions/0020 has what was measured


def borrows(recipe: Recipe) -> bool:
    """Whether the estimates of this recipe's releases use earlier ones as a background."""
    return not recipe.is_map_inside and any(one in BORROWING for one in recipe.made_by().estimators)


def foresees(recipe: Recipe) -> bool:
    """Whether releases of this recipe take earlier ones as priors, too."""
    takes = recipe.made_by().takes_prior and borrows(recipe)
    return takes and recipe.domain is not None and recipe.domain.dimensions <= MOST_AXES


def foreseeing(recipe: Recipe) -> tuple[str, ...]:
    """The parameters of a mechanism that has priors. They help to decide where to cut, unless the recipe says otherwise or
    has trips, which lose more by that than they gain."""
    known = FORESIGHT in recipe.made_by().parameters()
    known = known and recipe.domain is not None and recipe.domain.dimensions <= MOST_FORESEEN
    is_said = FORESIGHT in read_settings(recipe.settings)
    more = (f"{FORESIGHT}={USUAL_FORESIGHT}",) if known and not is_said else ()
    return (*recipe.settings, *more)


def borrow(release: Release, before: Sequence[Release], marks: Sequence[str] = ()) -> Release:
    """The release with estimates that use other releases of the same frame as a background. `marks` are the digests of
    their files."""
    if not before or release.estimator not in BORROWING:
        return release
    background = background_of(release, before)
    facts = {**release.facts, BORROWED_FROM: list(marks)}
    if release.priors:
        given = release.priors, release.protection.shares, background
        made = estimate_regions(release.tree, release.measurements.tree_counts(), *given)
        facts[PRIOR_TRUST] = made.trust.tolist()
    return estimated(replace(release, background=background, facts=facts))


def background_of(release: Release, before: Sequence[Release]) -> Background:
    """What the raw counts of earlier releases say about each region: they have next to no bias."""
    rows = rows_of(release.domain.axes, release.tree.low, release.tree.high)
    answers = [one.count(rows) for one in before]
    return Background.of([one.raw for one in answers], [one.std_error for one in answers])
