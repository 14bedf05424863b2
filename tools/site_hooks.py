"""What MkDocs does beside its plugins when it builds the documentation (see mkdocs.yml).

* A folder in `nav` stands for all of its pages, so that a new proof or decision needs no entry.
* The page on the command line gets its text from the commands.
* CHANGELOG.md and CONTRIBUTING.md, which stand beside README.md, become pages.
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
from site_check import remote_resources
from site_commands import commands_page

COMMANDS = "::: htf commands"
FROM_ROOT = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav = _with_folders(config.nav, Path(config.docs_dir))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    root = Path(config.docs_dir).parent
    for page, source in FROM_ROOT.items():
        text = relinked((root / source).read_text("utf-8"))
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    if COMMANDS not in markdown:
        return markdown
    from htf.cli.main import cli

    return markdown.replace(COMMANDS, commands_page(cli, "htf"))


def on_post_build(config: MkDocsConfig) -> None:
    found = remote_resources(Path(config.site_dir))
    if found:
        raise PluginError("the site would load from elsewhere:\n" + "\n".join(found))


def relinked(text: str) -> str:
    """Links of a page beside README.md, as they must be inside docs."""
    text = re.sub(r"\]\(docs/", "](", text)
    return re.sub(r"\[([^\]]+)\]\((?!https?:|#|[\w/-]+\.md)[^)]+\)", r"\1", text)


def _with_folders(nav: Any, docs: Path) -> Any:
    if isinstance(nav, dict):
        return {title: _with_folders(item, docs) for title, item in nav.items()}
    if not isinstance(nav, list):
        return nav
    items: list[Any] = []
    for item in nav:
        if isinstance(item, str) and item.endswith("/"):
            pages = sorted((docs / item).glob("*.md"), key=lambda p: (p.name != "README.md", p.name))
            items += [str(page.relative_to(docs)) for page in pages]
        else:
            items.append(_with_folders(item, docs))
    return items
