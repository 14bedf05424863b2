"""Checks arguments at the public boundary, with one reader for each kind of value.

A reader returns the value in its plain type, or raises an InputError that names the argument, says what
it must be and what it is. For tables and arrays the error names only the type: they may hold data, and
their size may be a secret too.

NumPy is imported only when arrays are read, because the command line starts faster without it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Number, Real
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar

from htf.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

LONGEST = 100  # characters of a value in an error
LARGEST_SEED = 10**100
LARGEST = 2**63  # whole numbers stay below: beyond, nothing here has a use for them
SHOWN = (str, bytes, Number, type(None))
VOWELS = tuple("aeiouAEIOU")


def unfit(name: str, expected: str, value: object, remedy: str = "") -> InputError:
    """The error for an argument that is not what it must be."""
    then = f": {remedy}" if remedy else ""
    return InputError(f"{name} must be {expected}, got {described(value)}{then}")


def described(value: object) -> str:
    """A value for an error: plain values as they are, cut to a line; for all others, the type."""
    if isinstance(value, PurePath):
        value = str(value)
    if type(value).__name__ == "ndarray":
        return f"an array of {getattr(value, 'dtype', 'something')}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if not isinstance(value, SHOWN):
        kind = type(value).__name__
        return f"{'an' if kind.startswith(VOWELS) else 'a'} {kind}"
    try:
        text = repr(value) if isinstance(value, (str, bytes)) else str(value)
    except ValueError:  # Python writes no number of thousands of digits
        return "a number of more digits than can be shown"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def instance(value: object, kind: type[T], name: str, remedy: str = "") -> T:
    """A value of one of our own classes; `remedy` says how to make one."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__.startswith(VOWELS) else "a"
        raise unfit(name, f"{article} {kind.__name__}", value, remedy)
    return value


def text(value: object, name: str, remedy: str = "") -> str:
    if not isinstance(value, str):
        raise unfit(name, "a text", value, remedy)
    return value


def is_name(value: object, longest: int) -> bool:
    """Whether it is a printable text of at most so many characters, without blanks around it."""
    if not isinstance(value, str) or not 0 < len(value) <= longest:
        return False
    return value.isprintable() and value == value.strip()


def optional(read: Callable[..., T], value: object, *rest: Any) -> T | None:
    """None, or what a reader takes."""
    return None if value is None else read(value, *rest)


def choice(value: object, known: Collection[str], name: str) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in known:
        raise unfit(name, f"one of {', '.join(known)}", value)
    return value


def flag(value: object, name: str) -> bool:
    """True or False, and nothing that Python merely treats as one: "no" would be True."""
    if not isinstance(value, bool):
        raise unfit(name, "True or False", value)
    return value


def whole(value: object, name: str, least: int | None = None, remedy: str = "") -> int:
    """A whole number, also one of NumPy's, but neither True nor 3.0."""
    expected = "a whole number" if least is None else f"a whole number, {least} or more"
    if not is_whole(value) or (least is not None and int(value) < least):  # type: ignore[call-overload]
        raise unfit(name, expected, value, remedy)
    found: int = int(value)  # type: ignore[call-overload]
    if not -LARGEST < found < LARGEST:
        raise unfit(name, f"{expected}{' ' if least is None else ' and '}below 2**63", value)
    return found


def seed(value: object, name: str) -> int:
    """The seed of a generator: 0 or more, and it may be larger than other numbers."""
    if not is_whole(value) or not 0 <= int(value) < LARGEST_SEED:  # type: ignore[call-overload]
        raise unfit(name, "a whole number of at most 100 digits, 0 or more", value)
    return int(value)  # type: ignore[call-overload, no-any-return]


def is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def number(value: object, name: str) -> float:
    """A finite number, also one of NumPy's, a Decimal or a Fraction, but neither True nor "3"."""
    found = math.nan
    if is_number(value):
        try:
            found = float(value)  # type: ignore[arg-type]
        except (ValueError, OverflowError):  # a signalling NaN; what no float can hold
            found = math.nan
    if not math.isfinite(found):
        raise unfit(name, "a finite number", value)
    return found


