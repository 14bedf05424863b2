"""Small pieces of HTML. Everything that is put into them is escaped here, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Sequence
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


def element(tag: str, *content: Content, css: str = "") -> Markup:
    return Markup(f"<{tag}{_class(css)}>{''.join(map(markup, content))}</{tag}>")


def join(*content: Content | None) -> Markup:
    return Markup("\n".join(markup(one) for one in content if one is not None))


def items(texts: Sequence[Content], css: str = "") -> Markup:
    return element("ul", *(element("li", one) for one in texts), css=css)


def rows(pairs: Sequence[tuple[str, Content]]) -> Markup:
    """A table of two columns, the first of which says what the second is."""
    lines = [
        f'<tr><th scope="row">{markup(name)}</th><td>{markup(value)}</td></tr>'
        for name, value in pairs
    ]
    return Markup(f'<table class="facts"><tbody>{"".join(lines)}</tbody></table>')


def table(headers: Sequence[str], lines: Sequence[Sequence[Content]]) -> Markup:
    """A table. Columns whose header starts with '>' are numbers."""
    aligned = [' class="number"' if header.startswith(">") else "" for header in headers]
    head = "".join(
        f'<th scope="col"{css}>{markup(header.lstrip(">"))}</th>'
        for header, css in zip(headers, aligned, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{css}>{markup(one)}</td>" for one, css in zip(line, aligned, strict=True))
        + "</tr>"
        for line in lines
    )
    return Markup(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")


def picture(address: str, alt: str, css: str = "") -> Markup:
    return Markup(f'<img{_class(css)} alt="{escape(alt, quote=True)}" src="{escape(address)}">')


def _class(css: str) -> str:
    return f' class="{css}"' if css else ""
