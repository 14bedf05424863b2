"""What a mechanism is.

A mechanism is a frozen dataclass of its parameters, with one method. `build` is a generator: it asks
through the Window (`noisy = yield from window.count(…)`) and returns a Histogram. It never sees data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np

from htf.base import arguments, numerals
from htf.curator.window import Steps, Window
from htf.errors import BudgetError, InputError
from htf.estimation.homogeneous import FROM_LEAVES
from htf.frame.domain import FloatArray, IntArray
from htf.privacy.epsilon import Epsilon


@dataclass(frozen=True)
class Histogram:
    """What a mechanism returns: regions that tile the map, with an estimate for each.

    Attributes
    ----------
    leaves : ndarray of int
        The regions.
    estimates : ndarray
        The estimated number of records in each, or of shares of people where `window.shares` is above 1.
    scales : ndarray of float
        The scale of the independent Laplace noise in each estimate.
    estimator : str
        How the estimates follow from the measurements. `htf verify` knows these.
    facts : dict
        Public findings worth telling.

    Examples
    --------
    >>> import htf
    >>> import numpy as np
    >>> from htf.mechanisms import Histogram
    >>> Histogram(np.array([0]), np.array([42]), np.array([2.0]), "last-count").estimates
    array([42])
    """

    leaves: IntArray
    estimates: FloatArray | IntArray
    scales: FloatArray  # of the independent Laplace noise in each estimate
    estimator: str  # how the estimates follow from the measurements; `htf verify` knows these
    facts: dict[str, Any] = field(default_factory=dict)  # public findings worth telling

    def __post_init__(self) -> None:
        """A fact that no file can hold would show only when the release, paid for by then, is saved."""
        object.__setattr__(self, "facts", _plain(self.facts))


@dataclass(frozen=True)
class Mechanism(ABC):
    """Base of all mechanisms: a frozen dataclass of parameters, each made with `parameter`.

    A subclass has a `name`, a `citation` and a `build`. It never sees data: `build` asks through a
    Window and gets noisy answers.

    Attributes
    ----------
    name : str
        What it is called on the command line.
    citation : str
        Where it comes from.
    takes_prior : bool
        Whether its estimates use `window.priors`.
    estimators : mapping
        Estimators of its own by name: what the estimates and scales of a release must be, given its
        measurements. `htf verify` compares.

    Examples
    --------
    >>> import htf
    >>> mechanism = htf.make_mechanism("htf")
    >>> from htf.mechanisms import Mechanism
    >>> mechanism.name, isinstance(mechanism, Mechanism)
    ('htf', True)
    """

    name: ClassVar[str]
    citation: ClassVar[str]
    takes_prior: ClassVar[bool] = False  # whether its estimates heed `window.priors`
    # Estimators of its own, by name: what a release's estimates and scales must be, from its
    # measurements. `htf verify` compares.
    estimators: ClassVar[Mapping[str, Callable[[Any], tuple[Any, FloatArray]]]] = {}

    def __post_init__(self) -> None:
        for known in fields(self):
            read = known.metadata.get("read")
            if read is not None:
                value = read(getattr(self, known.name), known.name)
                object.__setattr__(self, known.name, value)
        self.check()

    def check(self) -> None:  # noqa: B027
        """Refuse parameters that make no sense. Their types were checked before.

        Raises
        ------
        InputError
            If a parameter makes no sense.

        Examples
        --------
        >>> mechanism.check()
        """

    @abstractmethod
    def build(self, window: Window) -> Steps[Histogram]:
        """Ask for measurements, decide by the answers, and return a Histogram.

        This is a generator: the Curator drives it.

        Parameters
        ----------
        window : Window
            The map, the tree of regions, the budget, and a method for each measurement.

        Returns
        -------
        Steps of Histogram
            A generator that yields measurements and is sent noisy answers.

        Raises
        ------
        BudgetError
            If the budget cannot pay for what the mechanism needs.

        Examples
        --------
        >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
        >>> from htf.mechanisms import RegionTree
        >>> from htf.mechanisms import Window
        >>> window = Window(domain, RegionTree(domain.shape), htf.Epsilon.of(1))
        >>> question = next(mechanism.build(window))
        >>> question.kind, len(question.regions)
        ('count', 1)
        """

    def check_priors(self, priors: Sequence[object]) -> None:
        """Refuse priors that would be ignored, or that a release could not have, before anything is charged.

        Parameters
        ----------
        priors : sequence of Prior
            What is publicly known of the map.

        Raises
        ------
        InputError
            If there are any and this mechanism takes none.

        Examples
        --------
        >>> mechanism.check_priors([])
        """
        if priors and not self.takes_prior:
            raise InputError(
                f"{self.name} takes no prior, only htf does: use that, or leave it out"
            )
        if priors and FROM_LEAVES not in self.estimators:
            raise InputError(
                f"{self.name} cannot use a prior: only the estimator {FROM_LEAVES!r} of htf can, and it must be among `estimators`"
            )

    def parameters(self) -> dict[str, Any]:
        """Every parameter as a plain value. They travel with the release.

        Returns
        -------
        dict
            Values by name.

        Examples
        --------
        >>> mechanism.parameters()["growth"]
        1.5
        """
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def describe(cls) -> dict[str, Any]:
        """Describe the mechanism: its name, its citation, and its parameters with defaults and meaning.

        Returns
        -------
        dict
            Plain values, for JSON.

        Examples
        --------
        >>> type(mechanism).describe()["parameters"][0]["name"]
        'total_share'
        """
        summary = (cls.__doc__ or "").strip().splitlines()[0]
        parameters = [
            {
                "name": f.name,
                "default": None if f.default is MISSING else _plain(f.default),
                "help": f.metadata.get("help", ""),
            }
            for f in fields(cls)
        ]
        return {
            "name": cls.name,
            "summary": summary,
            "citation": cls.citation,
            "parameters": parameters,
        }

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Mechanism:
        """Make the mechanism from texts such as the command line gives, or from plain values.

        Parameters
        ----------
        settings : mapping
            Parameters by name, such as `{"height": "12"}`.

        Returns
        -------
        Mechanism
            The mechanism.

        Raises
        ------
        InputError
            If a parameter is unknown, or its value is not allowed.

        Examples
        --------
        >>> type(mechanism).from_settings({"growth": "1.5"}).parameters()["growth"]
        1.5
        """
        known = {f.name: f for f in fields(cls)}
        for name in arguments.mapping(
            settings, "settings", "a dictionary such as {'height': '12'}"
        ):
            if name not in known:
                raise InputError(
                    f"{cls.name} has no parameter {name!r:.100}; it has {', '.join(known)}"
                )
        return cls(
            **{
                name: known[name].metadata["parse"](name, given)
                if isinstance(given, str)
                else given
                for name, given in settings.items()
            }
        )


def parameter(default: Any, parse: Any, help: str) -> Any:
    """A field of a mechanism: its default, how to read it from text, and what it means.

    The reader of texts tells what a value must be that is given in Python.
    """
    return field(
        default=default, metadata={"parse": parse, "read": READERS.get(parse), "help": help}
    )


def _reader(read: Callable[[str], Any], wanted: str) -> Callable[[str, str], Any]:
    def reader(name: str, text: str) -> Any:
        try:
            return read(text)
        except ValueError:
            raise InputError(f"{name} must be {wanted}, got {text!r}") from None

    return reader


read_integer = _reader(numerals.whole, "a whole number")
read_number = _reader(numerals.decimal, "a number")
read_share = _reader(numerals.decimal, "a number between 0 and 1")


def read_optional_integer(name: str, text: str) -> int | None:
    return None if text in ("", "none", "auto") else read_integer(name, text)


def read_epsilon(name: str, text: str) -> Epsilon:
    try:
        return Epsilon.of(text)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def read_text(name: str, text: str) -> str:  # noqa: ARG001
    return text


def check_share(name: str, share: float) -> None:
    if not 0 < share < 1:
        raise InputError(f"{name} must be between 0 and 1, got {share}")


def split_epsilon(epsilon: Epsilon, share: float, name: str) -> tuple[Epsilon, Epsilon]:
    """`share` of the budget, rounded down, and all the rest."""
    part = Epsilon(int(epsilon.units * Fraction(repr(share))))
    if not 0 < part.units < epsilon.units:
        raise BudgetError(f"epsilon {epsilon} is too small: {name} {share} of it is nothing")
    return part, epsilon - part


def _epsilon(value: Any, name: str) -> Epsilon:
    return value if isinstance(value, Epsilon) else read_epsilon(name, value)


# What a value given in Python must be, by the function that reads it from text.
READERS: Mapping[Any, Callable[[Any, str], Any]] = {
    read_integer: arguments.whole,
    read_optional_integer: partial(arguments.optional, arguments.whole),
    read_epsilon: _epsilon,
    read_text: arguments.text,
    read_number: arguments.number,
    read_share: arguments.number,
}


def _plain(value: Any) -> Any:
    """The same in JSON's own types, which the file of a release can hold."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, Epsilon) else value
