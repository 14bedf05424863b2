"""What `htf forecast` shows: errors by kind of area, where they come from, or the curve of a target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from htf.base.figures import save_picture
from htf.cli.meaning import say_meaning
from htf.cli.screen import console, remark, say, say_json, show_table
from htf.files import write_whole
from htf.forecasts.accuracy import rounded, show_number, show_value
from htf.forecasts.curve_figure import draw_curve
from htf.forecasts.search import LEAST, MOST, Found
from htf.forecasts.simulation import CAVEAT, RELATIVE_TO, Area, Forecast, Simulation
from htf.frame.domain import FloatArray
from htf.privacy.protection import different_people, explain_people

# Errors of real data at the epsilon that the made-up city named, over the target: what benchmarks/forecast_target.py and
# others found lies inside, with room. docs/forecast.md has the same words, which a test compares.
CITY_OFF = "0.05 to 3 times"
LIKE_OFF = "0.9 to 1.3 times"
CITY_IS_ROUGH = (
    f"The made-up city is a rough guide: real errors at this epsilon may be {CITY_OFF} the target. Use --like with an earlier "
    f"release or public points instead if you can: errors were then {LIKE_OFF} the target (docs/forecast.md)."
)


def give_out(
    found: Forecast | Found, output: Path | None, *, overwrite: bool, as_json: bool
) -> None:
    """Print what was found, and draw it if it has a curve."""
    if as_json:
        say_json(found.to_dict())
    elif isinstance(found, Found):
        _show_found(found)
    else:
        _show_forecast(found)
    if output is not None and isinstance(found, Found):
        _draw_found(found, output, overwrite)
        (remark if as_json else say)(f"Wrote {output}.")


def _show_forecast(found: Forecast) -> None:
    """Print what error to expect, with half and double the budget."""

    plan, screen = found.plan, console()
    screen.print(
        f"What to expect of {plan.label} at epsilon {plan.epsilon} on {_cells(plan)} cells\n",
        style="bold",
    )
    say_meaning(plan.epsilon, plan.protection, briefly=True)
    times = "once" if plan.runs == 1 else f"{plan.runs} times"
    screen.print(
        f"Simulated {times} on {_stand_in(plan)}. Each time, up to {plan.queries:,} areas of each kind were counted."
    )
    if plan.stand_in.crowd is not None or plan.protection.weight is not None:
        screen.print(
            f"Counted: {found.counted}. Errors are those against all {found.quantity}. "
            f"{explain_people(found.quantity)}".strip(),
            markup=False,
        )
    _show_areas(found.main.areas, found.quantity)
    for area in found.main.areas:
        if area.kind.at_records:
            screen.print(f"• {area.told(found.quantity)}")
    if plan.stand_in.crowd is not None:
        _show_parts(found)
    _show_budgets(found)
    for note in (*plan.stand_in.notes, CAVEAT):
        screen.print(note)


def _cells(plan: Simulation) -> str:
    return " x ".join(map(str, plan.prepared.domain.shape))


def _stand_in(plan: Simulation) -> str:
    """The origin of the records, and how many there are of them and of people."""

    crowd, who = plan.stand_in.crowd, ""
    if crowd is not None:
        who = f"{crowd.people:,} {different_people(plan.protection.per)} with about "
    return f"{plan.stand_in.words}: {who}{plan.records:,} records"


def _show_parts(found: Forecast) -> None:
    """Bias and noise apart, if there is any bias."""
    areas = found.main.areas
    console().print()
    if not any(area.biases.any() for area in areas):
        console().print("All of the error is noise: no record is dropped, so there is no bias.")
        return
    rows = [
        (one.name, *(rounded(float(part.mean())) for part in (one.biases, one.noises, one.errors)))
        for one in areas
    ]
    headers = (f"typical error, in {found.quantity}", ">bias", ">noise", ">both")
    show_table(headers, rows, "Where the error comes from")
    console().print(
        "The bias is the error of the exact counts of what is kept, multiplied as in the release. The noise is the rest. "
        "All three are medians, so they do not add up."
    )


def _show_areas(areas: Sequence[Area], quantity: str) -> None:

    rows = [
        (
            area.name,
            "" if area.share is None else f"{show_number(100 * area.share)} %",
            rounded(area.count, 3),
            _with_spread(area.errors),
            rounded(area.large_error),
            show_value(area.relative_errors),
        )
        for area in areas
    ]
    headers = (
        "area", ">share of map", ">true count", ">typical error", ">1 in 20 above", ">mean error, %",
    )  # fmt: skip
    show_table(headers, rows)
    console().print(
        f"Share and count are medians. The typical error is the median, in {quantity}; ± is the standard deviation "
        f"between releases. In the last column, {RELATIVE_TO}.\n"
    )


def _with_spread(values: FloatArray) -> str:
    mean = rounded(float(values.mean()))
    return f"{mean} ± {rounded(float(values.std(ddof=1)))}" if len(values) > 1 else mean


def _show_budgets(found: Forecast) -> None:
    shown = [outlook for outlook in found.outlooks if outlook.areas]
    if len(shown) > 1:
        rows = [
            (same[0].name, *(rounded(area.error) for area in same))
            for same in zip(*(outlook.areas for outlook in shown), strict=True)
        ]
        headers = (f"typical error, in {found.quantity}", *(f">epsilon {o.epsilon}" for o in shown))
        console().print()
        show_table(headers, rows, "Errors with more budget, and with less")
    for outlook in found.outlooks:
        if outlook is found.main:
            continue
        if outlook.failure:
            effect = f"is not possible: {outlook.failure}"
        else:
            effect = f"makes typical errors about {found.change(outlook):.2g} times as large."
        console().print(f"Epsilon {outlook.epsilon} {effect}")
    console().print()


def _show_found(found: Found) -> None:
    """Print the epsilon for a target, and the curve of errors."""

    plan, target, screen = found.plan, found.target, console()
    quantity = plan.protection.quantity
    screen.print(f"{_headline(found)}\n", style="bold")
    if found.epsilon is not None:
        say_meaning(found.epsilon, plan.protection, briefly=True)
    where = f"{target.place[0].upper()}{target.place[1:]}"
    around = "" if target.size is None else " around records"
    screen.print(
        f"Simulated {len(found.tried)} releases by {plan.label} on {_cells(plan)} cells, on {_stand_in(plan)}. "
        f"{where}{around} typically hold {_more(found.count)} {quantity}. The typical error is the median: half of them are "
        "off by less."
    )
    unit = "%" if target.is_relative else quantity
    scale = 100 if target.is_relative else 1
    rows = [(str(epsilon), _more(scale * error), number) for epsilon, error, number in found.curve]
    show_table((">epsilon", f">typical error, {unit}", ">releases simulated"), rows)
    rough = (CITY_IS_ROUGH,) if plan.stand_in.kind == "city" else ()
    for note in (*plan.stand_in.notes, *rough, CAVEAT):
        screen.print(note)


def _headline(found: Found) -> str:

    told = found.target.told(found.plan.protection.quantity)
    if found.epsilon is None:
        return f"No epsilon up to {MOST:g} reaches {told}: ask for less, or about larger places"
    if found.is_least:
        return f"Even epsilon {LEAST:g} reaches {told}; less was not tried"
    return f"The least epsilon for {told}: about {found.epsilon}"


def _draw_found(found: Found, output: Path, overwrite: bool) -> None:
    """Draw the curve. The same answer always gives the same file: no date, and no random names."""

    footer = f"A simulation by {found.plan.label} on {_stand_in(found.plan)}. It spent no budget; real data will differ."
    figure = draw_curve(found, found.plan.protection.quantity, footer)
    kind = output.suffix.lower().removeprefix(".")

    def save(unfinished: Path) -> None:
        save_picture(figure, unfinished, kind, _headline(found), footer)

    write_whole(output, save, overwrite=overwrite)


def _more(value: float) -> str:
    text = f"{value:.3g}"
    return text if abs(value) < 10 else f"{float(text):,.4g}"
