"""What a release, a prior, answers or a matrix give out cannot be changed by mistake: not as they were made,
and not after they travelled through a pickle or a copy."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import htf
from htf.curator.measurements import CountRegions
from htf.maps.views import view
from support import city_matrix


def travel(protocol: int, thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing, protocol))


WAYS: dict[str, Callable[[Any], Any]] = {
    "as made": lambda thing: thing,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle {protocol}": partial(travel, protocol)
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)
    },
    "twice": lambda thing: copy.deepcopy(pickle.loads(pickle.dumps(thing))),
}


def things() -> dict[str, Any]:
    matrix = city_matrix()
    prior = htf.read_prior(np.arange(16.0).reshape(4, 4), matrix.domain)
    release = htf.publish(matrix, 1, prior=prior, noise="seeded:1")
    asked = htf.publish(matrix, 1, noise="seeded:1")
    asked.count()  # with what is kept for the next question
    return {
        "matrix": matrix,
        "people": htf.RecordsPerPerson([3, 2, 1]),
        "people by box": htf.PeopleByBox((2, 1), [[3, 2], [0, 1]]),
        "prior": prior,
        "release": release,
        "release that was asked": asked,
        "release of another mechanism": htf.publish(matrix, 1, "ug", noise="seeded:1"),
        "answers": release.count([[0, 0, 1, 1], [0, 0, 2, 2]]),
        "changes": release.count().minus(asked.count()),
        "view": view(release, cells=4),
        "measurement": CountRegions("whole", np.zeros(1, dtype=np.int64), np.array([10**14])),
    }


THINGS = things()
OF_LOOPS = ("nested", "index", "tree_index", "answering_index", "edges", "tree_counts")


def arrays_of(thing: Any, name: str) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """All arrays behind public names, however deep, but for those that are made anew each time, and the
    tables of compiled loops, which would be compiled once more for arrays that are read-only."""
    if isinstance(thing, np.ndarray):
        yield name, thing
    elif isinstance(thing, (list, tuple)):
        for number, one in enumerate(thing):
            yield from arrays_of(one, f"{name}[{number}]")
    elif isinstance(thing, dict):
        for key, one in thing.items():
            yield from arrays_of(one, f"{name}[{key!r}]")
    elif type(thing).__module__.startswith("htf."):
        for part in dir(thing):
            found = getattr(thing, part)
            if part.startswith("_") or part in OF_LOOPS or callable(found):
                continue
            if not isinstance(found, np.ndarray) or np.shares_memory(found, getattr(thing, part)):
                yield from arrays_of(found, f"{name}.{part}")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", THINGS)
def test_arrays_stay_read_only(name: str, way: str) -> None:
    thing = WAYS[way](THINGS[name])
    found = dict(arrays_of(thing, name))
    assert found
    assert {place for place, array in found.items() if array.flags.writeable} == set()
    before = dict(arrays_of(THINGS[name], name))
    assert found.keys() == before.keys()
    for place, array in found.items():
        np.testing.assert_array_equal(array, before[place], err_msg=place)
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_another_process_gets_the_same() -> None:
    """One that shares nothing: it is started anew, and loads what is pickled for it."""
    release = THINGS["release that was asked"]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        answers = pool.apply(htf.Release.count, (release,))
        again, matrix = pool.apply(copy.copy, ((release, THINGS["matrix"]),))
    assert answers.to_dicts() == release.count().to_dicts()
    assert again == release
    for place, array in arrays_of([answers, again, matrix], "travelled"):
        assert not array.flags.writeable, place
