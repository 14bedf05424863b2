"""What MkDocs does beside its plugins when it builds the documentation (see mkdocs.yml).

* A folder in `nav` stands for all of its pages, and `...` for the pages that nothing else names, so
  that a new page needs no entry.
* A list may follow a line of text directly, as on GitHub; Python-Markdown wants a blank line between.
* The page on the command line gets its text from the commands, that on HTTP from the OpenAPI document.
* CHANGELOG.md, CONTRIBUTING.md and SECURITY.md, which stand beside README.md, become pages.
* The built site must load nothing from elsewhere: it is read without a network, and a page that calls
  a server tells that server who reads it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from htf.cli.main import cli
from htf.serve.limits import Limits
from htf.serve.openapi import describe
from site_check import remote_resources
from site_commands import commands_page
from site_http import http_page

COMMANDS = "::: htf commands"
ROUTES = "::: htf serve"
LIST_ITEM = re.compile(r"([-*]|1\.) ")
FROM_ROOT = {
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    docs = Path(config.docs_dir)
    nav = _with_folders(config.nav, docs)
    named = {*_pages(nav), *FROM_ROOT}
    config.nav = _with_rest(nav, [page for page in _markdown(docs, docs) if page not in named])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    root = Path(config.docs_dir).parent
    for page, source in FROM_ROOT.items():
        text = relinked((root / source).read_text("utf-8"))
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, commands_page(cli, "htf"))
    if ROUTES in markdown:
        markdown = markdown.replace(ROUTES, http_page(describe(Limits(), has_token=True)))
    for page, source in FROM_ROOT.items():
        markdown = markdown.replace(f"](../{source}", f"]({page}")
    return with_lists_apart(markdown)


def on_post_build(config: MkDocsConfig) -> None:
    found = remote_resources(Path(config.site_dir))
    if found:
        raise PluginError("the site would load from elsewhere:\n" + "\n".join(found))


def with_lists_apart(markdown: str) -> str:
    """A blank line before each list that begins below a line of text."""
    lines: list[str] = []
    is_fenced = False
    for line in markdown.splitlines():
        is_fenced ^= line.startswith("```")
        before = lines[-1] if lines else ""
        begins = LIST_ITEM.match(line) and not LIST_ITEM.match(before) and not is_fenced
        if begins and before and not before.startswith((" ", "#")):
            lines.append("")
        lines.append(line)
    return "\n".join(lines) + "\n"


def relinked(text: str) -> str:
    """Links of a page beside README.md, as they must be inside docs."""
    text = re.sub(r"\]\(docs/", "](", text)
    for page, source in FROM_ROOT.items():
        text = text.replace(f"]({source})", f"]({page})")
    return re.sub(r"\[([^\]]+)\]\((?!https?:|#|[\w/-]+\.md)[^)]+\)", r"\1", text)


def _markdown(folder: Path, docs: Path) -> list[str]:
    """The pages below a folder, the one about the folder first."""
    found = sorted(folder.rglob("*.md"), key=lambda page: (page.name != "README.md", str(page)))
    return [str(page.relative_to(docs)) for page in found]


def _with_folders(nav: Any, docs: Path) -> Any:
    if isinstance(nav, dict):
        return {title: _with_folders(item, docs) for title, item in nav.items()}
    if not isinstance(nav, list):
        return nav
    items: list[Any] = []
    for item in nav:
        is_folder = isinstance(item, str) and item.endswith("/")
        items += _markdown(docs / item, docs) if is_folder else [_with_folders(item, docs)]
    return items


def _with_rest(nav: Any, rest: list[str]) -> Any:
    if isinstance(nav, dict):
        return {title: _with_rest(item, rest) for title, item in nav.items()}
    if not isinstance(nav, list):
        return nav
    items: list[Any] = []
    for item in nav:
        items += rest if item == "..." else [_with_rest(item, rest)]
    return items


def _pages(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    return [
        page for item in (nav.values() if isinstance(nav, dict) else nav) for page in _pages(item)
    ]
