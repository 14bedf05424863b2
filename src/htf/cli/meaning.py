"""What an epsilon means, on the screen: before it is spent, and beside a release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htf.cli.screen import console, say

if TYPE_CHECKING:
    from htf.privacy.epsilon import Epsilon
    from htf.privacy.protection import Protection


def say_meaning(
    epsilon: Epsilon, protection: Protection, *, briefly: bool = False, err: bool = False
) -> None:
    """Print the sentences, or the first one alone, and a warning if epsilon is above what is customary."""
    from htf.privacy.meaning import Meaning

    meaning = Meaning(epsilon, protection)
    for sentence in (meaning.odds,) if briefly else meaning.sentences:
        say(sentence, err=err)
    if meaning.warning is not None:
        console(stderr=True).print(f"WARNING: {meaning.warning}", style="bold yellow")
