"""The one-call way from a FrequencyMatrix to a Release."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from htf.base import arguments
from htf.curator.curator import Curator
from htf.curator.frequency import FrequencyMatrix, check_matrix
from htf.curator.noise import NoiseSource, noise_of
from htf.estimation.prior import Prior
from htf.frame.domain import Domain
from htf.mechanisms import make_mechanism
from htf.mechanisms.base import Mechanism
from htf.privacy.budget import BudgetFile
from htf.privacy.epsilon import Epsilon, EpsilonLike
from htf.privacy.purchases import Measured
from htf.release.release import Release

DEFAULT_MECHANISM = "htf"
DEFAULT_FOR_NAMES = "zones"


def default_mechanism(domain: Domain) -> str:
    """The name of the mechanism that suits a map: `zones` where the first axis has named cells, else `htf`."""
    return DEFAULT_MECHANISM if not domain.axes[0].levels else DEFAULT_FOR_NAMES


def publish(
    matrix: FrequencyMatrix,
    epsilon: EpsilonLike,
    mechanism: Mechanism | str | None = None,
    *,
    prior: Prior | Sequence[Prior] | None = None,
    noise: NoiseSource | str = "opendp",
    budget: BudgetFile | None = None,
    label: str = "",
    bought: Sequence[Measured] = (),
    progress: Callable[[str], None] | None = None,
) -> Release:
    """Spend `epsilon` on a private release, for each unit that `matrix.protection` names.

    Parameters
    ----------
    matrix : FrequencyMatrix
        The exact counts, from `read_points`.
    epsilon : Epsilon, str, int, float, Decimal or Fraction
        The privacy budget. It is the total, and includes the cost of what was `bought`.
    mechanism : Mechanism or str, optional
        The mechanism, or its name. `make_mechanism` sets its parameters. By default `zones` where the first axis has
        named cells, else `htf`.
    prior : Prior or sequence of Prior, optional
        What is publicly known of the map, from `read_prior`. Never make one from these data.
    noise : NoiseSource or str
        `opendp`, `fast`, or `seeded:NUMBER` for tests: seeded noise hides nothing.
    budget : BudgetFile, optional
        The budget to charge before any noise is drawn. Write the release with its `save`.
    label : str
        What to call the charge.
    bought : sequence of Activity, DistinctCounts or Clipped
        What `measure_activity`, `measure_distinct` and `measure_clipped` found for these data. With an activity, counts
        are of all records of people, not only of those that were kept.
    progress : callable, optional
        Called with the label of each measurement.

    Returns
    -------
    Release
        What may be published.

    Raises
    ------
    InputError
        If arguments are wrong or do not go together.
    BudgetError
        If epsilon or the budget does not suffice. If the budget was charged by then, the error says so.

    Examples
    --------
    >>> import htf
    >>> city = htf.synthetic_city(20_000, seed=1)
    >>> domain = htf.Domain.from_bounds(*city.domain_bounds, cells=64)
    >>> matrix = htf.read_points([city.x, city.y], domain)
    >>> release = htf.publish(matrix, epsilon=0.5)
    >>> release.private, str(release.epsilon)
    (True, '0.5')
    """
    if mechanism is None:
        mechanism = default_mechanism(check_matrix(matrix).domain)
    if isinstance(mechanism, str):
        mechanism = make_mechanism(mechanism)
    remedy = "give the name of one, or make one with htf.make_mechanism(name)"
    arguments.instance(mechanism, Mechanism, "mechanism", remedy)  # type: ignore[type-abstract]
    source = None if noise is None else noise_of(noise)
    total = Epsilon.of(epsilon)
    curator = Curator(matrix, total, source, prior, budget=budget, label=label, bought=bought)
    return curator.run(mechanism, progress)
