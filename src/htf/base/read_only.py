"""Objects whose arrays are read-only, and stay so through a pickle or a copy.

NumPy makes unpickled arrays writable, even if they were not before. So a release sent to a worker process
could be changed there by mistake.
"""

from __future__ import annotations

from typing import Any


class ReadOnlyArrays:
    """A base for classes that make their own arrays read-only. It adds nothing else."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        slots = [name for cls in type(self).__mro__ for name in getattr(cls, "__slots__", ())]
        kept = {name: getattr(self, name) for name in slots if hasattr(self, name)}
        return _restore, (type(self), {**kept, **getattr(self, "__dict__", {})})


def make_read_only(*values: Any) -> None:
    """Make arrays read-only, also those in tuples; everything else is left alone."""
    import numpy as np  # the command line starts faster without it

    for value in values:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
        elif isinstance(value, tuple):
            make_read_only(*value)


def _restore(cls: type, state: dict[str, Any]) -> Any:
    found: Any = object.__new__(cls)
    for name, value in state.items():
        make_read_only(value)
        object.__setattr__(found, name, value)
    return found
