"""The provenance in every file made from a release: where it comes from, and what it protects.

Such a file is computed from the release alone, so it costs no budget, and the privacy statement of the
release holds for it. The digest is that of the release file, so that the two can be matched.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from htf.files import write_text
from htf.release.file import digests
from htf.release.release import Release

EXPORT, SAMPLE = "htf-export", "htf-sample"  # keys in the metadata of files; a release has "htf"


def provenance(release: Release, rule: str) -> dict[str, Any]:
    """The provenance as plain values; `rule` says how the contents were computed."""
    from importlib.metadata import version  # slow to load

    return {
        "private": release.private,  # false: NOT PRIVATE, and the statement says why
        "epsilon": str(release.epsilon),
        "quantity": release.quantity,
        "counted": release.counted,
        "mechanism": release.mechanism,
        "statement": release.statement,
        "release_digest": digests(release),
        "software": f"htf-dp {version('htf-dp')}",
        "rule": rule,
    }


def as_metadata(key: str, about: dict[str, Any]) -> dict[bytes, bytes]:
    """The provenance as metadata for the schema of a Parquet file."""
    return {key.encode(): json.dumps(about).encode()}


def beside(path: Path) -> Path:
    """The text file that holds the statement of a file whose format has no place for it."""
    return path.with_name(f"{path.name}.statement.txt")


def write_beside(path: Path, about: dict[str, Any], *, overwrite: bool = False) -> None:
    """Write the statement first, then the other values, one per line."""
    lines = [f"{name}: {json.dumps(value)}" for name, value in about.items() if name != "statement"]
    text = f"About {path.name}\n\n{about['statement']}\n\n" + "\n".join(lines) + "\n"
    write_text(beside(path), text, overwrite=overwrite)
