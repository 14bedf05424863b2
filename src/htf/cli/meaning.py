"""What an epsilon means, on the screen: before it is spent, and beside a release."""

from __future__ import annotations

from collections.abc import Callable

import htf
from htf.cli.screen import say, warn


def say_meaning(
    epsilon: htf.Epsilon,
    protection: htf.Protection,
    *,
    briefly: bool = False,
    tell: Callable[[str], None] = say,
) -> None:
    """Print the sentences, or the first one alone, and a warning if epsilon is above what is customary."""
    from htf.privacy.meaning import Meaning

    meaning = Meaning(epsilon, protection)
    for sentence in (meaning.odds,) if briefly else meaning.sentences:
        tell(sentence)
    if meaning.warning is not None:
        warn(meaning.warning)
