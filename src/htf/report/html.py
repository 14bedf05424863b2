"""Small pieces of HTML. Everything that is put into them is escaped here, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

UNIT = re.compile(r"(?<=\d) (?=(?:%|km|m)\b|%)|(?<=[±=]) (?=\d)|(?<=ε) (?=[=])")


@dataclass(frozen=True, slots=True)
class Markup:
    """Text that is HTML already."""

    text: str

    def __str__(self) -> str:
        return self.text


Content = str | Markup


def markup(content: Content) -> str:
    """HTML for a text, which is escaped, or for what is HTML already. A number stays on one line with its unit."""
    if isinstance(content, Markup):
        return content.text
    return escape(UNIT.sub("\u00a0", content), quote=True)


def element(tag: str, *content: Content, css: str = "", scope: str = "") -> Markup:
    """An element, with a class and a scope if they are given."""
    given = f' scope="{scope}"' if scope else ""
    return Markup(f"<{tag}{given}{_class(css)}>{''.join(map(markup, content))}</{tag}>")


def join(*content: Content | None) -> Markup:
    return Markup("\n".join(markup(one) for one in content if one is not None))


def items(texts: Iterable[Content]) -> Markup:
    return element("ul", *(element("li", one) for one in texts))


def rows(pairs: Iterable[tuple[str, Content]]) -> Markup:
    """A table of two columns, the first of which says what the second is."""
    lines = (
        element("tr", element("th", name, scope="row"), element("td", value))
        for name, value in pairs
    )
    return element("table", element("tbody", *lines), css="facts")


def table(headers: Sequence[str], lines: Iterable[Sequence[Content]]) -> Markup:
    """A table. Columns whose header starts with '>' are numbers."""
    kinds = ["number" if header.startswith(">") else "" for header in headers]
    columns = zip(headers, kinds, strict=True)
    head = (element("th", one.lstrip(">"), scope="col", css=css) for one, css in columns)
    body = [
        element("tr", *(element("td", one, css=css) for one, css in zip(line, kinds, strict=True)))
        for line in lines
    ]
    top = element("thead", element("tr", *head))
    return element("table", top, element("tbody", *body))


def section(title: str, *content: Content) -> Markup:
    """A part of a page in a column."""
    return element("div", element("h2", title), *content)


def picture(address: str, alt: str, css: str = "") -> Markup:
    return Markup(f'<img{_class(css)} alt="{escape(alt, quote=True)}" src="{escape(address)}">')


def _class(css: str) -> str:
    return f' class="{css}"' if css else ""
