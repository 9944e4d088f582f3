# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Reading batches, which are a server's answer, and so may be anything."""

import io
import tarfile
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies

from loader.catalogs import batches

ARCHIVES = {"a": b"first" * 200, "b": b"", "c": b"third" * 1000}
SIZES = {name: len(data) for name, data in ARCHIVES.items()}


def _batch(form: int = tarfile.USTAR_FORMAT, **members: bytes) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=form) as batch:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            batch.addfile(info, io.BytesIO(data))
    return written.getvalue()


def _pieces(data: bytes, size: int = 700) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def _read(data: bytes) -> dict[str, bytes]:
    return dict(batches.read(_pieces(data), SIZES))


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_batch_is_read_in_order(form: int) -> None:
    assert list(batches.read(_pieces(_batch(form, **ARCHIVES)), SIZES)) == list(ARCHIVES.items())


def test_what_was_not_asked_for_is_passed_over() -> None:
    data = _batch(other=b"x" * 100, c=ARCHIVES["c"], a=ARCHIVES["a"][:-1])

    assert _read(data) == {"c": ARCHIVES["c"]}


def test_links_and_folders_are_passed_over() -> None:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as batch:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE):
            info = tarfile.TarInfo("b")
            info.type = kind
            info.linkname = "/etc/passwd"
            batch.addfile(info)

    assert _read(written.getvalue()) == {}


def test_a_stream_without_end_is_not_read_for_ever() -> None:
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        info = tarfile.TarInfo("huge")
        info.size = 2**32
        yield info.tobuf()
        while True:
            read += 512
            yield b"\0" * 512

    with pytest.raises(batches.MALFORMED):
        dict(batches.read(endless(), SIZES))
    assert read < 100_000


def test_a_header_that_claims_much_does_not_fill_the_memory() -> None:
    info = tarfile.TarInfo("pax")
    info.type = tarfile.XHDTYPE
    info.size = 2**32
    data = info.tobuf() + b"\0" * 100_000

    with pytest.raises(batches.MALFORMED):
        _read(data)


@given(strategies.data())
def test_whatever_arrives_is_an_archive_or_told(data: strategies.DataObject) -> None:
    """Nothing but what was asked for comes out, and only the errors that are told."""
    whole = bytearray(_batch(**ARCHIVES))
    for _ in range(data.draw(strategies.integers(1, 5))):
        place = data.draw(strategies.integers(0, len(whole) - 1))
        whole[place] = data.draw(strategies.integers(0, 255))
    cut = bytes(whole[: data.draw(strategies.integers(0, len(whole)))])

    found = {}
    try:
        for name, archive in batches.read(_pieces(cut), SIZES):
            found[name] = archive
    except batches.MALFORMED:
        pass

    assert all(len(archive) == SIZES[name] for name, archive in found.items())
