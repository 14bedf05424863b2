"""What travels with every file that is made from a release: where it comes from and what it protects.

Such a file is computed from the release alone, so it costs no budget, and the statement of the release
is true of it. The digest is the one in the file of the release, so that the two can be matched.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from htf.files import write_whole
from htf.query.where import Where, show
from htf.release.file import digests

if TYPE_CHECKING:
    from htf.release.release import Release

EXPORT, SAMPLE = "htf-export", "htf-sample"  # keys in the metadata of files; a release has "htf"


def provenance(release: Release, rule: str) -> dict[str, Any]:
    """Plain values; `rule` says how the contents were computed."""
    return {
        "private": release.private,  # false: NOT PRIVATE, and the statement says why
        "epsilon": str(release.epsilon),
        "mechanism": release.mechanism,
        "statement": release.statement,
        "release_digest": digests(release),
        "software": f"htf-dp {version('htf-dp')}",
        "rule": rule,
    }


def told_where(where: Where) -> str:
    """A sentence for a rule that counts were asked of ranges of further axes; nothing where all of them."""
    ranges = (f"{name} from {show(low)} to {show(high)}" for name, (low, high) in where.items())
    return f" Counted: {', '.join(ranges)}." if where else ""


def as_metadata(key: str, about: dict[str, Any]) -> dict[bytes, bytes]:
    """For the schema of a Parquet file."""
    return {key.encode(): json.dumps(about).encode()}


def beside(path: Path) -> Path:
    """Where the statement of a file goes whose format has no place for it."""
    return path.with_name(f"{path.name}.statement.txt")


def write_beside(path: Path, about: dict[str, Any], *, overwrite: bool = False) -> None:
    """The statement first, then the other values, one a line."""
    lines = [f"{name}: {json.dumps(value)}" for name, value in about.items() if name != "statement"]
    text = f"About {path.name}\n\n{about['statement']}\n\n" + "\n".join(lines) + "\n"
    write_whole(beside(path), lambda unfinished: _write(unfinished, text), overwrite=overwrite)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
