"""The privacy guarantee in plain words, made from the release alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from htf.release import Release

NOT_PRIVATE = (
    "NOT PRIVATE. The noise of this release came from a seed or a script, so that anyone who knows "
    "it can take it off again. It is for tests and benchmarks and must not be published. "
    "The following would hold with secret noise:"
)

GUARANTEE = (
    "This release is {epsilon}-differentially private (pure, epsilon = {epsilon}). "
    "The unit of protection is one record: adding or removing any one record changes the "
    "probability of any outcome of the whole release, the boxes included, by a factor of at most "
    "exp({epsilon}). The epsilon was fixed before the first noise was drawn; it holds whatever "
    "anyone knows already and however often the release is queried. It covers the records as they were "
    "read; whether a file could be read at all is not part of it."
)

NOT_PROTECTED = (
    "Not protected: several records of the same person together (with k records the guarantee for "
    "that person is k times epsilon); what is public beforehand, namely the bounds of the map, its "
    "grid, the mechanism and its parameters; facts about a place that do not hinge on any one "
    "record; and anything learnt outside this release, such as other releases of the same data, "
    "whose epsilons add up, or the time the computation took. Records outside the bounds are left "
    "out and not reported."
)

TOTAL_DISCLOSED = (
    "The curator gave the number of records to the mechanism as public: {total} was disclosed exactly, "
    "outside the guarantee, and whether any one record is part of that number is not protected."
)

PRIOR_USED = (
    "The estimates use a public prior that the curator gave, {name} (SHA-256 {sha256}), which travels with "
    "the release. The guarantee holds only if it was not made from the data released; if it is itself a "
    "private release of them, the epsilons add up."
)


def privacy_statement(release: Release) -> str:
    guarantee = GUARANTEE.format(epsilon=release.epsilon)
    noise = f"Noise: {release.noise}. Mechanism: {release.mechanism}."
    parts = [guarantee, NOT_PROTECTED, noise]
    if release.parameters.get("public_total") is not None:
        parts.insert(1, TOTAL_DISCLOSED.format(total=release.parameters["public_total"]))
    if release.prior is not None:
        parts.insert(1, PRIOR_USED.format(name=release.prior.name, sha256=release.prior.sha256))
    return "\n\n".join(parts if release.private else [NOT_PRIVATE, *parts])
