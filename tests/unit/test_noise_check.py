"""Wrong noise is refused before anything is charged: by OpenDP's version, and by a test of the draws."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from fractions import Fraction
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import htf
from htf import BudgetFile, Domain, FrequencyMatrix, InputError, RecordsPerPerson
from htf.base.processes import once_per_process
from htf.curator import noise, noise_check
from htf.curator.noise import FastNoise, NoiseSource, OpenDPNoise, SeededNoise
from htf.curator.noise_check import DRAWS, MORE_DRAWS, ODD, check_noise, likelihood, refuse_wrong
from htf.curator.sampler import Words
from htf.frame.domain import IntArray
from support import wrong_opendp_draws

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


# --- which OpenDP ---------------------------------------------------------------------------------


def test_the_lowest_version_that_installs_is_the_first_sound_one() -> None:
    needed = tomllib.loads(PYPROJECT.read_text())["project"]["dependencies"]
    sound = ".".join(map(str, noise.FIRST_SOUND_OPENDP))
    assert [text for text in needed if text.startswith("opendp")] == [f"opendp>={sound}"]


@pytest.mark.parametrize(
    "found", ["0.9.2", "0.12.0", "0.14.1", "0.14.2rc1", "0.14.2.dev1", "0.14", "unknown"]
)
def test_old_opendp_is_refused(monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    monkeypatch.setattr(noise, "version", lambda _: found)
    for start in (OpenDPNoise, lambda: htf.publish(few_records(), 1)):
        with pytest.raises(
            InputError, match=rf"OpenDP {found} draws wrong noise.*opendp>=0\.14\.2"
        ):
            start()


@pytest.mark.parametrize("found", ["0.14.2", "0.14.3", "0.15.0", "0.15.0a1", "1.0.0", "0.100.0"])
def test_later_opendp_is_taken(monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    monkeypatch.setattr(noise, "version", lambda _: found)
    OpenDPNoise()


def test_missing_opendp_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> str:
        raise PackageNotFoundError

    monkeypatch.setattr(noise, "version", missing)
    with pytest.raises(InputError, match=r"OpenDP is not installed.*pip install"):
        OpenDPNoise()


def test_opendp_that_cannot_be_loaded_costs_nothing(tmp_path: Path) -> None:
    """Its library is looked for where the variable says, and there is none."""
    (tmp_path / "points.csv").write_text("lon,lat\n0.5,0.5\n0.25,0.75\n")
    budget = BudgetFile.create(tmp_path / "budget.db", "d", 3)
    command = "release points.csv --bounds 0,0,1,1 --cells 4 --epsilon 1 --budget budget.db --dataset d -o r.parquet"
    ran = subprocess.run(
        [sys.executable, "-m", "htf", *command.split()],
        cwd=tmp_path,
        env={**os.environ, "OPENDP_LIB_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert "OpenDP cannot be loaded (Exception: Expected exactly one binary" in ran.stderr
    assert budget.account().entries == ()


# --- the test of the draws ------------------------------------------------------------------------


def few_records() -> FrequencyMatrix:
    return FrequencyMatrix.from_dense(Domain.square(0, 0, 1, cells=4), np.ones((4, 4), dtype=int))


class Sound(NoiseSource):
    """Our sampler over a seeded generator, under the name of a secret source."""

    private = True
    description = "a source under test"

    def __init__(self, seed: int = 1) -> None:
        self._seeded = SeededNoise(seed)

    def draw_at(self, rate: Fraction, size: int) -> IntArray:
        return self._seeded.draw_at(rate, size)

    def words(self, number: int) -> Words:
        return self._seeded.words(number)


class Zero(Sound):
    def draw_at(self, rate: Fraction, size: int) -> IntArray:  # noqa: ARG002
        return np.zeros(size, dtype=np.int64)


class HalfScale(Sound):
    def draw_at(self, rate: Fraction, size: int) -> IntArray:
        return super().draw_at(2 * rate, size)


class DoubleScale(Sound):
    def draw_at(self, rate: Fraction, size: int) -> IntArray:
        return super().draw_at(rate / 2, size)


class OneSided(Sound):
    def draw_at(self, rate: Fraction, size: int) -> IntArray:
        return np.abs(super().draw_at(rate, size))


class Of32Bits(Sound):
    def draw_at(self, rate: Fraction, size: int) -> IntArray:
        return np.clip(super().draw_at(rate, size), -(2**31), 2**31 - 1)


class Rounded(Sound):
    """As floats of single precision would be."""

    def draw_at(self, rate: Fraction, size: int) -> IntArray:
        return super().draw_at(rate, size).astype(np.float32).astype(np.int64)


class Repeating(Sound):
    """In two threads, say, that began with the same state."""

    def draw_at(self, rate: Fraction, size: int) -> IntArray:
        return np.tile(super().draw_at(rate, size // 2), 2)


class StuckBit(Sound):
    def words(self, number: int) -> Words:
        return super().words(number) | np.uint32(1)


class NoHighBit(Sound):
    def words(self, number: int) -> Words:
        return super().words(number) & np.uint32(2**31 - 1)


class RepeatingWords(Sound):
    def words(self, number: int) -> Words:
        return np.tile(super().words(number // 2), 2)


class OldOpenDP(Sound):
    """As versions below 0.14.2 draw at the scale that is tested."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__(seed)
        self._rng = np.random.default_rng(seed)

    def draw_at(self, rate: Fraction, size: int) -> IntArray:
        if rate != Fraction(1, noise_check.SCALE):
            return super().draw_at(rate, size)
        return wrong_opendp_draws(noise_check.SCALE, size, self._rng)


