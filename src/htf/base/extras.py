"""Packages that come with an extra of `htf-dp`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from htf.errors import MissingExtraError


def need(purpose: str, *packages: str, extra: str = "geo") -> Any:
    """The first of these packages, or an error that names what to install."""
    for package in packages:
        try:
            import_module(package)
        except ImportError:
            raise MissingExtraError(package, extra, purpose) from None
    return import_module(packages[0])
