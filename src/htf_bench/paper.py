"""The paper's experiments [HTF, section 5], declared: which mechanisms, settings, data and figures.

The figures say what has to be run; one runner and one table of results serve them all. A mechanism that is not
installed is left out, with a note.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from htf.errors import InputError
from htf.forecasts.places import City, DataSet
from htf.frame.domain import Domain
from htf.mechanisms import registry
from htf_bench.datasets import GaussianSet, gaussian_sets
from htf_bench.figures import Curve, FigurePlan, Panel, Point, draw_curves, draw_dots
from htf_bench.results import Results
from htf_bench.specs import ZERO, BenchSpec, deepest_height, height_ladder, with_floors
from htf_bench.summary import Contender, contenders
from htf_bench.trials import Bench, Plan, plan_trials
from htf_bench.workloads import read_workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RANDOM = "random"
SIZES = ("2%", "6%", "10%")
LOWEST_EPSILON = "0.1"
STOP_COUNTS = (10, 50, 100)
# Pruning is part of the trees' own papers, and makes them stronger; without it they are nearer to what
# this paper describes, and show what too many levels cost.
VARIANTS: dict[str, dict[str, object]] = {
    "geo": {"budget": "geo"},
    "uniform": {"budget": "uniform"},
    "geo, not pruned": {"budget": "geo", "prune_below": 0},
}
LOS_ANGELES_POINTS = 3_500_000  # the paper's; the city takes its place with as many
HTF, HTF_LOW = "HTF, ε_prt' = 1e-3", "HTF, ε_prt' = 5e-4"
ZERO_FLOOR = (BenchSpec(ZERO), LOWEST_EPSILON)  # answers the same at every epsilon
TREES = {"kdtree": "kd-tree", "quadtree": "quadtree"}


@dataclass(frozen=True)
class Scale:
    """How much of it is run."""

    runs: int
    queries: int
    heights: tuple[int, ...]  # in binary cuts: a quadtree has half as many levels
    epsilons: tuple[str, ...]
    grid_epsilons: tuple[str, ...]  # for the comparison with grids, which is cheap
    data_sets: tuple[DataSet, ...]


FULL = Scale(
    runs=10,
    queries=2000,
    heights=(6, 8, 10, 12, 14, 16, 18, 20),
    epsilons=("0.1", "0.3", "0.5"),
    grid_epsilons=("0.1", "0.2", "0.3", "0.4", "0.5"),
    data_sets=(City("city", LOS_ANGELES_POINTS), *gaussian_sets()),
)
QUICK = Scale(
    runs=3,
    queries=500,
    heights=(6, 10, 14, 18),
    epsilons=("0.1", "0.5"),
    grid_epsilons=("0.1", "0.5"),
    data_sets=(City("city"), *gaussian_sets((50,), (1,))),
)


@dataclass
class Lineup:
    """The mechanisms as they enter on one map, by the names that figures and claims use."""

    domain: Domain
    heights: tuple[int, ...]
    singles: dict[str, BenchSpec] = field(default_factory=dict)
    ladders: dict[str, dict[int, BenchSpec]] = field(default_factory=dict)  # by binary cuts
    missing: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        deepest = deepest_height(self.domain) // 2 * 2
        self.heights = tuple(h for h in self.heights if h <= deepest) or (deepest,)
        for label, share in ((HTF, "0.001"), (HTF_LOW, "0.0005")):
            level: dict[str, object] = {"epsilon_partition_level": share}
            self._add(label, "htf-paper", level)
            self._add_ladder(label, "htf-paper", level, 1)
        for stop in STOP_COUNTS:
            self._add(stop_label(stop), "htf-paper", {"stop_count": stop})
        for tree, halvings in (("kdtree", 1), ("quadtree", 2)):
            for variant, settings in VARIANTS.items():
                self._add_ladder(tree_label(tree, variant), tree, settings, halvings)
        for name, label in (("ug", "UG"), ("ag", "AG")):
            self._add(label, name, {})
        for name in ("singular", "uniform", "privlet"):
            self._add(name, name, {})
        entered = {spec.mechanism for spec in self.singles.values()}
        for name in registry():  # those the paper cites, and any that came later
            if name not in entered and name not in TREES:
                self._add(name, name, {})

    def _add(self, label: str, name: str, settings: Mapping[str, object]) -> None:
        try:
            self.singles[label] = BenchSpec.of(name, settings)
        except InputError:  # not there, or not with this parameter
            self.missing.add(name)

    def _add_ladder(
        self, label: str, name: str, settings: Mapping[str, object], halvings: int
    ) -> None:
        levels = [height // halvings for height in self.heights]
        try:
            specs = height_ladder(name, settings, self.domain, levels)
        except InputError:
            self.missing.add(name)
            return
        self.ladders[label] = dict(zip(self.heights, specs, strict=True))

    def entrants(self) -> list[Contender]:
        """For the figure of all methods: trees at their best height, HTF at its own."""
        trees = [spec for label in tree_labels() for spec in self.ladders.get(label, {}).values()]
        others = [
            s for label, s in self.singles.items() if label not in map(stop_label, STOP_COUNTS)
        ]
        return contenders(with_floors([*others, *trees]))


class Design(NamedTuple):
    """The experiments to run on each data set, and what to draw and to judge."""

    scale: Scale
    plan: Plan
    lineups: dict[str, Lineup]  # by data set
    figures: dict[str, tuple[FigurePlan, ...]]
    notes: tuple[str, ...]

    def data_sets(self) -> list[DataSet]:
        return list(dict.fromkeys(trial.data_set for trial in self.plan.trials))

    def draw(self, results: Results) -> Iterator[tuple[str, Figure]]:
        """File names and figures."""
        for data_set, plans in self.figures.items():
            for plan in plans:
                yield f"{plan.name}-{data_set}.png", draw_curves(results, data_set, plan)
        panels = [(name, name, RANDOM) for name in self.lineups]
        entrants = next(iter(self.lineups.values())).entrants()
        title = f"All methods, random queries, ε = {LOWEST_EPSILON}"
        yield (
            "all-methods.png",
            draw_dots(results, panels, [LOWEST_EPSILON], entrants, title, "htf-paper"),
        )


def plan_paper(scale: Scale, own: Sequence[DataSet], runs: int, seed: int) -> Design:
    """The design for the scale's data sets and the user's own."""
    data_sets = [*scale.data_sets, *own]
    names = [data_set.name for data_set in data_sets]
    if len(set(names)) < len(names):
        raise InputError(f"data sets need different names, got {', '.join(names)}")
    bench = Bench(tuple(read_workload(w) for w in (RANDOM, *SIZES)), scale.queries, seed)
    lineups, figures, trials = {}, {}, []
    for data_set in data_sets:
        lineup = Lineup(data_set.domain, scale.heights)
        drawn = plan_figures(lineup, scale, _sweep_epsilons(data_set, scale))
        at_lowest = [(s, LOWEST_EPSILON) for e in lineup.entrants() for s in e.specs]
        pairs = [*at_lowest, *(pair for figure in drawn for pair in figure.pairs())]
        lineups[data_set.name], figures[data_set.name] = lineup, drawn
        trials += plan_trials(data_set, pairs, runs)
    missing = set.union(*(lineup.missing for lineup in lineups.values()))
    notes = tuple(f"{name} is not among the mechanisms: left out" for name in sorted(missing))
    return Design(scale, Plan(bench, tuple(trials)), lineups, figures, notes)


def _sweep_epsilons(data_set: DataSet, scale: Scale) -> tuple[str, ...]:
    """Height by height at every epsilon where the paper's map is stood in for; the paper runs its
    Gaussian sets at 0.1 only."""
    return (LOWEST_EPSILON,) if isinstance(data_set, GaussianSet) else scale.epsilons


def plan_figures(lineup: Lineup, scale: Scale, epsilons: Sequence[str]) -> tuple[FigurePlan, ...]:
    """The paper's figures 5, 6 and 7, each of six panels."""
    height = "height of the tree"
    by_height = "HTF against quadtrees, by height (a quadtree of k levels stands at 2k)"
    ours, kd, quad = (HTF, HTF_LOW), tree_labels("kdtree"), tree_labels("quadtree")
    plans = (
        (
            "data-dependent",
            "HTF against kd-trees, by height",
            height,
            _height_panels(lineup, epsilons, (*ours, *kd)),
        ),
        ("grids", "HTF against grids, by ε", "ε", _grid_panels(lineup, scale)),
        ("data-independent", by_height, height, _height_panels(lineup, epsilons, (HTF, *quad))),
    )
    return tuple(FigurePlan(*plan, ZERO_FLOOR) for plan in plans)