WRONG = [
    Zero, HalfScale, DoubleScale, OneSided, Of32Bits, Rounded, Repeating, StuckBit, NoHighBit, RepeatingWords,
    OldOpenDP,
]  # fmt: skip


@pytest.mark.parametrize("source", WRONG)
def test_wrong_noise_is_refused(source: Callable[[], Sound]) -> None:
    with pytest.raises(InputError, match=r"a source under test does not have the distribution"):
        refuse_wrong(source())


def test_few_draws_find_old_opendp_in_most_processes() -> None:
    """As docs/noise.md says: nine in ten. Many draws find it always."""
    few = [likelihood(OldOpenDP(seed), DRAWS) < ODD for seed in range(100)]
    assert 85 <= sum(few) <= 99
    assert max(likelihood(OldOpenDP(seed), MORE_DRAWS) for seed in range(5)) < 1e-20


def test_sound_noise_is_not_refused() -> None:
    """About one process in a hundred looks twice, which costs time, and none finds anything then."""
    few = [likelihood(Sound(seed), DRAWS) for seed in range(500)]
    assert 1 <= sum(value < ODD for value in few) <= 15
    assert min(likelihood(Sound(seed), MORE_DRAWS) for seed in range(50)) > 1e-6
    for source in (OpenDPNoise(), FastNoise()):
        refuse_wrong(source)


@pytest.mark.parametrize("degrees", [2, 4, 16, 32])
def test_tails_are_those_of_chi_square(degrees: int) -> None:
    for statistic in (0.0, 1.0, 20.0, 100.0, 1000.0):
        expected = stats.chi2.sf(statistic, degrees)
        assert noise_check.tail(statistic, degrees) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("found", [[10, 20, 30], [100, 90, 110, 95, 105]])
def test_p_values_are_those_of_chi_square(found: list[int]) -> None:
    expected = stats.chisquare(found).pvalue
    fair = np.full(len(found), 1 / len(found))
    assert noise_check.chi_square(np.array(found), fair) == pytest.approx(expected, rel=1e-9)


def test_few_enough_draws_for_the_time_that_is_promised() -> None:
    """OpenDP takes some 8 microseconds for each, of 50 milliseconds."""
    drawn = []

    class Counting(Sound):
        def draw_at(self, rate: Fraction, size: int) -> IntArray:
            drawn.append(size)
            return super().draw_at(rate, size)

    refuse_wrong(Counting(3))
    assert drawn == [4_000, 200]


# --- when -----------------------------------------------------------------------------------------


def test_wrong_noise_costs_nothing(tmp_path: Path) -> None:
    budget = BudgetFile.create(tmp_path / "budget.db", "d", 3)
    people = RecordsPerPerson(np.array([3, 2, 1]))
    curator = htf.Curator(few_records(), htf.Epsilon.of(1), HalfScale())
    for start in (
        lambda: htf.publish(few_records(), 1, noise=HalfScale(), budget=budget),
        lambda: htf.measure_activity(people, 1, noise=HalfScale(), budget=budget),
        lambda: curator.run(htf.make_mechanism("uniform")),
    ):
        with pytest.raises(InputError, match="does not have the distribution") as refusal:
            start()
        assert not getattr(refusal.value, "__notes__", [])
    assert budget.account().entries == ()
    assert str(curator.spent) == "0"


def test_each_source_is_tested_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tested: list[str] = []
    monkeypatch.setattr(noise_check, "_tested", once_per_process(set))
    monkeypatch.setattr(noise_check, "refuse_wrong", lambda s: tested.append(type(s).__name__))
    for source in (FastNoise(), OpenDPNoise(), FastNoise(), SeededNoise(1), Sound(), Sound(2)):
        htf.publish(few_records(), 1, "uniform", noise=source)
    assert tested == ["FastNoise", "OpenDPNoise", "Sound"]


def test_seeded_noise_is_left_as_it_is() -> None:
    source = SeededNoise(5)
    check_noise(source)
    assert np.array_equal(
        source.draw_at(Fraction(1, 9), 50), SeededNoise(5).draw_at(Fraction(1, 9), 50)
    )


IN_CHILD = """
import os
from htf.curator import noise_check
from htf.curator.noise import FastNoise

def tested():
    before = FastNoise in noise_check._tested()
    noise_check.check_noise(FastNoise())
    return before, FastNoise in noise_check._tested()

print(tested(), tested(), flush=True)
if os.fork() == 0:
    print(tested(), flush=True)
    os._exit(0)
os.wait()
"""


def test_a_forked_child_tests_again() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", IN_CHILD], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split("\n")[:2] == ["(False, True) (True, True)", "(False, True)"]


def test_sound_noise_is_not_refused_for_a_repeat() -> None:
    """Two draws agree with a probability of about 1 / (4 scale); and only odd first draws lead to the others."""
    tests, number = 8, MORE_DRAWS // noise_check.WIDE_SHARE
    of_draws = number * (number - 1) / 2 / (4 * noise_check.WIDE)
    pairs_of_words = MORE_DRAWS // 4
    of_words = pairs_of_words * (pairs_of_words - 1) / 2 / 2**64
    assert tests * ODD * (of_draws + of_words + tests * noise_check.WRONG) < noise_check.WRONG
