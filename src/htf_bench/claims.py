"""The claims of the paper's section 5, in its words, and the test by which each of them holds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from itertools import pairwise, product
from pathlib import Path
from typing import NamedTuple

from htf.files import write_text
from htf.forecasts.accuracy import show_number
from htf.forecasts.places import City
from htf_bench.datasets import GaussianSet
from htf_bench.judging import (
    HELD,
    IN_PART,
    NOT_HELD,
    UNDECIDED,
    UNKNOWN,
    Comparison,
    Finding,
    Judge,
)
from htf_bench.paper import (
    HTF,
    HTF_LOW,
    LOS_ANGELES_POINTS,
    LOWEST_EPSILON,
    RANDOM,
    SIZES,
    STOP_COUNTS,
    Design,
    stop_label,
    tree_labels,
)
from htf_bench.results import MARKING, Results
from htf_bench.specs import UNIFORM
from htf_bench.summary import table_of

KD, QUAD, GRIDS = tree_labels("kdtree"), tree_labels("quadtree"), ("UG", "AG")
RUN = (*KD, *QUAD, *GRIDS, "singular", UNIFORM, "privlet")  # the paper runs these besides HTF
NEAR = 1.1  # times the least error still counts as near the optimum
PAPERS_HEIGHTS = {"0.1": 15, "0.3": 16, "0.5": 17}
Comparisons = Iterator[Comparison | None]
Checks = Iterator[tuple[bool, str]]


def weighed(compare: Callable[..., Comparisons]) -> Callable[..., Finding]:
    """A function that finds what the comparisons come to."""
    return wraps(compare)(lambda judge, *about: judge.weigh(compare(judge, *about)))


def tallied(check: Callable[..., Checks]) -> Callable[..., Finding]:
    """A function that finds what the checks come to."""
    return wraps(check)(lambda judge, *about: judge.tally(check(judge, *about)))


@weighed
def beats_at_every_height(judge: Judge, tree: str) -> Comparisons:
    """Compare HTF at each height with the best of the trees of the same height."""
    for epsilon in judge.epsilons:
        for height, ours in judge.lineup.ladders.get(HTF, {}).items():
            rivals = [
                judge.lineup.ladders[label][height]
                for label in tree_labels(tree)
                if height in judge.lineup.ladders.get(label, {})
            ]
            theirs = judge.results.best(judge.data_set, rivals, epsilon, RANDOM)
            setting = f"ε {epsilon}, height {height}"
            yield judge.compare(ours, theirs, epsilon, RANDOM, setting)


@weighed
def beats_best(
    judge: Judge, labels: Sequence[str], epsilons: Sequence[str], workloads: Sequence[str]
) -> Comparisons:
    """Compare HTF at its own height with the best of the others."""
    ours = judge.ours
    for epsilon, workload in product(epsilons, workloads):
        rival = judge.best(labels, epsilon, workload)
        if rival is not None:
            setting = f"ε {epsilon}, {workload}, {rival[0]}"
            yield judge.compare(ours, rival[1], epsilon, workload, setting)


@weighed
def beats_each(judge: Judge, labels: Iterable[str]) -> Comparisons:
    """Compare HTF at its own height with each of the others, at the lowest epsilon."""
    ours = judge.ours
    for label in labels:
        rival = judge.best([label], LOWEST_EPSILON, RANDOM)
        if rival is not None:
            yield judge.compare(ours, rival[1], LOWEST_EPSILON, RANDOM, rival[0])


def methods_the_paper_does_not_run(judge: Judge) -> list[str]:
    known = {HTF, HTF_LOW, *RUN, *map(stop_label, STOP_COUNTS)}
    return [label for label in judge.lineup.singles if label not in known]


@tallied
def is_parabolic(judge: Judge, tree: str) -> Checks:
    """Whether the error is least at an inner height, and clearly larger at both ends."""
    for epsilon, label in product(judge.epsilons, tree_labels(tree)):
        means, ladder = judge.means(label, epsilon), judge.lineup.ladders.get(label, {})
        if len(means) < 3:
            continue
        best, shallowest, deepest = min(means, key=means.__getitem__), min(means), max(means)
        ends = [
            judge.compare(ladder[best], ladder[end], epsilon, RANDOM, "")
            for end in (shallowest, deepest)
        ]
        told = ", ".join(f"{show_number(means[h])} % at {h}" for h in (shallowest, best, deepest))
        yield all(end is not None and end.won for end in ends), f"ε {epsilon} {label}: {told}"


@tallied
def avoids_overpartitioning(judge: Judge) -> Checks:
    """Compare how much worse than its best the deepest tree is, for HTF and for the kd-trees."""
    for epsilon in judge.epsilons:
        rises = {
            label: means[max(means)] / min(means.values())
            for label in (HTF, *KD)
            if (means := judge.means(label, epsilon))
        }
        if HTF in rises and len(rises) > 1:
            least = min(rise for label, rise in rises.items() if label != HTF)
            told = ", ".join(f"{label} {show_number(rise)}" for label, rise in rises.items())
            text = f"ε {epsilon}: the deepest tree has this many times the least error: {told}"
            yield rises[HTF] <= least, text


@tallied
def chooses_its_height_well(judge: Judge) -> Checks:
    for epsilon in judge.epsilons:
        means = judge.means(HTF, epsilon)
        own = judge.mean(judge.ours, epsilon)
        if means and not math.isnan(own):
            best = min(means, key=means.__getitem__)
            text = (
                f"ε {epsilon}: {show_number(own)} % at its own height "
                f"{judge.own_height(epsilon):.1f}, {show_number(means[best])} % at {best}"
            )
            yield own <= NEAR * means[best], text


def gains_most_at_low_epsilon(
    judge: Judge, labels: Sequence[str], epsilons: Sequence[str]
) -> Finding:
    """Whether HTF's error, as a share of the best other's, is least at the lowest epsilon."""
    ratios = {}
    for epsilon in epsilons:
        rival = judge.best(labels, epsilon, RANDOM)
        ours = judge.mean(judge.ours, epsilon)
        if rival is not None and not math.isnan(ours):
            ratios[epsilon] = ours / judge.mean(rival[1], epsilon)
    if len(ratios) < 2:
        return judge.finding(UNKNOWN, "at one ε only")
    held = min(ratios, key=ratios.__getitem__) == min(ratios, key=float)
    told = ", ".join(f"{show_number(ratio)} at ε {epsilon}" for epsilon, ratio in ratios.items())
    return judge.finding(HELD if held else NOT_HELD, told)


@tallied
def stops_best_at_50(judge: Judge) -> Checks:
    for epsilon in judge.grid_epsilons:
        specs = {n: judge.lineup.singles.get(stop_label(n)) for n in STOP_COUNTS}
        means = {n: judge.mean(spec, epsilon) for n, spec in specs.items()}
        if not any(map(math.isnan, means.values())):
            told = ", ".join(f"{show_number(mean)} at {n}" for n, mean in means.items())
            yield means[50] <= min(means.values()) * NEAR, f"ε {epsilon}: {told}"


@tallied
def falls_with_epsilon(judge: Judge) -> Checks:
    for label in (HTF, *GRIDS):
        spec = judge.lineup.singles.get(label)
        means = [judge.mean(spec, epsilon) for epsilon in judge.grid_epsilons]
        if not any(map(math.isnan, means)):
            falls = all(later < earlier for earlier, later in pairwise(means))
            yield falls, f"{label}: {' → '.join(map(show_number, means))} %"


def has_the_papers_heights(judge: Judge) -> Finding:
    heights = {e: h for e in judge.epsilons if not math.isnan(h := judge.own_height(e))}
    if not heights:
        return judge.finding(UNKNOWN, "no results")
    held = all(round(height) == PAPERS_HEIGHTS.get(epsilon) for epsilon, height in heights.items())
    source = judge.source
    is_as_large = isinstance(source, City) and source.points == LOS_ANGELES_POINTS
    told = ", ".join(f"{height:.1f} at ε {epsilon}" for epsilon, height in heights.items())
    if not is_as_large:
        return judge.finding(UNKNOWN, f"{told}; not as many points as the paper's")
    return judge.finding(HELD if held else NOT_HELD, told)


def gains_with_sparsity(judges: Sequence[Judge]) -> Finding:
    """Over the Gaussian sets: the best grid's or quadtree's error as a multiple of HTF's, by sigma."""
    gains: dict[int, list[float]] = {}
    for judge in judges:
        rival = judge.best([*GRIDS, *QUAD], LOWEST_EPSILON, RANDOM)
        ours = judge.mean(judge.ours, LOWEST_EPSILON)
        source = judge.source
        if isinstance(source, GaussianSet) and rival is not None and not math.isnan(ours):
            theirs = judge.mean(rival[1], LOWEST_EPSILON)
            gains.setdefault(source.sigma, []).append(theirs / ours)
    if len(gains) < 2:
        return Finding("Gaussian sets", UNKNOWN, "fewer than two values of sigma")
    means = [sum(gains[sigma]) / len(gains[sigma]) for sigma in sorted(gains)]
    grows = all(later > earlier for earlier, later in pairwise(means))
    told = "; ".join(
        f"σ {sigma}: {' and '.join(map(show_number, gains[sigma]))}" for sigma in sorted(gains)
    )
    return Finding("Gaussian sets", HELD if grows else NOT_HELD, told)


