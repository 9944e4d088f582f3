# SPDX-License-Identifier: Apache-2.0

"""Batches of archives: a server's answer, which may be anything."""

import io
import tarfile
from collections.abc import Iterator

import pytest
from hypothesis import given, strategies

from loader.catalogs.batches import BATCH_ERRORS, read_batch

ARCHIVES = {"a": b"first" * 200, "b": b"", "c": b"third" * 1000}
SIZES = {name: len(data) for name, data in ARCHIVES.items()}


def _batch(**members: bytes) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as batch:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            batch.addfile(info, io.BytesIO(data))
    return written.getvalue()


def _pieces(data: bytes) -> Iterator[bytes]:
    return (data[start : start + 700] for start in range(0, len(data), 700))


def _read(data: bytes) -> dict[str, bytes]:
    return dict(read_batch(_pieces(data), SIZES))


def test_a_batch_is_read_in_order() -> None:
    assert list(read_batch(_pieces(_batch(**ARCHIVES)), SIZES)) == list(ARCHIVES.items())


def test_archives_before_an_error_are_read() -> None:
    arriving = read_batch(_pieces(_batch(a=ARCHIVES["a"], other=b"x")), SIZES)

    assert next(arriving) == ("a", ARCHIVES["a"])
    with pytest.raises(BATCH_ERRORS, match="contains 'other'"):
        next(arriving)


def _header(
    size: int = 0,
    kind: bytes = tarfile.REGTYPE,
    name: str = "a",
    extension: dict[str, str] | None = None,
) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    info.pax_headers = extension or {}
    return info.tobuf(tarfile.PAX_FORMAT if extension else tarfile.GNU_FORMAT)


ODD = {
    "another size": _batch(a=b"x"),
    "twice": _batch(b=b"")[: tarfile.BLOCKSIZE] * 2,
    "no end": _batch(**ARCHIVES)[: 2 * tarfile.BLOCKSIZE],
    "nothing": b"",
    "half a block": b"\0" * 100,
    "HTML": b"<html>" * 1000,
    "a link": _header(SIZES["a"], tarfile.SYMTYPE),
    "a folder": _header(SIZES["a"], tarfile.DIRTYPE),
    "a sparse file": _header(SIZES["a"], tarfile.GNUTYPE_SPARSE),
    "a huge one": _header(2**62),
    "a negative one": _header()[:124] + b"\xff" * 12 + _header()[136:],
    "a huge extension": _header(2**40, tarfile.XHDTYPE) + b"\0" * 10_000,
    "a size in an extension": _header(SIZES["a"], extension={"size": "9" * 40}),
    "digits": _header(200_000, tarfile.XHDTYPE) + b"1" * 200_000,
    "long names in long names": _header(512, tarfile.GNUTYPE_LONGNAME) * 2000,
    "a name of others": _header(SIZES["a"], name="\xe4"),
}


@pytest.mark.parametrize("odd", ODD)
def test_an_invalid_batch_is_an_error_at_once(odd: str) -> None:
    """Headers are not followed, other than by the library's own reader."""
    with pytest.raises(BATCH_ERRORS):
        _read(ODD[odd])


def test_an_endless_stream_is_not_read_for_ever() -> None:
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        while True:
            for name, data in ARCHIVES.items():
                piece = _header(len(data), name=name) + data + bytes(-len(data) % 512)
                read += len(piece)
                yield piece

    with pytest.raises(BATCH_ERRORS):
        dict(read_batch(endless(), SIZES))
    assert read < 100_000


@given(strategies.data())
def test_a_damaged_batch_yields_archives_or_an_error(data: strategies.DataObject) -> None:
    """Only requested archives are yielded, and only the documented errors raised."""
    whole = bytearray(_batch(**ARCHIVES))
    for _ in range(data.draw(strategies.integers(1, 5))):
        place = data.draw(strategies.integers(0, len(whole) - 1))
        whole[place] = data.draw(strategies.integers(0, 255))
    cut = bytes(whole[: data.draw(strategies.integers(0, len(whole)))])

    found = {}
    try:
        for name, archive in read_batch(_pieces(cut), SIZES):
            found[name] = archive
    except BATCH_ERRORS:
        pass

    assert all(len(archive) == SIZES[name] for name, archive in found.items())
