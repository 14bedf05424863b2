"""Command-line options made of the fields of dataclasses, or of the defaults in a command's signature (htf.base.options): each
option stands once.

Most fields are an option each. Those of a group share one, which is given once for each: `--read decimal=, --read table=trips`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, Field, dataclass, fields
from functools import partial, wraps
from inspect import signature
from textwrap import wrap
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from htf.base import numerals
from htf.base.options import AUTO, EITHER, LAST, OPTION, Group, Joint, Option
from htf.cli.types import FileName, Number, WholeNumber, WholeNumberOr

F = TypeVar("F", bound=Callable[..., Any])
SEVERAL = {"tuple[str, ...]": "str", "tuple[Path, ...]": "Path", "Texts": "str", "Where": "str"}
FLAGS_COLUMN = 34  # of help: what Click leaves for flags and the margin
# By the type of a field, without "or None". All else is text.
TYPES: dict[str, click.ParamType[Any]] = {
    "int": WholeNumber(1),
    "int | str": WholeNumberOr(AUTO, 1),
    "Path": FileName(),
    "Path | str": FileName(),
    "Folder": FileName(file_okay=False),
}
RANGES: dict[str, Any] = {"int": WholeNumber, "float": Number}


@dataclass(frozen=True)
class Bundle:
    """All options of a dataclass, as one parameter of a command."""

    declaration: type
    only: tuple[str, ...] = ()  # of these fields; without any, of all
    as_record: bool = True  # or else what was given, by name

    def value(self, given: dict[str, Any]) -> Any:
        return self.declaration(**take(self.declaration, given)) if self.as_record else given


def record_of(declaration: type) -> Any:
    """The default of a parameter that takes a dataclass, of which each field is an option."""
    return Bundle(declaration)


def given_for(declaration: type, *only: str) -> Any:
    """The default of a parameter that takes what was given for options of a dataclass."""
    return Bundle(declaration, only, as_record=False)


def command(
    group: click.Group | None = None, **settings: Any
) -> Callable[[Callable[..., None]], click.Command]:
    """A decorator: a command whose arguments and options are the defaults in its signature, in that order."""

    def decorate(function: Callable[..., None]) -> click.Command:
        stated = [*signature(function).parameters.values()]

        @wraps(function)
        def call(**given: Any) -> None:
            bundles = {one.name: one.default for one in stated if isinstance(one.default, Bundle)}
            values = {one.name: given.get(one.name) for one in stated}
            function(**values | {name: one.value(given) for name, one in bundles.items()})

        for one in reversed(stated):
            if isinstance(one.default, Bundle):
                _make_all(one.default, call)
            else:
                field = copy(one.default)
                field.name, field.type = one.name, one.annotation
                _make(field)(call)
        made: click.Command = click.command(**settings)(call)
        if group is not None:
            group.add_command(made)
        return made

    return decorate


def _make_all(bundle: Bundle, command: Callable[..., None]) -> None:
    """Those of a group stand where its first field does."""
    groups: dict[Group, dict[str, Field[Any]]] = {}
    makers: list[Callable[[Any], Any]] = []
    for field in _declared(bundle.declaration):
        if bundle.only and field.name not in bundle.only:
            continue
        option = _option(field)
        if option.group is None:
            makers.append(_make(field))
            continue
        if option.group not in groups:
            groups[option.group] = {}
            makers.append(partial(_make_group, option.group, groups[option.group]))
        groups[option.group][option.name(field.name)] = field
    for maker in reversed(makers):
        maker(command)


def take(declaration: type, given: dict[str, Any]) -> dict[str, Any]:
    """Values for the fields of a dataclass, from what the command line gave; for those that it offers."""
    found = {}
    for field in _declared(declaration):
        option = _option(field)
        values = given if option.group is None else given.get(option.group.key) or {}
        if field.name in values and (option.read is None or values[field.name] is not None):
            value = values[field.name]
            found[field.name] = value if option.read is None else option.read(value)
    return found


def take_typed(declaration: type, given: dict[str, Any]) -> dict[str, Any]:
    """The same, but only what somebody typed, and no defaults."""
    source = click.get_current_context().get_parameter_source
    typed = {
        name: value
        for name, value in given.items()
        if source(name) is click.core.ParameterSource.COMMANDLINE
    }
    return take(declaration, typed)


def _declared(declaration: type) -> list[Field[Any]]:
    return [field for field in fields(declaration) if OPTION in field.metadata]


def _option(field: Field[Any]) -> Option:
    option: Option = field.metadata[OPTION]
    return option


def _kind(field: Field[Any]) -> str:
    return str(field.type).removesuffix(" | None")


def _type(field: Field[Any]) -> click.ParamType[Any] | None:
    """How one value is read. None: as text."""
    option, kind = _option(field), SEVERAL.get(_kind(field), _kind(field))
    if option.choices:
        return click.Choice(option.choices)
    return RANGES[kind](*option.within) if option.within else TYPES.get(kind)


def _make(field: Field[Any]) -> Callable[[F], F]:
    option, kind, is_required = _option(field), _kind(field), field.default is MISSING
    settings: dict[str, Any] = {"metavar": option.metavar}
    if option.read is None:
        settings["type"] = _type(field)
    if option.is_argument:
        number = -1 if kind in SEVERAL else 1
        return click.argument(field.name, nargs=number, required=is_required, **settings)
    settings["help"] = option.help
    if kind == "bool":
        settings["is_flag"] = True
    elif kind == "tuple[Path, Path]":
        settings |= {"type": FileName(), "nargs": 2}
    elif kind in SEVERAL:
        settings["multiple"] = True
    elif is_required:
        settings["required"] = True
    elif field.default is not None and option.read is None:
        settings |= {"default": field.default, "show_default": True}
    flags = option.flag or option.spoken(field.name)
    return click.option(*flags.split(), field.name, **settings)


# --- groups ---------------------------------------------------------------------------------------


def _make_group(group: Group, members: dict[str, Field[Any]], command: F) -> F:
    if isinstance(group, Joint):
        form: dict[str, Any] = {"type": Two(group, *members.values())}
    else:
        form = {"type": Named(members), "callback": _once, "cls": GroupOption, "multiple": True}
    return click.option(group.flag, group.key, help=group.help, **form)(command)


def _once(
    _: click.Context, param: click.Parameter, pairs: tuple[tuple[str, Any], ...]
) -> dict[str, Any]:
    """What was given, by the names of fields."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise click.BadParameter(f"{name.replace('_', '-')} is given twice.", param=param)
        found[name] = value
    return found


