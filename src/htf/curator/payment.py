"""What is paid before noise is drawn: the noise is tested, loops are loaded, and a budget file is charged. Sensitive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from htf.base import arguments
from htf.curator.noise import NoiseSource, noise_of
from htf.curator.noise_check import check_noise
from htf.curator.rehearsal import load_loops
from htf.frame.domain import IntArray
from htf.privacy.apart import ToldApart
from htf.privacy.budget import BudgetFile, check_adds_up, still_charged
from htf.privacy.epsilon import Epsilon


@dataclass(frozen=True, slots=True)
class Payment:
    """What is about to be paid for, with checked arguments."""

    price: Epsilon
    noise: NoiseSource
    budget: BudgetFile | None
    label: str
    unit: str
    told_apart: ToldApart | None

    @classmethod
    def of(
        cls,
        epsilon: object,
        noise: object,
        budget: object,
        label: object,
        unit: str,
        told_apart: ToldApart | None,
    ) -> Payment:
        if budget is not None:
            remedy = "open it with htf.BudgetFile(path, dataset)"
            arguments.instance(budget, BudgetFile, "the budget", remedy)
        arguments.text(label, "label")
        price = Epsilon.of(epsilon)  # type: ignore[arg-type]
        return cls(price, noise_of(noise), budget, label, unit, told_apart)  # type: ignore[arg-type]

    def pay(self, what: str, parameters: Mapping[str, Any]) -> str | None:
        """Charge, once nothing that could fail is left to do before noise is drawn. The entry of the budget file."""
        check_noise(self.noise)
        load_loops()  # for the release that follows, too: without it this would be spent in vain
        if self.budget is None:
            return None
        check_adds_up(self.noise.private, parameters)
        charge = self.budget.charge(
            self.price, what, self.label, unit=self.unit, told_apart=self.told_apart
        )
        return charge.id

    @contextmanager
    def charged(self, what: str) -> Iterator[str | None]:
        """Pay, and say what became of the charge if anything fails afterwards."""
        with still_charged(self.budget):
            yield self.pay(what, {})

    def add_noise(self, exact: IntArray, price: Epsilon, sensitivity: int) -> tuple[int, ...]:
        """Exact numbers with noise, each for this price."""
        units = np.full(len(exact), price.units, dtype=np.int64)
        return tuple((exact + self.noise.draw(units, sensitivity)).tolist())

    @property
    def drawn(self) -> tuple[str, bool]:
        """Where the noise comes from, and whether it is secret."""
        return self.noise.description, self.noise.private
