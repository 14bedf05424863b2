"""Scripts and styles of maps in a browser: our own, and MapLibre's from the package that carries it.

Nothing of MapLibre is kept here but its licence, which goes wherever it goes.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from htf.errors import MissingExtraError

STATIC = Path(__file__).parent / "static"  # the page of `htf serve` and the offline map
LICENCE = "maplibre-licence.txt"


def own(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def find_maplibre(name: str) -> Path | None:
    """`maplibre-gl.js` or `maplibre-gl.css`, found without running the package, which is slow to import."""
    spec = find_spec("maplibre")
    for folder in (spec.submodule_search_locations if spec else None) or []:
        path = Path(folder) / "srcjs" / name
        if path.is_file():
            return path
    return None


def maplibre(name: str) -> str:
    path = find_maplibre(name)
    if path is None:
        raise MissingExtraError("maplibre", "map", "A map for a browser")
    return path.read_text(encoding="utf-8")
