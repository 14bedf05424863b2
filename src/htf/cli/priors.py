"""Tells how far the public priors of a release were trusted."""

from __future__ import annotations

import htf
from htf.cli.screen import say, show_table

LITTLE = 0.05  # of trust: less than this says that the counts do not bear a prior out


def show_priors(release: htf.Release) -> None:
    """Show each prior in a table, with the trust in it by the size of regions."""
    for prior, trust in zip(release.priors, release.derived.trust_by_size, strict=True):
        rows = [(name, str(value)) for name, value in prior.to_dict().items()]
        rows += [
            (f"trust, {_size(level)}", f"{100 * share:.0f} %") for level, share in enumerate(trust)
        ]
        show_table(("name", ">value"), rows, "Public prior")


def say_trust(release: htf.Release) -> None:
    """Say in a sentence how far each prior was trusted."""
    for prior, trust in zip(release.priors, release.derived.trust_by_size, strict=True):
        large, small = trust[0], trust[-1]
        if trust.max() < LITTLE:
            say(f"The prior {prior.name} was not used: the noisy counts do not bear it out.")
        else:
            say(
                f"The prior {prior.name} was trusted {100 * large:.0f} % in the whole map and {100 * small:.0f} % in "
                f"{_size(len(trust) - 1)}, by what the noisy counts show."
            )


def _size(level: int) -> str:
    return "the whole map" if level == 0 else f"regions of 1/{4**level:,} of it"