def _height_panels(
    lineup: Lineup, epsilons: Sequence[str], labels: Sequence[str]
) -> tuple[Panel, ...]:
    by_epsilon = [(f"random queries, ε = {epsilon}", RANDOM, epsilon) for epsilon in epsilons]
    by_size = [(f"squares of {s}, ε = {LOWEST_EPSILON}", s, LOWEST_EPSILON) for s in SIZES]
    return tuple(
        Panel(title, workload, tuple(_height_curves(lineup, epsilon, labels)))
        for title, workload, epsilon in [*by_epsilon, *by_size]
    )


def _height_curves(lineup: Lineup, epsilon: str, labels: Sequence[str]) -> Iterator[Curve]:
    for style, label in enumerate(labels):
        ladder = lineup.ladders.get(label, {})
        points = tuple(Point(height, spec, epsilon) for height, spec in ladder.items())
        own = lineup.singles.get(label)
        if points:
            yield Curve(label, points, style, None if own is None else (own, epsilon))


def _grid_panels(lineup: Lineup, scale: Scale) -> tuple[Panel, ...]:
    """One stop count a panel; then, by query size, all three."""
    stops = [stop_label(stop) for stop in STOP_COUNTS]
    wanted = [(f"stop count {n}, random queries", RANDOM, [stop_label(n)]) for n in STOP_COUNTS]
    wanted += [(f"squares of {size}", size, stops) for size in SIZES]
    styles = {label: style for style, label in enumerate([*stops, "UG", "AG"])}
    return tuple(
        Panel(
            title,
            workload,
            tuple(
                Curve(
                    label,
                    tuple(Point(float(e), lineup.singles[label], e) for e in scale.grid_epsilons),
                    styles[label],
                )
                for label in [*labels, "UG", "AG"]
                if label in lineup.singles
            ),
        )
        for title, workload, labels in wanted
    )


def stop_label(stop: int) -> str:
    return f"HTF, stop count {stop}"


def tree_label(tree: str, variant: str) -> str:
    return f"{TREES[tree]} ({variant})"


def tree_labels(*trees: str) -> list[str]:
    return [tree_label(tree, variant) for tree in trees or TREES for variant in VARIANTS]
