"""The one-call way from a FrequencyMatrix to a Release."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from htf.base import arguments
from htf.curator.curator import Curator
from htf.curator.frequency import FrequencyMatrix
from htf.curator.noise import NoiseSource, noise_from_text
from htf.errors import InputError
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
    budget: BudgetFile | None = None,
    label: str = "",
    suggestion: Suggestion | None = None,
    progress: Callable[[str], None] | None = None,
    ledger: BudgetFile | None = None,
) -> Release:
    """Spend `epsilon` on a private release of the matrix, for each unit that `matrix.protection` names.

    A `prior` (see `read_prior`) must be public, and not made from these data. A `budget` is charged before
    any noise is drawn, with `label` to know the charge by; write the release with `budget.save`.
    With a `suggestion` (see `suggest_max_records`), `epsilon` is the total and counts in what that has cost.
    `ledger` is the old name of `budget`.

    Raises InputError for arguments that are wrong or do not go together, and BudgetError where `epsilon` or
    the budget does not suffice. If the budget was charged by then, the error says so.
    """
    if ledger is not None:
        budget = _by_old_name(budget, ledger)
    if isinstance(mechanism, str):
        mechanism = make_mechanism(mechanism)
    remedy = "give the name of one, or make one with htf.make_mechanism(name)"
    arguments.instance(mechanism, Mechanism, "mechanism", remedy)  # type: ignore[type-abstract]
    if isinstance(noise, str):
        noise = noise_from_text(noise)
    total = Epsilon.of(epsilon)
    curator = Curator(
        matrix, total, noise, prior, budget=budget, label=label, suggestion=suggestion
    )
    return curator.run(mechanism, progress)


def _by_old_name(budget: BudgetFile | None, ledger: BudgetFile) -> BudgetFile:
    if budget is not None:
        raise InputError("ledger is the old name of budget: give budget only")
    remedy = "open it with htf.BudgetFile(path, dataset)"
    arguments.instance(ledger, BudgetFile, "the budget", remedy)
    message = "publish(ledger=…) is now publish(budget=…); the next version drops the old name"
    warnings.warn(message, DeprecationWarning, stacklevel=3)
    return ledger
