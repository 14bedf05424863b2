"""Damaged and doctored releases, made at random from sound ones of every mechanism, through the commands.

Half of the files are damaged as disks and networks do it: bits, blocks, ends, pieces of another file. The
other half are changed by somebody who knows the format, in the header or in one column, and sealed again.
Every command must end with success or with a refusal; and whatever `htf verify` accepts must have the
published columns of the file that it was made from.
"""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from reliability.commands import all_commands, quick_commands
from reliability.hostile import DOCTORED, GEO, HOSTILE, ODD, UNFOUNDED, Opened, make_seeds
from reliability.sandbox import SHARDS, Tally, sandbox

FILES = 4000  # at scale 1
ALL_COMMANDS_EVERY = 10
# Values that a header may be given in any place.
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**62, -(2**63), 10**30, 0.5, -0.0, 1e308, float("nan"), float("inf"),
    "", "0", "1e1000000000", "9" * 2000, "\x1b[2J\x1b]0;x\x07", "\ud800", "٣", "../../etc/passwd", "{}",
    "+proj=pipeline +step +proj=" * 50, "EPSG:4326", "EPSG:0", "[" * 500,
    [], {}, [[]], [0] * 3000, {"a": {"b": {"c": []}}}, [None, "x", {}], {"x": 1e400},
)  # fmt: skip
OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {"compression": "none"}, {"compression": "snappy"}, {"compression": "gzip"}, {"use_dictionary": False},
    {"data_page_version": "2.0"}, {"row_group_size": 7}, {"data_page_size": 16}, {"write_page_checksum": False},
    {"store_schema": False}, {"version": "1.0"},
)  # fmt: skip


def damage(chance: random.Random, content: bytes, other: bytes) -> tuple[str, bytes]:
    """As it happens to files."""
    changed, size = bytearray(content), len(content)
    footer = size - 8 - int.from_bytes(content[-8:-4], "little")
    kind = chance.choice(("bits", "footer", "end", "block", "repeat", "splice", "length"))
    if kind in ("bits", "footer"):
        for _ in range(chance.choice((1, 1, 2, 8))):
            changed[chance.randrange(footer if kind == "footer" else 0, size)] ^= 1 << chance.randrange(8)  # fmt: skip
    elif kind == "end":
        del changed[chance.randrange(size) :]
    elif kind == "length":
        changed[-8:-4] = chance.choice((0, 1, 2**31 - 1, 2**32 - 1, size, size - 12)).to_bytes(4, "little")  # fmt: skip
    else:
        start = chance.randrange(size)
        end = min(size, start + chance.choice((1, 16, 512, 4096)))
        if kind == "block":
            changed[start:end] = bytes(end - start)
        elif kind == "repeat":
            changed[start:start] = changed[start:end]
        else:
            changed[start:] = other[-(size - start) :]
    return f"damage: {kind}", bytes(changed)


def change_header(chance: random.Random, file: Opened) -> Opened:
    """Another value in some place of the header; or none, or one more, or one of another place."""
    whole = json.loads(json.dumps(file.header))
    for _ in range(chance.choice((1, 1, 2, 4))):
        holder, name = chance.choice(_places(whole))
        kind = chance.randrange(4)
        if kind == 0 and isinstance(holder, dict):
            holder.pop(name, None)
        elif kind == 1 and isinstance(holder, dict):
            holder[chance.choice(("more", "", "prior", "protection", "x" * 300))] = chance.choice(VALUES)  # fmt: skip
        elif kind == 2:
            there, key = chance.choice(_places(whole))
            with suppress(KeyError, IndexError):
                holder[name] = json.loads(json.dumps(there[key]))
        else:
            with suppress(IndexError):
                holder[name] = chance.choice(VALUES)
    return replace(file, header=whole)


def _places(value: Any) -> list[tuple[Any, Any]]:
    names = value.keys() if isinstance(value, dict) else range(len(value))
    found = [(value, name) for name in names]
    for name in names:
        if isinstance(value[name], (dict, list)):
            found += _places(value[name])
    return found


def change_column(chance: random.Random, file: Opened) -> Opened:
    """One column with other values, of another type, in another order, gone, or twice."""
    table = file.table
    name = chance.choice(table.column_names)
    place, column = table.column_names.index(name), table[name]
    kind = chance.choice(("values", "order", "gone", "twice", "name", "type", "rows"))
    if kind == "gone":
        table = table.remove_column(place)
    elif kind == "twice":
        table = table.append_column(chance.choice((name, "more")), column)
    elif kind == "name":
        names = list(table.column_names)
        names[place] = chance.choice(("", "count", "x"))
        table = table.rename_columns(names)
    elif kind == "rows":
        rows = [chance.randrange(len(table)) for _ in range(chance.choice((0, 1, len(table))))]
        table = table.take(pa.array(rows, pa.int64()))
    elif kind == "order":
        rows = chance.sample(range(len(table)), len(table))
        table = table.set_column(place, name, column.take(pa.array(rows)))
    elif kind == "type":
        table = table.set_column(place, name, pa.array([str(one) for one in column.to_pylist()]))
    else:
        values = [
            _other(chance, one) if chance.random() < 0.2 else one for one in column.to_pylist()
        ]
        table = table.set_column(place, name, pa.array(values, column.type))
    return replace(file, table=table)


