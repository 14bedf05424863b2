"""What `htf evaluate` does: mechanisms are compared on exact data, and their results shown. For researchers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from htf.cli.screen import console, say, show_table
from htf.forecasts.accuracy import show_value
from htf.forecasts.workloads import Workload
from htf.frame.domain import Domain, FloatArray
from htf.privacy.epsilon import Epsilon
from htf.publication import DEFAULT_MECHANISM
from htf_bench import tuned
from htf_bench.cli.experiments import (
    check_results_folder,
    draw_all,
    mark_as_not_private,
    open_data,
    run_trials,
    show_failures,
    typed_command,
    write_reports,
)
from htf_bench.cli.options import Comparing, Running
from htf_bench.figures import draw_dots
from htf_bench.metrics import MAP_METRICS, MEANINGS, MRE, MRE_SHARE, UNITS
from htf_bench.results import Results
from htf_bench.specs import ALL, BenchSpec, read_specs
from htf_bench.summary import Contender, compare_all, contenders
from htf_bench.traditional import TRADITIONAL
from htf_bench.trials import Bench, Plan, check_data, plan_trials
from htf_bench.tuned import TUNED, compare_with_rivals, floor_rival, judged_specs, tuned_rivals
from htf_bench.workloads import Places, WholeMap, read_workloads

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLAIN_TITLE = "mean relative error in %,"


def compare_mechanisms(asked: Comparing, running: Running) -> None:
    """Run mechanisms, and rivals if wanted, and show, draw and write how far off each is."""
    columns, folder = (asked.x, asked.y), running.folder
    data_set = open_data(asked.points, columns, asked.bounds, asked.cells)
    inputs = [asked.points, *asked.workloads.split(",")]
    check_results_folder(folder, inputs, running.overwrite)
    field = _read_field(asked.mechanisms, data_set.domain)
    chosen = dict.fromkeys(str(Epsilon.of(part.strip())) for part in asked.epsilons.split(","))
    bench = Bench(tuple(read_workloads(asked.workloads)), asked.queries, running.seed)
    check_data(bench, data_set)
    pairs = [(spec, epsilon) for spec in field.specs for epsilon in chosen]
    plan = Plan(bench, tuple(plan_trials(data_set, pairs, asked.runs)))
    mark_as_not_private()
    results = _run(plan, field, folder, running.jobs)
    draw_all(folder, [_draw_figure(results, plan, field.entrants)])
    write_reports(results, plan, folder, field.entrants)
    mark_as_not_private()


class Field(NamedTuple):
    """Who is compared: the mechanisms that were named, and rivals at many settings, if any."""

    named: list[BenchSpec]
    judged: list[BenchSpec]  # against the rivals
    rivals: list[Contender]

    @property
    def specs(self) -> list[BenchSpec]:
        tried = [spec for rival in self.rivals for spec in rival.specs]
        return list(dict.fromkeys([*self.named, *tried]))

    @property
    def entrants(self) -> list[Contender]:
        return [*contenders(self.named), *self.rivals]


def _read_field(mechanisms: str | None, domain: Domain) -> Field:
    parts = (mechanisms or ALL).split(",")
    text = ",".join(part for part in parts if part.strip() != TUNED) or DEFAULT_MECHANISM
    named = read_specs(text, domain)
    if TUNED not in map(str.strip, parts):
        return Field(named, [], [])
    return Field(named, judged_specs(named, text), tuned_rivals(domain))


def _run(plan: Plan, field: Field, folder: Path, jobs: int) -> Results:
    """Run the trials and show their results."""
    if not field.rivals:
        results = run_trials(plan, folder, jobs)
        _show_summary(results, plan, field.entrants)
    else:
        settings = ", ".join(f"{r.specs[0].mechanism} {len(r.specs)}" for r in field.rivals)
        say(f"Settings of each rival: {settings}.")
        results = run_trials(plan, folder, jobs)
        _show_rivals(results, plan, field, folder)
    if any(workload.at_records for workload in plan.bench.workloads):
        console().print("* the boxes of this workload are themselves drawn from the sensitive data")
    show_failures(results)
    return results


def _show_rivals(results: Results, plan: Plan, field: Field, folder: Path) -> None:
    """The two relative errors on the screen, all metrics in a page and a file."""
    rivals = [*field.rivals, floor_rival()]
    comparisons = compare_with_rivals(results, plan, field.judged, rivals)
    marks = {workload.text: _mark(workload) for workload in plan.bench.workloads}
    for key, group in tuned.by_table(comparisons).items():
        if key[-1] in (MRE, MRE_SHARE):
            rows = [r for one in group for r in tuned.table_rows(one, marks[one.workload])]
            show_table(tuned.HEADINGS, rows, tuned.table_title(key))
    for line in tuned.conclusions(comparisons):
        console().print(line)
    tuned.write_rivals(comparisons, folder, typed_command())
    say(f"Against tuned rivals, all metrics: {folder / tuned.PAGE}")


def _mark(workload: Workload) -> str:
    return " *" if workload.at_records else ""


def _show_summary(results: Results, plan: Plan, entrants: Sequence[Contender]) -> None:
    workloads = [workload.text for workload in plan.bench.workloads]
    headers = ("mechanism", *(f">{w.text}{_mark(w)}" for w in plan.bench.workloads))
    # Squares around records hold few of them or many: which error counts there is a matter of taste.
    has_places = any(isinstance(workload, Places) for workload in plan.bench.workloads)
    for data_set in dict.fromkeys(trial.data_set.name for trial in plan.trials):
        for epsilon in dict.fromkeys(trial.epsilon for trial in plan.trials):
            for metric in (MRE, MRE_SHARE) if has_places else (MRE,):
                lines = compare_all(results, data_set, epsilon, workloads, entrants, metric)
                rows = [(line.label, *map(show_value, line.values)) for line in lines]
                what = f"{metric} in %, {MEANINGS[metric]};" if has_places else PLAIN_TITLE
                title = f"{data_set}, epsilon {epsilon}: {what} ± standard deviation over runs"
                show_table(headers, rows, title)
            for grid in (w.text for w in plan.bench.workloads if isinstance(w, WholeMap)):
                title = f"{data_set}, epsilon {epsilon}: {grid} as whole maps, ± standard deviation over runs"
                found = _by_label(results, data_set, epsilon, grid, entrants)
                rows = [(label, *(show_value(one[m]) for m in MAP_METRICS)) for label, one in found]
                units = (f">{metric} ({UNITS[metric]})" for metric in MAP_METRICS)
                show_table(("mechanism", *units), rows, title)
    if any(spec.mechanism in TRADITIONAL for one in entrants for spec in one.specs):
        console().print("rounding and cell-key have no epsilon and no guarantee")


def _by_label(
    results: Results, data_set: str, epsilon: str, workload: str, entrants: Sequence[Contender]
) -> list[tuple[str, dict[str, FloatArray]]]:
    """The values of each contender by metric of whole maps, the best by the first of them first."""
    found: dict[str, dict[str, FloatArray]] = {}
    for metric in MAP_METRICS:
        for line in compare_all(results, data_set, epsilon, [workload], entrants, metric):
            found.setdefault(line.contender.label, {})[metric] = line.values[0]
    return [(label, one) for label, one in found.items() if set(one) == {*MAP_METRICS}]


def _draw_figure(results: Results, plan: Plan, entrants: Sequence[Contender]) -> tuple[str, Figure]:
    """All mechanisms by workload, with one colour per epsilon."""
    name = plan.trials[0].data_set.name
    panels = [
        (f"{w.text}{' (drawn from the data)' if w.at_records else ''}", name, w.text)
        for w in plan.bench.workloads
    ]
    epsilons = list(dict.fromkeys(trial.epsilon for trial in plan.trials))
    title = f"{name}: error by workload"
    return f"{name}.png", draw_dots(results, panels, epsilons, entrants, title)
