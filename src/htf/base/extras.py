"""Packages that only some parts need, and that an extra installs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from htf.errors import MissingExtraError


def need(package: str, extra: str, purpose: str) -> Any:
    """The package, or an error that names what to install."""
    try:
        return import_module(package)
    except ImportError:
        raise MissingExtraError(package, extra, purpose) from None
