"""Every command that reads a release, as it is run on one that may be hostile."""

from __future__ import annotations

from pathlib import Path

Command = tuple[str, ...]


def quick_commands(release: Path) -> list[Command]:
    """Those that the fuzzer runs on every file."""
    return [
        ("info", str(release)),
        ("verify", str(release)),
        ("query", str(release), "--box=-30.1,39.95,-30,40.05"),
    ]


def all_commands(release: Path, folder: Path) -> list[Command]:
    """But `htf serve`, which goes on for ever where it refuses nothing."""

    def written(command: str, ending: str, *more: str) -> Command:
        output = str(folder / f"out{ending}")
        return (command, str(release), "-o", output, "--overwrite", *more)

    return [
        *quick_commands(release),
        ("info", str(release), "--json"),
        written("sample", ".parquet", "--n", "100"),
        written("map", ".html"),
        written("map", ".png"),
        written("export", ".gpkg"),
        written("export", ".tif", "--pixels", "64"),
        ("forecast", "--epsilon", "0.5", "--runs", "1", "--like", str(release)),
    ]


def serve_command(release: Path) -> Command:
    return ("serve", str(release), "--port", "0", "--allow-not-private")