def _other(chance: random.Random, value: Any) -> Any:
    if isinstance(value, bytes):
        return value[::-1] if chance.random() < 0.5 else value + b"\0"
    if isinstance(value, list):
        kind = chance.randrange(3)
        return (
            [] if kind == 0 else value * 2 if kind == 1 else [_other(chance, one) for one in value]
        )
    if isinstance(value, dict):
        name = chance.choice(list(value))
        return {**value, name: _other(chance, value[name])}
    if isinstance(value, int):
        return chance.choice((-1, 0, 1, value + 1, 2**31, 2**62, -(2**63), 2**63 - 1))
    return chance.choice((0.0, -1.0, value * 1.5, float("nan"), float("inf"), 1e308, 5e-324))


def make_file(chance: random.Random, seeds: dict[str, Path], path: Path) -> tuple[str, Path]:
    """What was done, and the seed that it was done to. Where the change cannot be written, damage."""
    seed, other = (seeds[chance.choice(sorted(seeds))] for _ in range(2))
    if chance.random() < 0.5:
        opened = Opened.read(seed)
        in_header = chance.random() < 0.5
        opened = (change_header if in_header else change_column)(chance, opened)
        sealed, options = chance.random() < 0.8, chance.choice(OPTIONS)
        with suppress(Exception):  # such as one that no Parquet file can hold
            (opened.sealed() if sealed else opened).write(path, **options)
            return (
                f"changed: {'header' if in_header else 'columns'}{', sealed' if sealed else ''}",
                seed,
            )
    done, content = damage(chance, seed.read_bytes(), other.read_bytes())
    path.write_bytes(content)
    return done, seed


def is_as_published(path: Path, seed: Path) -> bool:
    """All that other tools read is as in the sound file, but for the last digits of sums."""
    found, wanted = pq.read_table(path), pq.read_table(seed)
    told, due = (dict(table.schema.metadata) for table in (found, wanted))
    if found.column_names != wanted.column_names or told.keys() != due.keys():
        return False
    if told.get(GEO) != due.get(GEO):
        return False
    return all(_same(found[name], wanted[name]) for name in wanted.column_names)


def _same(found: Any, wanted: Any) -> bool:
    if not pa.types.is_floating(wanted.type) or found.type != wanted.type:
        return bool(found.combine_chunks().equals(wanted.combine_chunks()))
    here, there = found.to_numpy(), wanted.to_numpy()
    room = 1e-9 * max(np.abs(there).max(), 1e-300)
    return here.shape == there.shape and bool(np.all(np.abs(here - there) <= room))


def campaign(scale: float, seed: int, folder: Path) -> list[Tally]:
    seeds = make_seeds(folder, every_mechanism=True)
    number = max(int(FILES * scale), 20)
    with ThreadPoolExecutor(SHARDS) as pool:
        shares = [range(shard, number, SHARDS) for shard in range(SHARDS)]
        tallies = list(pool.map(lambda share: _fuzz(share, seed, seeds, folder), shares))
    return [_catalogue(seeds, folder, scale), *Tally.joined(tallies)]


def _fuzz(share: range, seed: int, seeds: dict[str, Path], folder: Path) -> list[Tally]:
    own = folder / f"shard{share.start}"
    own.mkdir()
    path = own / "fuzzed.parquet"
    tallies: dict[str, Tally] = {}
    with sandbox() as box:
        for number in share:
            done, sound = make_file(random.Random(f"{seed}:{number}"), seeds, path)
            tally = tallies.setdefault(done, Tally(f"releases, {done}"))
            every = number % ALL_COMMANDS_EVERY == 0
            for command in all_commands(path, own) if every else quick_commands(path):
                ending = box.run(*command)
                wrong = ending.wrong
                if not wrong and command[0] == "verify" and ending.code == 0:
                    wrong = "" if is_as_published(path, sound) else "accepted, though it differs"
                said = f"file {number} of {sound.stem}: htf {command[0]}: {wrong}\n{ending.said[-1500:]}"
                tally.add("accepted" if ending.code == 0 else "refused", said if wrong else "")
    return [tallies[name] for name in sorted(tallies)]


def _catalogue(seeds: dict[str, Path], folder: Path, scale: float) -> Tally:
    """The files that were made by hand."""
    tally, path = Tally("releases, made by hand"), folder / "by-hand.parquet"
    refused = {file.name for file in HOSTILE}
    judged = {file.name for file in (*DOCTORED, *UNFOUNDED)}
    files = (*DOCTORED, *HOSTILE, *UNFOUNDED, *ODD)
    with sandbox() as box:
        for file in files[:: 1 if scale >= 0.2 else 16]:
            path.unlink(missing_ok=True)
            file.make(seeds, path)
            for command in quick_commands(path):
                ending = box.run(*command)
                must = file.name in refused or (command[0] == "verify" and file.name in judged)
                wrong = ending.wrong or ("accepted" if must and ending.code == 0 else "")
                said = f"{file.name}: htf {command[0]}: {wrong}\n{ending.said[-1500:]}"
                tally.add("accepted" if ending.code == 0 else "refused", said if wrong else "")
    return tally
