"""`htf verify`: whether a release holds together."""

from __future__ import annotations

from pathlib import Path

import htf
from htf.cli import declared
from htf.cli.options import RELEASE
from htf.cli.screen import show_table
from htf.errors import ReleaseFileError


@declared.command()
def verify(release_file: Path = RELEASE) -> None:
    """Recompute what a release spent and published, and compare with what it says.

    RELEASE may also be the folder of a series: then all of its releases are checked, with its plan and its budget.
    """
    from htf.series.plan import is_series
    from htf.series.verification import verify_series

    checks = verify_series(release_file) if is_series(release_file) else htf.verify(release_file)
    rows = [(check.name, "ok" if check.passed else "WRONG", check.finding) for check in checks]
    show_table(("check", "result", "finding"), rows)
    wrong = [check.name for check in checks if not check.passed]
    if wrong:
        raise ReleaseFileError(f"{release_file} is inconsistent: {', '.join(wrong)}")
