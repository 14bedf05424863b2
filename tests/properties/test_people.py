"""The guarantee for one person: its noise is that of a plain release with epsilon / K, and the noisy
quantile of records per person has the probabilities that its proof is about."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htf import (
    Activity,
    Epsilon,
    FrequencyMatrix,
    InputError,
    Protection,
    RecordsPerPerson,
    publish,
    verify,
)
from htf.curator.contributions import (
    CLASSES_OF_A_PERSON,
    offsets_by_class,
    people_by_class,
)
from htf.mechanisms import registry
from htf.privacy.activity import class_ends, least_price, middles, reaches, split_price
from htf.privacy.protection import (
    OF_RECORDS,
    epsilon_per_share,
    price_of_bought,
    price_of_map,
)
from htf.recipes.quote import OFFERS
from htf.recipes.recipe import Recipe
from support import city_matrix

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
@settings(max_examples=300)
def test_the_parts_never_exceed_the_claim(
    units: int, number: int, measured: int, of_people: int
) -> None:
    """Of any epsilon, bound and prices of what was bought; and less than one unit a record is lost."""
    total, cost = Epsilon(units), measured + of_people
    bought = [
        Activity((0,) * 21, (0,) * 21, 2**20, Epsilon(price), "", True)
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


def part_of(total: Epsilon, share: Fraction, most: int) -> Epsilon:
    recipe = Recipe(source=None, epsilon=1, most_records=most)
    return OFFERS["activity"].price(recipe, total, share)


@given(
    st.integers(1, 10**18),
    st.fractions(0, 1).filter(lambda share: share < 1),
    st.sampled_from([1, 2, 2000]),
)
@settings(max_examples=200)
def test_a_share_of_epsilon_leaves_something(units: int, share: Fraction, most: int) -> None:
    """As `htf release --spend` takes it: rounded down, and never all."""
    total = Epsilon(units)
    if share > 0 and int(units * share) < least_price(most).units:
        with pytest.raises(InputError, match=f"less than {least_price(most)}, the smallest"):
            part_of(total, share, most)
        return
    part = part_of(total, share, most)
    assert 0 <= units * share - part.units < 1
    assert part < total


# --- the activity ---------------------------------------------------------------------------------


def test_one_person_moves_one_class_by_one_and_one_offset_by_its_reach() -> None:
    """All data of up to three people, with numbers of records around the ends of classes. The bound is reached."""
    ends = class_ends(300)
    numbers = sorted({n for end in ends for n in (end - 1, end, end + 1) if 1 <= n <= 300})
    furthest = np.zeros(len(ends), dtype=np.int64)
    for people in range(3):
        for records in product(numbers[::2] if people else numbers, repeat=people):
            data = RecordsPerPerson.from_records(list(records), 300)
            before = people_by_class(data)
            for added in numbers:
                more = RecordsPerPerson.from_records([*records, added], 300)
                moved = people_by_class(more) - before
                assert np.abs(moved).sum() == moved.sum() == 1 == CLASSES_OF_A_PERSON
                off = np.abs(offsets_by_class(more) - offsets_by_class(data))
                assert np.all(off[moved == 0] == 0)
                furthest = np.maximum(furthest, off)
    assert furthest.tolist() == list(reaches(ends))


@given(st.integers(5, 10**18))
def test_the_prices_of_people_and_offsets_are_the_whole_price(units: int) -> None:
    people, offsets = split_price(Epsilon(units))
    assert people.units + offsets.units == units
    assert 0 < offsets.units <= people.units / 4 + 1


def test_no_activity_tells_more_than_epsilon() -> None:
    """The exact loss of one person more: what the two questions charge, times what that person moves."""
    ends, (of_people, of_offsets) = class_ends(300), split_price(Epsilon.of("0.1"))
    for number in range(1, 301):
        person = RecordsPerPerson.from_records([number], 300)
        moved, off = people_by_class(person), np.abs(offsets_by_class(person))
        rates = [of_offsets.fraction / reach if reach else Fraction(0) for reach in reaches(ends)]
        lost = of_people.fraction * int(moved.sum()) + sum(rate * int(one) for rate, one in zip(rates, off, strict=True))  # fmt: skip
        assert lost <= Epsilon.of("0.1").fraction
        if number in ends and number > 2:
            assert lost == Epsilon.of("0.1").fraction


@given(st.lists(st.integers(1, 2**21), max_size=30), st.integers(1, 2**20))
@settings(max_examples=60, deadline=None)
def test_everybody_is_in_one_class(records: list[int], most: int) -> None:
    counted = people_by_class(
        RecordsPerPerson.from_records(np.array(records, dtype=np.int64), most)
    )
    ends, numbers = np.array(class_ends(most)), np.minimum(records, most)
    wanted = np.searchsorted(ends, numbers) if records else np.zeros(0, int)
    assert np.array_equal(counted, np.bincount(wanted, minlength=len(ends)))
    off = offsets_by_class(RecordsPerPerson.from_records(np.array(records, dtype=np.int64), most))
    middle = np.array(middles(class_ends(most)))
    assert off.sum() + counted @ middle == (sum(numbers) if records else 0)
    assert np.all(np.abs(off) <= counted * np.array(reaches(class_ends(most))))