class Part(click.ParamType[Any]):
    """A text of which parts are read as options of their own would be."""

    def read(
        self, field: Field[Any], text: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """The value of a field. If an option has a reading of its own, that comes later."""
        kind = _type(field)
        if kind is None or _option(field).read is not None:
            return text
        try:
            return kind.convert(text, param, ctx)
        except click.BadParameter as error:
            self.fail(f"{_option(field).name(field.name)}: {error.message}", param, ctx)


class Two(Part):
    """Two values with a sign between them. The first may have the sign within."""

    def __init__(self, joint: Joint, first: Field[Any], last: Field[Any]) -> None:
        self.joint, self.fields, self.name = joint, (first, last), joint.metavar

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        first, sign, last = value.rpartition(self.joint.sign)
        sign = sign if re.fullmatch(self.joint.last, last) else ""
        texts = (first, last) if sign else (value, "")
        is_enough = {LAST: bool(value and not sign), EITHER: bool(sign and any(texts))}
        if not (all(texts) or is_enough.get(self.joint.may_lack, False)):
            self.fail(f"it takes {self.name}, got {numerals.shown(value)}.", param, ctx)
        pairs = zip(self.fields, texts, strict=True)
        return {one.name: self.read(one, text, param, ctx) for one, text in pairs if text}


class Named(Part):
    """A text NAME=VALUE, where the name is that of a field, and the value is read as that of an option of its own."""

    name = "NAME=VALUE"

    def __init__(self, members: dict[str, Field[Any]]) -> None:
        self.members = members

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        name, equals, text = value.partition("=")
        if not equals or name not in self.members:
            known = ", ".join(self.members)
            self.fail(
                f"it takes NAME=VALUE, where NAME is one of {known}, got {numerals.shown(value)}.",
                param,
                ctx,
            )
        field = self.members[name]
        return field.name, self.read(field, text, param, ctx)

    def shell_complete(
        self, _: click.Context, __: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [
            CompletionItem(f"{name}=", help=_option(field).help)
            for name, field in self.members.items()
            if name.startswith(incomplete)
        ]


class GroupOption(click.Option):
    """An option whose help has a line for each name."""

    type: Named

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        width = ctx.make_formatter().width - FLAGS_COLUMN
        lines = wrap(f"{self.help} Can be repeated, once for each name.", width)
        for name, field in self.type.members.items():
            option = _option(field)
            usual = field.default if option.read is None else None
            default = "" if usual is None else f"  [default: {usual}]"
            said = f"{name}={option.metavar}: {option.help}{default}"
            lines += wrap(said, width, subsequent_indent="  ", break_on_hyphens=False)
        return f"{self.opts[0]} {self.type.name}", "\n".join(["\b", *lines])
