"""Command-line options made of the fields of dataclasses (htf.base.options): each option stands once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar

import click

from htf.base.options import AUTO, OPTION, Option
from htf.cli.types import FileName, WholeNumber, WholeNumberOr

F = TypeVar("F", bound=Callable[..., Any])
SEVERAL = ("tuple[str, ...]", "Texts")
# By the type of a field, without "or None". All else is text.
TYPES: dict[str, click.ParamType[Any]] = {
    "int": WholeNumber(1),
    "int | str": WholeNumberOr(AUTO, 1),
    "Path": FileName(),
    "Path | str": FileName(),
}


def options_of(declaration: type, without: tuple[str, ...] = ()) -> Callable[[F], F]:
    """A decorator: the options of a dataclass, in the order of its fields, but for those that a command has no use for."""

    def decorate(command: F) -> F:
        for field in reversed(_declared(declaration)):
            command = command if field.name in without else _make(field)(command)
        return command

    return decorate


def option_of(declaration: type, name: str, **changes: Any) -> Callable[[F], F]:
    """A decorator: one option of a dataclass, perhaps with another default or help."""
    (field,) = (field for field in _declared(declaration) if field.name == name)
    return _make(field, **changes)


def take(declaration: type, given: dict[str, Any]) -> dict[str, Any]:
    """Values for the fields of a dataclass, from what the command line gave; for those that it offers."""
    return {
        field.name: _read(field.metadata[OPTION], given[field.name])
        for field in _declared(declaration)
        if field.name in given
        and (field.metadata[OPTION].read is None or given[field.name] is not None)
    }


def _declared(declaration: type) -> list[Field[Any]]:
    return [field for field in fields(declaration) if OPTION in field.metadata]


def _make(field: Field[Any], **changes: Any) -> Callable[[F], F]:
    option: Option = field.metadata[OPTION]
    flags = option.flag or f"--{field.name.replace('_', '-')}"
    settings: dict[str, Any] = {"help": option.help, "metavar": option.metavar}
    kind = str(field.type).removesuffix(" | None")
    if kind == "bool":
        settings["is_flag"] = True
    elif kind in SEVERAL:
        settings["multiple"] = True
    elif field.default is MISSING:
        settings["required"] = True
    elif field.default is not None and option.read is None:
        settings |= {"default": field.default, "show_default": True}
    if option.read is None:
        settings["type"] = TYPES.get(kind)
    return click.option(*flags.split(), field.name, **{**settings, **changes})


def _read(option: Option, value: Any) -> Any:
    return value if option.read is None else option.read(value)
