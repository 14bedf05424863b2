"""A mechanism with its settings, which a simulation can make again and send to another process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from htf.mechanisms import make_mechanism
from htf.mechanisms.base import Mechanism
from htf.release.release import Release


@dataclass(frozen=True)
class Spec:
    """A mechanism and those of its parameters that differ from their defaults."""

    mechanism: str
    settings: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, mechanism: str, settings: Mapping[str, Any] | None = None) -> Self:
        """Checks the settings; two ways to say the same give the same Spec."""
        given = {name: as_text(value) for name, value in (settings or {}).items()}
        made = make_mechanism(mechanism, **given)
        chosen = made.parameters()
        defaults = {one["name"]: one["default"] for one in made.describe()["parameters"]}
        differing = [name for name in chosen if name in given and chosen[name] != defaults[name]]
        return cls(mechanism, tuple((name, as_text(chosen[name])) for name in differing))

    @classmethod
    def of_release(cls, release: Release) -> Self:
        """The mechanism that made a release, with its parameters."""
        return cls.of(release.mechanism, release.parameters)

    @property
    def label(self) -> str:
        return ":".join([self.mechanism, *(f"{name}={value}" for name, value in self.settings)])

    @property
    def parameters(self) -> dict[str, Any]:
        """Every parameter, as it goes with a release."""
        return self.make().parameters()

    def make(self) -> Mechanism:
        return make_mechanism(self.mechanism, **dict(self.settings))


def as_text(value: Any) -> str:
    """As a setting is typed."""
    return "none" if value is None else str(value)
