"""Writes `claims.md`: each claim of the paper, what was measured, and whether it held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from htf.files import write_text
from htf_bench.claims import CLAIMS, SPARSITY, Claim, gains_with_sparsity
from htf_bench.judging import HELD, IN_PART, NOT_HELD, UNDECIDED, UNKNOWN, Finding, Judge
from htf_bench.marking import MARKING
from htf_bench.paper import Design
from htf_bench.results import Results
from htf_bench.summary import table_of

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
