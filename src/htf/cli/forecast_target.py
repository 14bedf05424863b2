"""`htf forecast --target`: the least epsilon that reaches an error, with the curve of errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from htf.cli.meaning import say_meaning
from htf.cli.screen import console, progress_bar, say, say_json, show_table
from htf.cli.types import FileName
from htf.errors import InputError
from htf.files import check_output, write_whole
from htf.query.polygon_files import read_layer

if TYPE_CHECKING:
    from htf.forecasts.search import Found
    from htf.forecasts.simulation import Simulation
    from htf.forecasts.targets import Places, Target
    from htf.frame.domain import Domain

F = TypeVar("F", bound=Callable[..., Any])
ENDINGS = (".png", ".svg", ".pdf")
# Errors of real data at the epsilon that the made-up city named, over the target: what benchmarks/forecast_target.py and
# others found lies inside, with room. docs/forecast.md has the same words, which a test compares.
CITY_OFF = "0.05 to 3 times"
LIKE_OFF = "0.9 to 1.3 times"
CITY_IS_ROUGH = (
    f"The made-up city is a rough guide: real errors at this epsilon may be {CITY_OFF} the target. Use --like with an earlier "
    f"release or public points instead if you can: errors were then {LIKE_OFF} the target (docs/forecast.md)."
)


def target_options(command: F) -> F:
    """A decorator: the options that only a target has."""
    declared = (
        click.option(
            "--target",
            metavar="TEXT",
            help="Find the least epsilon for this error: '5 % in squares of 1 km', '20 records in squares of 500 m', "
            "'10 % in zones'. Instead of --epsilon.",
        ),
        click.option(
            "--zones",
            type=FileName(),
            metavar="FILE",
            help="For a target in zones: a public layer of them.",
        ),
        click.option(
            "-o",
            "--output",
            type=FileName(),
            metavar="FILE",
            help="With --target: draw the curve of errors as .png, .svg or .pdf.",
        ),
        click.option("--overwrite", is_flag=True, help="Replace the output if it exists."),
    )
    for decorate in reversed(declared):
        command = decorate(command)
    return command


@dataclass(frozen=True, kw_only=True)
class TargetOptions:
    """What the command line says about a target."""

    target: str | None
    zones: Path | None
    output: Path | None
    overwrite: bool

    def read(self, epsilon: str | None, inputs: tuple[Path | None, ...]) -> Target | None:
        """The target; None if epsilon is given. Refuses what does not go together."""
        from htf.forecasts.targets import Target

        if (epsilon is None) == (self.target is None):
            raise InputError(
                "give --epsilon to see what error to expect, or --target '5 % in squares of 1 km' to find the epsilon for an "
                "error: one of them"
            )
        if self.target is None:
            for name in ("zones", "output"):
                if getattr(self, name) is not None:
                    raise InputError(f"--{name} is for a target: give --target, or leave it out")
            return None
        target = Target.read(self.target)
        if (target.size is None) != (self.zones is not None):
            raise InputError(
                "a target in zones needs their layer: give --zones FILE"
                if target.size is None
                else "--zones is for a target in zones, such as '10 % in zones'"
            )
        if self.output is not None:
            if self.output.suffix.lower() not in ENDINGS:
                raise InputError(
                    f"the curve is drawn as .png, .svg or .pdf, got {self.output.name}"
                )
            check_output(self.output, overwrite=self.overwrite, inputs=[*inputs, self.zones])
        return target

    def places(self, target: Target, domain: Domain) -> Places:
        """The squares or zones to ask about, on this map."""
        from htf.forecasts.targets import InZones, Squares

        if self.zones is None:
            return Squares.of(target, domain)
        from htf.query.shapes import need_shapely, read_shapes

        shapes = read_shapes(read_layer(self.zones), domain)
        return InZones.of(tuple(need_shapely().to_wkb(shapes)), domain)


@dataclass(frozen=True)
class Answer:
    """What was found, and on what."""

    plan: Simulation
    found: Found
    quantity: str
    stand_in: dict[str, Any]
    words: str
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        from htf.privacy.meaning import Meaning

        found, plan = self.found, self.plan
        target = found.target
        meaning = None
        if found.epsilon is not None:
            meaning = Meaning(found.epsilon, plan.protection).to_dict()
        return {
            "simulation": True,
            "budget_spent": 0,
            "notes": list(self.notes),
            "stand_in": self.stand_in,
            "grid": list(plan.stand_in.domain.shape),
            "mechanism": plan.spec.mechanism,
            "parameters": plan.spec.parameters,
            "target": {
                "text": target.told(self.quantity),
                "limit": target.limit,
                "relative": target.is_relative,
            },
            "epsilon": None if found.epsilon is None else str(found.epsilon),
            "meaning": meaning,
            "typical_count": found.count,
            "curve": [
                {"epsilon": str(epsilon), "typical_error": error, "releases": number}
                for epsilon, error, number in found.curve
            ],
        }


def search(plan: Simulation, places: Places, target: Target) -> Found:
    """Simulate, with a progress bar."""
    from htf.forecasts.search import find_epsilon

    with progress_bar() as bar:
        task = bar.add_task("starting", total=None)
        return find_epsilon(
            plan, places, target, plan.runs, lambda label: bar.update(task, description=label)
        )


def show(answer: Answer, options: TargetOptions, *, as_json: bool) -> None:
    """Print what was found, and draw the curve if that is wanted."""
    if as_json:
        say_json(json.dumps(answer.to_dict(), indent=2, ensure_ascii=False))
    else:
        _show(answer)
    if options.output is not None:
        _draw(answer, options.output, options.overwrite)
        say(f"Wrote {options.output}.", err=as_json)


def _show(answer: Answer) -> None:
    found, screen = answer.found, console()
    target = found.target
    screen.print(f"{_headline(answer)}\n", style="bold")
    if found.epsilon is not None:
        say_meaning(found.epsilon, answer.plan.protection, briefly=True)
    where = f"{target.place[0].upper()}{target.place[1:]}"
    around = "" if target.size is None else " around records"
    screen.print(
        f"Simulated {len(found.tried)} releases by {answer.plan.spec.label} on "
        f"{' x '.join(map(str, answer.plan.stand_in.domain.shape))} cells, on {answer.words}. {where}{around} typically hold "
        f"{_rounded(found.count)} {answer.quantity}. The typical error is the median: half of them are off by less."
    )
    unit = "%" if target.is_relative else answer.quantity
    scale = 100 if target.is_relative else 1
    rows = [
        (str(epsilon), _rounded(scale * error), number) for epsilon, error, number in found.curve
    ]
    show_table((">epsilon", f">typical error, {unit}", ">releases simulated"), rows)
    for note in answer.notes:
        screen.print(note)


def _headline(answer: Answer) -> str:
    from htf.forecasts.search import LEAST, MOST

    found = answer.found
    told = found.target.told(answer.quantity)
    if found.epsilon is None:
        return f"No epsilon up to {MOST:g} reaches {told}: ask for less, or about larger places"
    if found.is_least:
        return f"Even epsilon {LEAST:g} reaches {told}; less was not tried"
    return f"The least epsilon for {told}: about {found.epsilon}"


def _draw(answer: Answer, output: Path, overwrite: bool) -> None:
    """The same answer always gives the same file: no date, and no random names."""
    from htf.forecasts.curve_figure import draw_curve

    footer = f"A simulation by {answer.plan.spec.label} on {answer.words}. It spent no budget; real data will differ."
    figure = draw_curve(answer.found, answer.quantity, footer)
    from matplotlib import rc_context

    kind = output.suffix.lower().removeprefix(".")
    metadata: dict[str, Any] = {"Title": _headline(answer)}
    metadata |= {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
    with rc_context({"svg.hashsalt": "htf"}):
        write_whole(
            output,
            lambda unfinished: figure.savefig(unfinished, format=kind, dpi=150, metadata=metadata),
            overwrite=overwrite,
        )


def _rounded(value: float) -> str:
    text = f"{value:.3g}"
    return text if abs(value) < 10 else f"{float(text):,.4g}"
