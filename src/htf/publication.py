"""The one-call way from a FrequencyMatrix to a Release."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from htf.base import arguments
from htf.curator.curator import Curator
from htf.curator.frequency import FrequencyMatrix
from htf.curator.noise import NoiseSource, noise_from_text
from htf.estimation.prior import Prior
from htf.mechanisms import make_mechanism
from htf.mechanisms.base import Mechanism
from htf.privacy.budget import BudgetFile
from htf.privacy.epsilon import Epsilon
from htf.privacy.protection import Suggestion
from htf.release.release import Release

DEFAULT_MECHANISM = "htf"


def publish(
    matrix: FrequencyMatrix,
    epsilon: Epsilon | str | int | float | Decimal | Fraction,
    mechanism: Mechanism | str = DEFAULT_MECHANISM,
    *,
    prior: Prior | None = None,
    noise: NoiseSource | str = "opendp",
    ledger: BudgetFile | None = None,
    label: str = "",
    suggestion: Suggestion | None = None,
    progress: Callable[[str], None] | None = None,
) -> Release:
    """Spend `epsilon` on a private release of the matrix, for each unit that `matrix.protection` names.

    A `prior` (see `read_prior`) must be public, and not made from these data. A `ledger` is charged before
    any noise is drawn, with `label` to know the charge by; write the release with `ledger.save`.
    With a `suggestion` (see `suggest_max_records`), `epsilon` is the total and counts in what that has cost.

    Raises InputError for arguments that are wrong or do not go together, and BudgetError where `epsilon` or
    the ledger do not suffice. If the ledger was charged by then, the error says so.
    """
    if isinstance(mechanism, str):
        mechanism = make_mechanism(mechanism)
    remedy = "give the name of one, or make one with htf.make_mechanism(name)"
    arguments.instance(mechanism, Mechanism, "mechanism", remedy)  # type: ignore[type-abstract]
    if isinstance(noise, str):
        noise = noise_from_text(noise)
    total = Epsilon.of(epsilon)
    curator = Curator(
        matrix, total, noise, prior, budget=ledger, label=label, suggestion=suggestion
    )
    return curator.run(mechanism, progress)
