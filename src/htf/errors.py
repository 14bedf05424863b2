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
    """Base of every error that this package raises on purpose.

    Examples
    --------
    >>> import htf
    >>> try:
    ...     htf.Epsilon.of("much")
    ... except htf.HtfError:
    ...     print("refused")
    refused
    """


class InputError(HtfError):
    """A mistake in the call or in the input.

    Examples
    --------
    >>> import htf
    >>> htf.Domain.from_bounds(1, 0, 0, 1)
    Traceback (most recent call last):
        ...
    htf.errors.InputError: ...
    """


class ReleaseFileError(InputError):
    """A file that is damaged, foreign, from the future, or does not say what it should.

    Examples
    --------
    >>> import htf
    >>> from pathlib import Path
    >>> _ = Path("broken.parquet").write_text("not a release")
    >>> htf.Release.load("broken.parquet")
    Traceback (most recent call last):
        ...
    htf.errors.ReleaseFileError: ...
    """


class OutputError(InputError):
    """A file that cannot be written, or must not be. It was left as it is.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> matrix = htf.FrequencyMatrix.from_dense(domain, [[500, 20], [0, 30]])
    >>> release = htf.publish(matrix, epsilon=1, noise="seeded:1")
    >>> release.save("once.parquet")
    >>> release.save("once.parquet")
    Traceback (most recent call last):
        ...
    htf.errors.OutputError: ...
    """


class NothingInsideError(InputError):
    """No record is inside the bounds. For the curator's eyes: it is a fact about the data.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 1, 1, cells=4)
    >>> from htf.errors import NothingInsideError
    >>> try:
    ...     htf.read_points({"lon": [50.0], "lat": [50.0]}, domain)
    ... except NothingInsideError:
    ...     print("are the bounds right?")
    are the bounds right?
    """


class MissingExtraError(InputError):
    """An optional part is needed and not installed.

    Parameters
    ----------
    package : str
        The package that is missing.
    extra : str
        The extra of `htf-dp` that brings it.
    purpose : str
        What it is needed for.

    Examples
    --------
    >>> import htf
    >>> from htf.errors import MissingExtraError
    >>> raise MissingExtraError("matplotlib", "plot", "Drawing a map")
    Traceback (most recent call last):
        ...
    htf.errors.MissingExtraError: ...
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed. "
            f'Install it with: pip install "htf-dp[{extra}]"'
        )


class BudgetError(HtfError):
    """The privacy budget does not allow it. What was refused was neither drawn nor charged.

    Examples
    --------
    >>> import htf
    >>> pings = htf.BudgetFile.create("cap.sqlite", "pings", cap=1)
    >>> pings.charge(2, "htf")
    Traceback (most recent call last):
        ...
    htf.errors.BudgetError: ...
    """