def is_number(value: object) -> bool:
    return isinstance(value, (Real, Decimal)) and not isinstance(value, bool)


def path(value: object, name: str, remedy: str = "") -> Path:
    """The name of a file."""
    if isinstance(value, os.PathLike):
        value = value.__fspath__()
    if not isinstance(value, str):
        raise unfit(name, "the name of a file", value, remedy)
    return Path(value)


def function(value: object, name: str) -> None:
    """None, or a function. A class can be called too, but is refused."""
    if value is not None and (isinstance(value, type) or not callable(value)):
        raise unfit(name, "a function", value, "leave it out for none")


def items(value: object, name: str, expected: str) -> list[Any]:
    """A list or a tuple, and no text, which would be a list of its letters."""
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        raise unfit(name, expected, value)
    return list(value)


def mapping(value: object, name: str, expected: str) -> Mapping[str, Any]:
    """Names with values."""
    if not isinstance(value, Mapping):
        raise unfit(name, expected, value)
    for key in value:
        text(key, f"a name in {name}")
    return value


def fields(value: object, name: str, known: Sequence[str]) -> dict[str, Any]:
    """A dictionary made by `to_dict` of the same class: with these names, and no others."""
    found = mapping(value, name, f"a dictionary of {', '.join(known)}")
    missing, unknown = [n for n in known if n not in found], [n for n in found if n not in known]
    if missing or unknown:
        wrong = f"not {unknown[0]!r:.100}" if unknown else f"but has no {missing[0]}"
        raise InputError(f"{name} must have {', '.join(known)}, {wrong}")
    return dict(found)


def array(values: object, name: str, *, public: bool = False) -> NDArray[Any]:
    """Numbers in an array of any shape, of NumPy's whole numbers or floats.

    If values are `public`, the error shows the first that is no number.
    """
    import numpy as np

    expected = "numbers in rows of the same length"
    try:
        found = np.asarray(values)
        if found.dtype.kind == "U":  # numbers beside a text become texts
            found = np.asarray(values, dtype=object)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # such as ragged lists
        raise unfit(name, expected, values) from None
    if found.dtype.kind == "O" and found.size and found.ndim:
        found = _from_objects(found, name, expected, public)
    if found.dtype.kind not in "iuf":
        if found.size == 0 and found.ndim:
            return np.empty(found.shape)
        raise unfit(name, expected, values)
    return found


def numbers(values: object, name: str, *, public: bool = False) -> NDArray[np.float64]:
    """Numbers in an array of any shape, as floats. Some may be NaN or infinite."""
    import numpy as np

    return np.asarray(array(values, name, public=public), dtype=np.float64)


def row(values: object, kind: str, name: str) -> NDArray[Any]:
    """An array of NumPy with one axis, of whole numbers (`i`) or floats (`f`), as it is."""
    import numpy as np

    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype.kind != kind:
        what = {"i": "whole numbers", "f": "floats"}[kind]
        raise unfit(name, f"an array of {what} with one axis", values)
    return values


def whole_numbers(values: object, name: str) -> NDArray[np.int64]:
    """Whole numbers in an array of any shape. Floats without a fraction are taken, and truth values."""
    import numpy as np

    if isinstance(values, np.ndarray) and values.dtype.kind == "b":
        return values.astype(np.int64)
    found = array(values, name)
    fits = np.isfinite(found) & (found < LARGEST) & (found > -LARGEST) & (found == np.rint(found))
    if not np.all(fits):
        raise InputError(f"{name} must be whole numbers below 2**63, got {described(found)}")
    return found.astype(np.int64)


def _from_objects(
    found: NDArray[Any], name: str, expected: str, public: bool
) -> NDArray[np.float64]:
    """Numbers from objects, such as decimals, fractions and numbers beyond 64 bits; missing becomes NaN."""
    for one in found.ravel():
        if not (one is None or is_number(one)):
            told = described(one) if public else f"one of type {type(one).__name__}"
            raise InputError(f"{name} must be {expected}, got {told}")
    try:
        return found.astype(float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be {expected}, got one beyond all floats") from None
