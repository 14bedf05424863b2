"""The modules of the page: small, joined rightly, and with their words in one place.

`deno` formats, lints and checks them (`make lint`); this is what it does not look at.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from htf.maps.browser.assets import STATIC, own
from htf.maps.browser.modules import EXPORT, IMPORT, joined, resolve
from htf.serve.site import load_site

SCRIPTS = sorted(STATIC.rglob("*.js"))
STYLES = sorted(STATIC.rglob("*.css"))
OFFLINE = ("offline/offline.js",)
LABELS = re.search(r"export const labels = \{(.*?)\n\};", own("words.js"), re.S)


def name_of(path: Path) -> str:
    return path.relative_to(STATIC).as_posix()


def imports(name: str) -> dict[str, set[str]]:
    """The names that a module takes from each other one."""
    return {
        resolve(name, address): set(re.findall(r"\w+", names))
        for names, address in IMPORT.findall(own(name))
    }


def test_files_are_short() -> None:
    for path in [*SCRIPTS, *STYLES]:
        lines = path.read_text(encoding="utf-8").splitlines()
        most = 400 if path.name == "words.js" else 250  # a list, in which one searches
        assert len(lines) <= most, name_of(path)
        assert [line for line in lines if len(line) > 100] == [], name_of(path)


def test_modules_import_what_others_export() -> None:
    """In the one form that `htf.maps.browser.modules` and the server's versions of addresses understand."""
    for path in SCRIPTS:
        text, name = path.read_text(encoding="utf-8"), name_of(path)
        assert len(IMPORT.findall(text)) == len(re.findall(r"\bimport\b.*[{(*'\"]", text)), name
        assert len(EXPORT.findall(text)) == len(re.findall(r"^export\b", text, re.M)), name
        for target, names in imports(name).items():
            assert names <= set(EXPORT.findall(own(target))), name


def test_modules_import_no_circles() -> None:
    rest = {name_of(path): set(imports(name_of(path))) for path in SCRIPTS}
    while rest:
        ready = {name for name, needed in rest.items() if not needed & set(rest)}
        assert ready, f"these import each other: {sorted(rest)}"
        rest = {name: needed for name, needed in rest.items() if name not in ready}


def test_every_module_is_used() -> None:
    waiting, used = ["page/page.js", *OFFLINE], set()
    while waiting:
        name = waiting.pop()
        used.add(name)
        waiting += set(imports(name)) - used
    assert used == {name_of(path) for path in SCRIPTS}


def test_versions_follow_what_is_imported() -> None:
    """A browser that keeps files for minutes must not mix those of two versions."""
    site = {name: asset.packed.plain.decode() for name, asset in load_site().items()}
    for name in ("page/page.js", "shared/legend.js"):
        addresses = re.findall(r' from "([^"]+)"', site[name])
        assert addresses
        for address in addresses:
            target, _, version = address.partition("?v=")
            assert load_site()[resolve(name, target)].etag.startswith(version)
            assert len(version) == 8
    assert re.search(r'"static/page/page\.js\?v=\w{8}"', site["index.html"])
    assert load_site()["page/api.js"].media.startswith(b"text/javascript")
    assert re.search(r'"static/page/page\.css\?v=\w{8}"', site["index.html"])


@pytest.mark.parametrize("entry", OFFLINE)
def test_one_script_for_the_offline_map(entry: str) -> None:
    script = joined(entry)
    assert not re.search(r"^(import|export)\b", script, re.M)
    order = re.findall(r'^modules\["([^"]+)"\] = ', script, re.M)
    assert order[-1] == entry
    for place, name in enumerate(order):
        assert set(imports(name)) <= set(order[:place])


def test_labels_are_in_words_js() -> None:
    """Of the HTML all, and each is used; no script has sentences of its own."""
    assert LABELS is not None
    html = own("index.html") + own("offline/offline.html")
    named = set(re.findall(r'data-(?:text|label)="(\w+)"', html))
    assert named == set(re.findall(r"^  (\w+):", LABELS[1], re.M))
    words = set(re.findall(r"^  (\w+):", own("words.js").partition("export const words")[2], re.M))
    scripts = "".join(path.read_text(encoding="utf-8") for path in SCRIPTS)
    assert set(re.findall(r"\bwords\.(?!js)(\w+)", scripts)) == words
    for path in SCRIPTS:
        text = re.sub(r"/\*.*?\*/|//.*", "", path.read_text(encoding="utf-8"), flags=re.S)
        sentences = re.findall(r"[\"'`][^\"'`\n]*[a-z] [a-z]+ [a-z][^\"'`\n]*[\"'`]", text)
        assert path.name in ("words.js", "shaders.js") or sentences == []
