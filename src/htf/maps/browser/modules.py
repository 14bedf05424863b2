"""Joins JavaScript modules into one script, because a page opened without a server cannot load modules."""

from __future__ import annotations

import posixpath
import re

from htf.maps.browser.assets import own

IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]+)";$', re.M)
EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.M)


def joined(entry: str) -> str:
    """The entry module after everything it imports. Each module is a function with its own names."""
    written: dict[str, str] = {}

    def write(name: str) -> None:
        text = own(name)
        for _, address in IMPORT.findall(text):
            if resolve(name, address) not in written:
                write(resolve(name, address))
        written[name] = _as_function(name, text)

    write(entry)
    return "\n".join(["const modules = {};", *written.values()])


def resolve(importer: str, address: str) -> str:
    """The name of a module that another one imports."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(importer), address))


def _as_function(name: str, text: str) -> str:
    names = ", ".join(EXPORT.findall(text))
    body = IMPORT.sub(
        lambda found: f'const {{{found[1]}}} = modules["{resolve(name, found[2])}"];', text
    )
    return f'modules["{name}"] = (() => {{\n{EXPORT.sub("", body)}\nreturn {{ {names} }};\n}})();'
