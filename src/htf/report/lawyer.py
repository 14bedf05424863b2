"""The second page, for a lawyer: the unit, what is protected and what not, the budget, who holds what, the statement. Public."""

from __future__ import annotations

import math
from collections.abc import Iterator

from htf.privacy.account import PENDING, PUBLISHED
from htf.privacy.epsilon import Epsilon
from htf.privacy.meaning import GUESSES, Meaning, belief_text
from htf.privacy.protection import PEOPLE, PERSON, RECORD, price_of_bought
from htf.release.release import Release
from htf.report.html import Content, Markup, element, items, join, rows, section, table
from htf.report.subject import Subject
from htf.report.words import short, unprotected

MOST_ENTRIES = 4
LONG = 2600  # characters of a statement that is set smaller
PART = "— of which "
BOUGHT_FOR = {
    "activity": "how many records people have",
    "distinct": "the table of different people",
    "clipped": "how many weights are above their limit",
    "zones": "the zones",
}
NO_OPINION = (
    "This page states facts about the file and how it was made. Whether they are enough under a law or a contract is for you "
    "to judge. The exact promise is the statement below, which is part of the file."
)


def lawyer_page(subject: Subject) -> Markup:
    release = subject.release
    paragraphs = [element("p", text) for text in release.statement.split("\n\n")]
    is_long = len(release.statement) > LONG
    return join(
        element("p", NO_OPINION, css="lead"),
        element(
            "div",
            section("What is protected", rows(_protected(subject))),
            section("What is not protected", items(unprotected(release))),
            css="columns",
        ),
        element("h2", "How strong the promise is: ε (epsilon)"),
        _epsilons(subject),
        _entries(subject),
        element("h2", "Who holds what"),
        rows(_holders(subject)),
        element("h2", "The statement of the file, word for word"),
        element("div", *paragraphs, css="statement long" if is_long else "statement"),
    )


def _protected(subject: Subject) -> Iterator[tuple[str, Content]]:
    release, meaning = subject.release, subject.meaning
    protection = release.protection
    period = "" if protection.per is None else f" in one {protection.per}"
    change = "any one record"
    if protection.unit != RECORD:
        change = f"all records of any one {PERSON}{period}"
    yield "Unit", f"{protection.name.capitalize()}. {_unit(release)}"
    yield (
        "Promise",
        f"Adding or removing {change} changes the probability of any content of the file by a factor of at most "
        f"{told_factor(release.epsilon)}. This is pure ε-differential privacy: there is no δ, that is, no small chance that the "
        "promise fails.",
    )
    if meaning.together is not None:
        yield f"Several {protection.per or 'record'}s", meaning.together
    usual = meaning.usual.removeprefix("Others: ")
    yield "Others use", usual[0].upper() + usual[1:]
    yield (
        "For how long",
        "For good: the promise holds whatever anyone knows, now or later, and however often the file is asked.",
    )


def _unit(release: Release) -> str:
    protection = release.protection
    if protection.unit == RECORD:
        return "One row of the data, such as one ride or one call."
    per = protection.per
    if protection.count == PEOPLE:
        in_each = "" if per is None else f" in each {per}"
        return f"All records of a person{in_each}. Everyone counts as one{in_each}, however many records they have."
    whose = "a person" if per is None else f"a person and {per}"
    return f"All records of {whose}. At most {protection.max_records:,} of them were kept."


def told_factor(epsilon: Epsilon) -> str:
    """The factor by which odds may change."""
    factor = math.exp(min(float(epsilon), 700.0))
    return f"{factor:,.0f}" if factor >= 1000 else f"{factor:.3g}"


def _epsilons(subject: Subject) -> Markup:
    headers = ("", ">ε", *(f">{100 * guess:g} % becomes at most" for guess in GUESSES))
    said = (
        f"ε limits how far anyone's guess about {subject.release.protection.name} can move. A guess of 50 % is a coin toss; the "
        "table says how sure somebody can become who knows everything else. It is the worst case, not what usually happens."
    )
    lines = []
    for name, epsilon in _sums(subject):
        meaning = Meaning(epsilon, subject.release.protection)
        sure = ["" if name.startswith(PART) else belief_text(meaning.after(g)) for g in GUESSES]
        lines.append([name, short(epsilon), *sure])
    return join(table(headers, lines), element("p", said, css="note"))


def _sums(subject: Subject) -> Iterator[tuple[str, Epsilon]]:
    release = subject.release
    which = "this release" if subject.plan is None else f"the latest release, {subject.file}"
    yield f"{which}, for {release.protection.name}", release.epsilon
    for bought in release.bought:
        if bought.epsilon.units:
            yield f"{PART}for {BOUGHT_FOR[bought.kind]}", bought.epsilon
    if release.bought:
        yield f"{PART}for the map", release.epsilon - price_of_bought(*release.bought)
    spent, cap, plan = subject.all_spent, subject.cap, subject.plan
    if spent is not None and spent.units and subject.account is not None:
        yield f"all releases charged to “{subject.account.dataset}”", spent
    if plan is not None and cap is not None:
        whom = f"one {plan.unit}".replace("person-", "person in one ")
        if spent is not None and spent.units:
            yield f"all releases so far, for {whom}", spent
        yield f"all {plan.releases} releases of the plan, for {whom}", cap
        if not plan.adds_up and plan.unit != RECORD:
            yield f"for a person who is in all {plan.releases} {plan.period}s", cap * plan.releases
    elif cap is not None:
        yield "the most that this budget ever allows", cap


def _entries(subject: Subject) -> Markup:
    """The charges of the budget, the latest last."""
    if not subject.entries:
        said = (
            "No budget file was named, so this page knows of this release alone. If there are others from the same data, "
            "their epsilons add up."
        )
        return element("p", said, css="note")
    shown = subject.entries[-MOST_ENTRIES:]
    lines = [
        (
            entry.charged.replace("T", " ").removesuffix("Z")[:16],
            entry.label or entry.mechanism,
            short(entry.epsilon),
            entry.state,
            entry.file or "",
        )
        for entry in shown
    ]
    made = table(("charged (UTC)", "for", ">ε", "state", "file"), lines)
    notes = []
    if len(subject.entries) > len(shown):
        notes.append(
            f"The {len(subject.entries) - len(shown)} charges before these are in the budget file."
        )
    if any(entry.state == PENDING for entry in subject.entries):
        notes.append("A pending charge counts, although nothing may have been published for it.")
    if any(entry.state not in (PENDING, PUBLISHED) for entry in subject.entries):
        notes.append("A withdrawn release still counts: others have seen it.")
    note = element("p", " ".join(notes), css="note") if notes else None
    return join(element("h3", "Charges to the budget"), made, note)


def _holders(subject: Subject) -> Iterator[tuple[str, Content]]:
    release = subject.release
    yield "The records", "The curator alone. They are not in the file, and no answer reads them."
    noise = "Anyone who knows the seed, and they can subtract it: there is no protection."
    if release.private:
        noise = "Nobody. It was drawn from the secret randomness of the computer, and was not kept."
    yield "The noise", noise
    yield (
        "The release",
        "Whoever is given it. It is made to be public. Once it is out, nobody can take it back, and what it cost is spent.",
    )
    if subject.entries:
        held = "epsilons, dates and names of files, and no data"
        yield "The budget", f"The curator, in a file that holds {held}."
    yield "This report", "Anyone. It was made from the files named here, without the records."