class Claim(NamedTuple):
    """The paper's words, how they are judged, and the judge's function."""

    section: str
    quote: str
    measure: str
    judge: Callable[[Judge], Finding]


CLAIMS = (
    Claim(
        "Section 5.2",
        "HTF clearly outperforms kd-tree for all height settings.",
        "HTF of each height against the best kd-tree of that height; random queries, every ε.",
        lambda judge: beats_at_every_height(judge, "kdtree"),
    ),
    Claim(
        "Section 5.2",
        "(the same, as a user would meet it)",
        "HTF at its own height against the kd-tree at its best height; random queries.",
        lambda judge: beats_best(judge, KD, judge.epsilons, [RANDOM]),
    ),
    Claim(
        "Section 5.2",
        "The kd-tree algorithm follows a parabolic shape […]: the MRE performance reaches its best "
        "values at a particular height, and further partitioning of the space increases the error.",
        "The error is least at an inner height, and clearly larger at the least and the greatest.",
        lambda judge: is_parabolic(judge, "kdtree"),
    ),
    Claim(
        "Section 5.2",
        "HTF […] is applying stop conditions to avoid the adverse effects of over-partitioning.",
        "The deepest tree's error over the least of all heights is no larger for HTF than for a kd-tree.",
        avoids_overpartitioning,
    ),
    Claim(
        "Section 5.2",
        "[HTF] is able to estimate the optimal height beforehand.",
        f"The error at its own height is at most {NEAR} times the least of all heights.",
        chooses_its_height_well,
    ),
    Claim(
        "Section 5.2",
        "HTF outperforms the kd-tree algorithm significantly [for squares of 2, 6 and 10 %].",
        f"HTF at its own height against the kd-tree at its best; ε {LOWEST_EPSILON}.",
        lambda judge: beats_best(judge, KD, [LOWEST_EPSILON], SIZES),
    ),
    Claim(
        "Section 5.3",
        "HTF consistently outperforms grid-based approaches.",
        "HTF (stop count 100) against the better of UG and AG; random queries, every ε.",
        lambda judge: beats_best(judge, GRIDS, judge.grid_epsilons, [RANDOM]),
    ),
    Claim(
        "Section 5.3",
        "[…] especially when the total privacy budget is lower.",
        "The ratio of HTF's error to that of the better grid is least at the lowest ε.",
        lambda judge: gains_most_at_low_epsilon(judge, GRIDS, judge.grid_epsilons),
    ),
    Claim(
        "Section 5.3",
        "The performance improves and reaches its near-optimal values around stop count 50, and "
        "ultimately worsens when the stop count becomes larger.",
        f"The error at stop count 50 is at most {NEAR} times the least of those at 10, 50 and 100.",
        stops_best_at_50,
    ),
    Claim(
        "Section 5.3",
        "HTF outperforms both AG and UG [for squares of 2, 6 and 10 %].",
        "HTF (stop count 100) against the better of the two; every ε.",
        lambda judge: beats_best(judge, GRIDS, judge.grid_epsilons, SIZES),
    ),
    Claim(
        "Section 5.3",
        "As the privacy budget grows, […] increasing the budget always results in lower MRE.",
        "Means fall from each ε to the next, for HTF, UG and AG; random queries.",
        falls_with_epsilon,
    ),
    Claim(
        "Section 5.4",
        "The error of the QuadTree approach is large for small heights, then improves to its "
        "optimal value, and rises again significantly as height further increases.",
        "The error is least at an inner height, and clearly larger at the least and the greatest.",
        lambda judge: is_parabolic(judge, "quadtree"),
    ),
    Claim(
        "Section 5.4",
        "The HTF height selection heuristic yields levels 15, 16, and 17 for […] 0.1, 0.3, and 0.5.",
        "The heights HTF chose, means over the runs. The paper's are for 3.5 million points.",
        has_the_papers_heights,
    ),
    Claim(
        "Section 5.4",
        "HTF outperforms QuadTree for all settings of ε.",
        "HTF at its own height against the quadtree at its best height; random queries.",
        lambda judge: beats_best(judge, QUAD, judge.epsilons, [RANDOM]),
    ),
    Claim(
        "Section 5.4",
        "HTF outperforms Quadtree in all cases [squares of 2, 6 and 10 %].",
        f"HTF at its own height against the quadtree at its best; ε {LOWEST_EPSILON}.",
        lambda judge: beats_best(judge, QUAD, [LOWEST_EPSILON], SIZES),
    ),
    Claim(
        "Section 5.5",
        "HTF consistently outperforms existing approaches.",
        f"HTF against each method of the paper, trees at their best; random queries, ε {LOWEST_EPSILON}.",
        lambda judge: beats_each(judge, RUN),
    ),
    Claim(
        "Section 5.5",
        "HTF performs best on a relative basis for […] more stringent privacy requirements.",
        "The ratio of HTF's error to that of the best kd-tree, quadtree or grid is least at the lowest ε.",
        lambda judge: gains_most_at_low_epsilon(judge, [*KD, *QUAD, *GRIDS], judge.epsilons),
    ),
    Claim(
        "Beyond the paper",
        "(not a claim of the paper) Methods that it cites and does not run.",
        f"HTF against each of them with its defaults; random queries, ε {LOWEST_EPSILON}.",
        lambda judge: beats_each(judge, methods_the_paper_does_not_run(judge)),
    ),
)
SPARSITY = Claim(
    "Section 5.5",
    "For the denser datasets (sigma = 20) the gain compared to approaches designed for uniform data "
    "(e.g., UG, AG, Quadtrees) is lower. As data sparsity grows, the difference in accuracy between "
    "HTF and the benchmarks increases.",
    "The best error of UG, AG and quadtrees divided by HTF's, for each σ; random queries, "
    f"ε {LOWEST_EPSILON}. It should grow with σ.",
    lambda judge: judge.finding(UNKNOWN, "a claim about several data sets"),
)


