"""The documentation site: what it may load, and that its pages cover what they promise."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import click
import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import htf
from promised import on_page, promised
from site_check import remote_resources
from site_commands import commands_page
from site_http import http_page

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://example.org/a.js"></script>',
        '<img src="//example.org/a.png">',
        '<img srcset="a.png 1x, https://example.org/b.png 2x">',
        '<link rel="stylesheet" href="http://example.org/a.css">',
        '<link rel="preconnect" href="https://example.org">',
        '<p style="background: url(https://example.org/a.png)">',
        "<style>@import 'https://example.org/a.css';</style>",
    ],
)
def test_a_page_that_loads_from_elsewhere_is_found(page: str, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(page)
    assert len(remote_resources(tmp_path)) == 1


def test_a_style_sheet_that_loads_from_elsewhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("@font-face { src: url('https://example.org/a.woff2') }")
    assert remote_resources(tmp_path) == ["a.css: url('https://example.org/a.woff2"]


def test_links_and_own_files_are_no_finding(tmp_path: Path) -> None:
    page = (
        '<a href="https://example.org">a link</a><script src="assets/a.js"></script>'
        '<img src="data:image/png;base64,//"><link rel="canonical" href="https://example.org/">'
        "<p>url(https://example.org) in a text</p>"
    )
    (tmp_path / "index.html").write_text(page)
    (tmp_path / "a.css").write_text("a { background: url(data:image/svg+xml;http://www.w3.org) }")
    assert remote_resources(tmp_path) == []


def test_the_reference_has_every_public_name() -> None:
    named = [one.removeprefix("htf.") for one in on_page()]
    assert sorted(one for one in named if "." not in one) == sorted(htf.__all__)
    assert len(promised()) == len(named)


def test_the_page_of_commands_has_every_command_and_its_options() -> None:
    from htf.cli.main import cli

    page = commands_page(cli, "htf")
    for name in cli.list_commands(click.Context(cli)):
        assert f"### htf {name}\n" in page
    assert "#### htf budget init\n" in page
    assert "| `--cap" in page
    assert "--help" not in page


def test_the_page_of_routes_has_all_of_the_document() -> None:
    from htf.serve.limits import Limits
    from htf.serve.openapi import describe

    document = describe(Limits(), has_token=True)
    page = http_page(document)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            _, _, rest = page.partition(f"### {method.upper()} {path}\n")
            part = rest.partition("\n### ")[0]
            assert all(f"| `{one['name']}` |" in part for one in operation.get("parameters", ()))
            errors = [status for status in operation["responses"] if status != "200"]
            assert not errors or f"| errors | {', '.join(errors)} |" in part
            assert all(f"| {status} |" in page for status in errors)
    for name, schema in document["components"]["schemas"].items():
        part = page.partition(f"### {name}\n")[2].partition("\n### ")[0]
        assert all(f"| `{member}` |" in part for member in schema["properties"])
    assert "| `releases[].axes[].names.levels[].labels` | array of string |" in page
    anchors = {name.lower() for name in document["components"]["schemas"]}
    assert anchors >= {*re.findall(r"\]\(#(\w+)\)", page)} >= {"answer", "release"}


def test_the_text_of_a_command_is_markdown() -> None:
    @click.command()
    @click.argument("file")
    @click.option(
        "--kind", type=click.Choice(["a", "b"]), help="One of *two*, x<y.", show_default=True
    )
    @click.option("--old", hidden=True, help="No longer said.")
    def one(file: str, kind: str, old: str) -> None:
        """Read FILE as `a_b`.

        \b
        one  two
        """

    page = commands_page(one, "one")
    assert "Read FILE as `a_b`.\n\n```text\none  two\n```" in page
    assert "| `--kind [a\\|b]` | One of \\*two\\*, x&lt;y. |" in page
    assert "--old" not in page


WORDS = [
    "analyst", "axis", "box", "budget-file", "cell", "count", "curator", "differential-privacy", "domain", "epsilon",
    "interval", "leaf", "ledger", "measurement", "mechanism", "noise", "part", "person", "person-level", "prior", "query",
    "record", "record-level", "region", "release", "unit", "zone",
]  # fmt: skip


def test_the_glossary_has_an_anchor_for_each_word() -> None:
    headings = re.findall(r"^## (.+)$", (DOCS / "glossary.md").read_text(), re.M)
    anchors = [heading.lower().replace(" ", "-") for heading in headings]
    assert anchors == sorted(anchors)
    assert set(WORDS) <= set(anchors)


def test_the_beliefs_on_the_page_about_epsilon() -> None:
    page = (DOCS / "concepts/epsilon.md").read_text()
    befores = [float(text) / 100 for text in re.findall(r"([\d.]+) % before \|", page)]
    rows = re.findall(r"^\| ([\d.]+) \| [\d.,]+ \| (.*% )\|$", page, re.M)
    assert len(befores) == 5
    assert len(rows) == 9
    for epsilon, cells in rows:
        for before, cell in zip(befores, cells.split("|"), strict=True):
            odds = math.exp(float(epsilon)) * before / (1 - before)
            number = cell.split()[0]
            digits = len(number.partition(".")[2])
            assert f"{100 * odds / (1 + odds):.{digits}f}" == number, (epsilon, before)


def test_the_page_about_the_file_names_all_that_is_in_one(tmp_path: Path) -> None:
    page = (DOCS / "reference/file-format.md").read_text()
    domain = htf.Domain.from_bounds(0, 0, 1, 1, cells=4)
    matrix = htf.FrequencyMatrix.from_dense(domain, np.full((4, 4), 50))
    htf.publish(matrix, 1, "uniform", noise="seeded:1").save(tmp_path / "one.parquet")
    schema = pq.read_schema(tmp_path / "one.parquet")
    header = json.loads(schema.metadata[b"htf"])
    assert isinstance(schema.field("measurements").type, pa.ListType)
    measured = [field.name for field in schema.field("measurements").type.value_type]
    for name in {*schema.names, *measured, *header, *header["ledger"][0]}:
        assert f"`{name}`" in page, name
    (query,) = re.findall(r"```sql\n(.*?)```", page, re.S)
    query = query.replace("release.parquet", str(tmp_path / "one.parquet"))
    assert [row[0] for row in duckdb.sql(query).fetchall()] == [0]
