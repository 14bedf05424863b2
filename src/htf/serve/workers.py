"""Runs the counting: single boxes in the event loop, larger work in a few threads.

The compiled loops release Python's global lock, so that the event loop goes on answering while threads count.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from htf.query.boxes import axis_table
from htf.release.release import Release
from htf.serve.limits import Limits, Refusal

T = TypeVar("T")
Row = list[float]


def busy() -> Refusal:
    return Refusal(503, "the server is busy: try again", {"Retry-After": "2"})


class Deadline:
    """A time limit that long work checks now and then, because a thread cannot be stopped from outside."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._end = seconds, time.monotonic() + seconds

    def check(self) -> None:
        if time.monotonic() > self._end:
            raise self.refusal()

    def refusal(self) -> Refusal:
        detail = f"this took longer than {self._seconds:g} seconds: ask for less at once"
        return Refusal(503, detail, {"Retry-After": "10"})


class Workers:
    """A few threads with a short queue. When the queue is full, requests are refused at once."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="htf-serve")
        self._jobs = 0

    async def run(self, work: Callable[[Deadline], T]) -> T:
        if self._jobs >= self._limits.threads + self._limits.waiting:
            raise busy()
        deadline = Deadline(self._limits.seconds)

        def begin() -> T:
            deadline.check()  # it may have waited long
            return work(deadline)

        self._jobs += 1
        job = asyncio.get_running_loop().run_in_executor(self._pool, begin)
        job.add_done_callback(self._ended)
        try:
            return await asyncio.wait_for(asyncio.shield(job), self._limits.seconds)
        except TimeoutError:
            raise deadline.refusal() from None

    def _ended(self, job: asyncio.Future[T]) -> None:
        self._jobs -= 1
        if not job.cancelled():
            job.exception()  # seen, where nobody waits for it any more

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


class Together:
    """Counts boxes that come one by one. Those of one turn of the event loop are counted in one call.

    A call takes five times as long as a small box, because its data leave the processor's cache between
    requests. Rows are full and already checked, so no box can spoil the answers of others.
    """

    def __init__(self, release: Release) -> None:
        self._index, self._axes = release.derived.answering_index, axis_table(release.domain.axes)
        self._rows: list[Row] = []
        self._answers: list[asyncio.Future[Row]] = []

    def count(self, row: Row) -> asyncio.Future[Row]:
        loop = asyncio.get_running_loop()
        if not self._rows:
            loop.call_soon(self._count_all)
        answer: asyncio.Future[Row] = loop.create_future()
        self._rows.append(row)
        self._answers.append(answer)
        return answer

    def _count_all(self) -> None:
        rows, answers = self._rows, self._answers
        self._rows, self._answers = [], []
        try:
            counted = self._index.answer(np.array(rows), self._axes).tolist()
        except Exception as error:
            for answer in answers:
                if not answer.done():
                    answer.set_exception(error)
            return
        for answer, row in zip(answers, counted, strict=True):
            if not answer.done():  # else the client has gone
                answer.set_result(row)