# The page ---------------------------------------------------------------------------------------

SIGNS = {HELD: "yes", IN_PART: "in part", NOT_HELD: "no", UNDECIDED: "undecided", UNKNOWN: "–"}

PREFACE = """Errors are mean relative errors in %, given as mean ± standard deviation over the runs. A ratio below 1 favours HTF; its
95 % interval is over the runs. "Won" or "lost" means that the interval excludes 1, "undecided" that it never does. HTF is
`htf-paper` with the paper's settings. kd-trees and quadtrees stand at the height that did best, which nobody could know
without the data. A quadtree of k levels stands at height 2k, as in the paper. Los Angeles is not public, so `city` is made
up. On the Gaussian sets, heights are swept at ε 0.1 only.
"""


def judge_claims(design: Design, results: Results) -> list[tuple[Claim, list[Finding]]]:
    """Every claim with a finding for each data set."""
    judges = [Judge(data_set, design, results) for data_set in design.data_sets()]
    judged = [(claim, [claim.judge(judge) for judge in judges]) for claim in CLAIMS]
    return [*judged[:-1], (SPARSITY, [gains_with_sparsity(judges)]), judged[-1]]


def write_claims(design: Design, results: Results, folder: Path, command: str) -> None:
    text = claims_page(design, judge_claims(design, results), command)
    write_text(folder / "claims.md", text, overwrite=True)


