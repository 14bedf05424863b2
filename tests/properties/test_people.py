"""The guarantee for one person: its noise is that of a plain release with epsilon / K, and the noisy
quantile of records per person has the probabilities that its proof is about."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htf import Epsilon, FrequencyMatrix, InputError, Protection, RecordsPerPerson, publish, verify
from htf.curator.contributions import PARTS_OF_A_PERSON, parts_by_mark
from htf.mechanisms import registry
from htf.privacy.activity import LEAST_PRICE, PARTS, Activity, marks
from htf.privacy.protection import OF_RECORDS, epsilon_per_share, price_of_bought, price_of_map
from htf.recipes.quote import OFFERS
from support import city_matrix
from telling import examples

ALARM = 1e-6  # for each statistical check; seeds are fixed
SHARES = [Fraction(1, 2), Fraction(9, 10), Fraction(1, 4), Fraction(2, 3)]


def of_people(matrix: FrequencyMatrix, number: int) -> FrequencyMatrix:
    """The same counts, said to be at most so many of each person."""
    kept = matrix.exact_coordinates, matrix.exact_counts
    return FrequencyMatrix(matrix.domain, *kept, Protection("person", number))


# --- accounting -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(registry()))
def test_a_person_with_k_records_gets_a_release_of_a_kth_of_epsilon(name: str) -> None:
    """Bit by bit, but for what is claimed. 2 / 3 falls on no unit, and is rounded down."""
    matrix, number, total = city_matrix(32, 3000), 3, Epsilon.of(2)
    made = publish(of_people(matrix, number), total, name, noise="seeded:4")
    plain = publish(matrix, total // number, name, noise="seeded:4")
    assert (made.epsilon, made.record_epsilon) == (total, Epsilon(666_666_666_666_666))
    assert made != plain
    assert replace(made, epsilon=plain.epsilon, protection=OF_RECORDS) == plain
    assert made.spent * number <= made.epsilon
    assert [check for check in verify(made) if not check.passed] == []


@given(
    st.integers(1, 10**18),
    st.integers(1, 2**20),
    st.one_of(st.just(0), st.integers(0, 10**18)),
    st.one_of(st.just(0), st.integers(0, 10**18)),
)
@examples(300)
def test_the_parts_never_exceed_the_claim(
    units: int, number: int, measured: int, of_people: int
) -> None:
    """Of any epsilon, bound and prices of what was bought; and less than one unit a record is lost."""
    total, cost = Epsilon(units), measured + of_people
    bought = [
        Activity((0,) * len(marks(2**20)), 2**20, Epsilon(price), "", True)
        for price in (measured, of_people)
        if price
    ]
    assert price_of_bought(*bought) == Epsilon(cost)
    protection = Protection("person", number)
    if units - cost < number:
        with pytest.raises(
            InputError, match=r"leaves nothing|over \d+ records per person is less than 1e-15 each"
        ):
            epsilon_per_share(total, protection, *bought)
        return
    each = epsilon_per_share(total, protection, *bought)
    assert price_of_map(total, *bought) == Epsilon(units - cost)
    assert 0 <= units - cost - each.units * number < number
    lost = price_of_bought(*bought) + each * number
    assert lost <= total


def part_of(total: Epsilon, share: Fraction) -> Epsilon:
    return OFFERS["activity"].price(total, share)


@given(st.integers(1, 10**18), st.fractions(0, 1).filter(lambda share: share < 1))
@examples(200)
def test_a_share_of_epsilon_leaves_something(units: int, share: Fraction) -> None:
    """As `htf release --spend` takes it: rounded down, and never all."""
    total = Epsilon(units)
    if share > 0 and int(units * share) < LEAST_PRICE.units:
        with pytest.raises(InputError, match=f"less than {LEAST_PRICE}, the smallest"):
            part_of(total, share)
        return
    part = part_of(total, share)
    assert 0 <= units * share - part.units < 1
    assert part < total


# --- the activity ---------------------------------------------------------------------------------


def test_one_person_moves_the_marks_together_by_one() -> None:
    """All data of up to three people, with numbers of records around the marks. The bound is reached, by everybody."""
    at = marks(300)
    numbers = sorted({n for mark in at for n in (mark - 1, mark, mark + 1) if 1 <= n <= 300})
    for people in range(3):
        for records in product(numbers[::2] if people else numbers, repeat=people):
            before = parts_by_mark(RecordsPerPerson.from_records(list(records), 300))
            for added in numbers:
                more = RecordsPerPerson.from_records([*records, added], 300)
                moved = parts_by_mark(more) - before
                assert np.abs(moved).sum() == moved.sum() == PARTS == PARTS_OF_A_PERSON


def test_no_activity_tells_more_than_epsilon() -> None:
    """The exact loss of one person more: the rate of the noise, times what that person moves."""
    price = Epsilon.of("0.1").fraction
    for number in range(1, 301):
        moved = np.abs(parts_by_mark(RecordsPerPerson.from_records([number], 300)))
        assert price / PARTS_OF_A_PERSON * int(moved.sum()) == price


@given(st.lists(st.integers(1, 2**21), max_size=30), st.integers(1, 2**20))
@examples(60)
def test_marks_tell_how_many_people_and_records_there_are(records: list[int], most: int) -> None:
    people = RecordsPerPerson.from_records(np.array(records, dtype=np.int64), most)
    counted, at = parts_by_mark(people), np.array(marks(most))
    assert np.all(counted >= 0)
    assert counted.sum() == PARTS * len(records)
    lost = PARTS * sum(min(one, most) for one in records) - int(counted @ at)
    assert 0 <= lost <= len(records) * int(np.max(np.diff(at), initial=0))
