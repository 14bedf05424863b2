"""`htf.forecast`: the error of a recipe, or the least epsilon for an error, by simulation on made-up records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from htf.base import arguments
from htf.errors import InputError
from htf.forecasts.assumed import Assumed
from htf.forecasts.plan import plan_of
from htf.forecasts.population import RecordsEach
from htf.forecasts.search import RUNS, Found, find_epsilon
from htf.forecasts.simulation import RUNS_USUAL, Forecast, simulate
from htf.forecasts.targets import Target
from htf.recipes.files import load_recipe
from htf.recipes.recipe import Recipe

if TYPE_CHECKING:
    from htf.release.release import Release


def forecast(
    recipe: Recipe | Path | str,
    *,
    target: str | None = None,
    like: Release | Path | str | None = None,
    points_about: int | None = None,
    people: int | None = None,
    records_per_person: str | int | None = None,
    runs: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Forecast | Found:
    """Simulate releases of a recipe to see what error to expect, or to find the least epsilon for an error.

    The source of the recipe is not opened: a made-up city stands in for it or, with `like`, an earlier release or public
    points. Everything else is done as in `Recipe.make`, with noise that hides nothing. It costs no budget.

    Parameters
    ----------
    recipe : Recipe, Path or str
        What the release is to be made of, or the name of its file.
    target : str, optional
        An error, such as `5 % in squares of 1 km`, `20 records in zones` or `10 % by district`. The least epsilon for it
        is then looked for, whatever that of the recipe is.
    like : Release, Path or str, optional
        An earlier release, or a file of points that are public. Never the data themselves.
    points_about : int, optional
        Roughly how many records there are.
    people : int, optional
        Roughly how many people there are, or people in each period.
    records_per_person : str or int, optional
        How many records they have: quantiles, such as `0.5:5,0.9:40`, or one number for all.
    runs : int, optional
        How many releases to simulate, by default 5; with a target 3 at the epsilon that is found.
    progress : callable, optional
        Called with the name of each step.

    Returns
    -------
    Forecast or Found
        What to expect, or the epsilon with the curve of errors. `to_dict` gives all of it.

    Raises
    ------
    InputError
        If the recipe is wrong, or too little is known of its records.
    BudgetError
        If epsilon does not suffice.

    Examples
    --------
    >>> import htf
    >>> recipe = htf.Recipe(source=None, bounds=(0, 0, 1, 1), cells=64, epsilon=1)
    >>> expected = htf.forecast(recipe, points_about=5000, runs=1)
    >>> expected.quantity, len(expected.main.areas)
    ('records', 8)
    """
    if isinstance(recipe, (str, Path)):
        recipe = load_recipe(Path(recipe))
    arguments.instance(recipe, Recipe, "recipe", "make one with htf.Recipe(source=None, …)")
    arguments.function(progress, "progress")
    for name, number in (("points_about", points_about), ("people", people), ("runs", runs)):
        if number is not None and arguments.whole(number, name) < 1:
            raise InputError(f"{name} must be at least 1, got {number}")
    each = None
    if isinstance(records_per_person, str):
        each = RecordsEach.read(records_per_person)
    elif records_per_person is not None:
        each = RecordsEach.alike(arguments.whole(records_per_person, "records_per_person"))
    if like is not None and not isinstance(like, (str, Path)):
        from htf.release.release import check_release

        check_release(like, "like")
    assumed = Assumed(like=like, points_about=points_about, people=people, records_per_person=each)
    tell = progress or (lambda _: None)
    if target is None:
        plan = plan_of(recipe, assumed, runs or RUNS_USUAL)
        return simulate(plan, lambda _done, _all, step: tell(step))
    aim = Target.read(arguments.text(target, "target"))
    plan = plan_of(recipe, assumed, runs or RUNS)
    return find_epsilon(plan, aim, tell)
