# SPDX-License-Identifier: Apache-2.0

import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loader.catalogs.ranges import RangeFile, TooMuch

DATA = random.Random(7).randbytes(100_000)


class _Elsewhere:
    """A file elsewhere, that remembers what was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def fetch(self, start: int, end: int) -> bytes:
        self.asked.append((start, end))
        return DATA[start:end]

    def opened(self, tail: int = 1000, budget: int = 10**9) -> RangeFile:
        return RangeFile(len(DATA), DATA[len(DATA) - tail :], self.fetch, budget)


@given(
    st.integers(1, len(DATA)),
    st.lists(st.tuples(st.integers(0, len(DATA) + 10), st.integers(-1, 50_000)), max_size=10),
)
def test_it_reads_as_the_file_itself(tail: int, reads: list[tuple[int, int]]) -> None:
    file, true = _Elsewhere().opened(tail), io.BytesIO(DATA)

    for offset, size in reads:
        assert file.seek(offset) == true.seek(offset)
        assert file.read(size) == true.read(size)
        assert file.tell() == true.tell()


def test_what_was_read_is_not_asked_for_again() -> None:
    elsewhere = _Elsewhere()
    file = elsewhere.opened()

    file.seek(-1000, io.SEEK_END)
    assert file.read() == DATA[-1000:]
    assert elsewhere.asked == []

    for offset in (5000, 5010, 5000):
        file.seek(offset)
        assert file.read(10) == DATA[offset : offset + 10]
    assert len(elsewhere.asked) == 1


def test_no_more_is_read_than_is_allowed() -> None:
    elsewhere = _Elsewhere()
    file = elsewhere.opened(budget=30_000)
    file.read(20_000)

    with pytest.raises(TooMuch):
        file.read(20_000)

    assert sum(end - start for start, end in elsewhere.asked) <= 30_000


def test_there_is_nothing_before_the_file() -> None:
    with pytest.raises(OSError, match="before"):
        _Elsewhere().opened().seek(-1)