def claims_page(design: Design, judged: Sequence[tuple[Claim, list[Finding]]], command: str) -> str:
    names = [data_set.name for data_set in design.data_sets()]
    runs = 1 + max(trial.run for trial in design.plan.trials)
    parts = [
        "# The claims of the HTF paper, measured\n",
        "For researchers: each claim of the paper's Section 5, what was measured, and whether it held.\n",
        f"**{MARKING}**\n",
        f"Made by `{command}`: {runs} runs of {design.plan.bench.queries} queries for every setting.",
        PREFACE,
        *(f"* {note}" for note in design.notes),
        _overview(judged, names),
    ]
    parts += [
        _section(number, claim, findings) for number, (claim, findings) in enumerate(judged, 1)
    ]
    return "\n".join(parts)


def _overview(judged: Sequence[tuple[Claim, list[Finding]]], names: Sequence[str]) -> str:
    rows = [
        "\n## Overview\n",
        f"| | claim | {' | '.join(names)} |",
        f"| ---: | --- |{' --- |' * len(names)}",
    ]
    for number, (claim, findings) in enumerate(judged, 1):
        verdicts = {finding.data_set: SIGNS[finding.verdict] for finding in findings}
        if (
            len(findings) == 1 and findings[0].data_set not in names
        ):  # about several data sets at once
            verdicts = {names[0]: f"{SIGNS[findings[0].verdict]} ({findings[0].data_set})"}
        cells = " | ".join(verdicts.get(name, "") for name in names)
        rows.append(f"| {number} | {_shorten(claim.quote)} | {cells} |")
    return "\n".join(rows) + "\n"


def _section(number: int, claim: Claim, findings: Sequence[Finding]) -> str:
    counts = Counter(finding.verdict for finding in findings)
    told = ", ".join(f"{verdict} on {n}" for verdict, n in counts.items())
    rows = [(finding.data_set, finding.verdict, finding.measured) for finding in findings]
    return f"""
## {number}. {claim.section}: {told}

> {claim.quote}

{claim.measure}

{table_of(("data set", "held?", "measured"), rows)}
"""


def _shorten(text: str, most: int = 90) -> str:
    return text if len(text) <= most else text[: most - 1].rsplit(" ", 1)[0] + " …"
