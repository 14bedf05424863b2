"""What an epsilon means, on the screen: before it is spent, and beside a release."""

from __future__ import annotations

import htf
from htf.cli.screen import console, say


def say_meaning(
    epsilon: htf.Epsilon, protection: htf.Protection, *, briefly: bool = False, err: bool = False
) -> None:
    """Print the sentences, or the first one alone, and a warning if epsilon is above what is customary."""
    from htf.privacy.meaning import Meaning

    meaning = Meaning(epsilon, protection)
    for sentence in (meaning.odds,) if briefly else meaning.sentences:
        say(sentence, err=err)
    if meaning.warning is not None:
        console(stderr=True).print(f"WARNING: {meaning.warning}", style="bold yellow")
