"""The errors of this package, as a tree.

    HtfError
    ├── InputError          a mistake in the call or in the input        (exit code 2)
    │   ├── ReleaseFileError    a file that is not a sound release
    │   ├── OutputError         a file that cannot or must not be written
    │   ├── NothingInsideError  no record is inside the bounds
    │   └── MissingExtraError   an optional part is not installed
    └── BudgetError         the privacy budget does not allow it         (exit code 3)

A message names the value that is wrong and says what to do. It never carries an exact count or a
coordinate of the data.
"""

from __future__ import annotations


class HtfError(Exception):
    """Base of every error that this package raises on purpose."""


class InputError(HtfError):
    """A mistake in the call or in the input."""


class ReleaseFileError(InputError):
    """A file that is damaged, foreign, from the future, or does not say what it should."""


class OutputError(InputError):
    """A file that cannot be written, or must not be. It was left as it is."""


class NothingInsideError(InputError):
    """No record is inside the bounds. For the curator's eyes: it is a fact about the data."""


class MissingExtraError(InputError):
    """An optional part is needed and not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed. "
            f'Install it with: pip install "htf-dp[{extra}]"'
        )


class BudgetError(HtfError):
    """The privacy budget does not allow it. What was refused was neither drawn nor charged."""
