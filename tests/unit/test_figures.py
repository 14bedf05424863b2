"""docs/architecture.md says how much there is of everything: as counted now, and no more than was promised."""

from __future__ import annotations

import click
import pytest

import figures

PAGE = figures.PAGE.read_text()
SHOWN = figures.shown(PAGE)
NEAR = 0.02  # of lines and words: not every change needs the command
FIGURES = figures.count()


def number(name: str) -> int:
    return int(SHOWN[name].replace(",", ""))


def test_the_page_is_up_to_date() -> None:
    """If this fails: python tools/figures.py --write."""
    for name, counted in FIGURES.counted.items():
        near = 0.0 if "options" in name or "names" in name else NEAR
        assert number(name) == pytest.approx(counted, rel=near), name
    for folder, lines in FIGURES.folders.items():
        assert number(f"`{folder}`") == pytest.approx(lines, rel=0.1, abs=20), folder


@pytest.mark.parametrize("name", figures.CAPS)
def test_no_figure_passes_its_cap(name: str) -> None:
    assert FIGURES.counted[name] <= figures.CAPS[name]


def test_words_are_counted_without_tables_and_code() -> None:
    page = "# Two words\n\n```sh\nhtf demo\n```\n\n| a | b |\n\n    indented\n\n<!-- no --> [one](a b.md) <b>two</b>\n"
    assert figures.words(page) == 4


def test_options_of_commands_below_are_counted() -> None:
    @click.group()
    @click.option("--one")
    def above() -> None:
        pass

    @above.command()
    @click.option("--two")
    @click.argument("three")
    def below() -> None:
        pass

    assert figures.options(above) == ["one", "two"]
