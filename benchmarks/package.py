# SPDX-License-Identifier: Apache-2.0

"""The time and memory for reading versions, archives and class files."""

import functools
import io
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator

import yaml

from benchmarks.measure import Figure, least_ratio, memory_above_idle, ratio
from glare_murano.package import Archive, Limits, Version, VersionSpec, read_contents

CORE_LIBRARY = pathlib.Path(".cache", "murano-16.0.0", "meta", "io.murano")
BIG = 500 * 1024**2
ROOMY = Limits(archive_size=1024**3, unpacked_size=1024**3)


def core_library() -> bytes:
    """Return an archive of Murano's core library."""
    packed = io.BytesIO()
    with Archive.open(CORE_LIBRARY) as archive:
        archive.pack(packed)
    return packed.getvalue()


def selecting() -> Iterator[Figure]:
    """Compare selecting the newest of 10,000 versions in a range with ``max()``."""
    dice = random.Random(1)
    versions = [
        Version(
            f"{dice.randrange(20)}.{dice.randrange(50)}.{dice.randrange(50)}"
            + (f"-rc.{dice.randrange(9)}" if dice.random() < 0.1 else "")
        )
        for _ in range(10_000)
    ]
    for range_ in (">=1.2,<2", "*", "7"):
        spec = VersionSpec.of(range_)
        value = ratio(functools.partial(spec.select, versions), lambda: max(versions))
        yield Figure(f"select({range_!r}) of 10,000 versions / max()", value, "times", 5)


def unpacking() -> Iterator[Figure]:
    """Compare unpacking 1,000 files, with all checks, with zipfile."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(1000):
            path = f"Classes/part{number % 10}/Class{number}.yaml"
            archive.writestr(path, f"Name: Class{number}\n" + "# text\n" * 300)
    with tempfile.TemporaryDirectory() as work:
        directory = pathlib.Path(work)

        def ours() -> None:
            with Archive.open(packed) as archive:
                archive.unpack(directory / "ours")

        def theirs() -> None:
            with zipfile.ZipFile(packed) as archive:
                archive.extractall(directory / "theirs")

        def clean() -> None:
            for name in ("ours", "theirs"):
                shutil.rmtree(directory / name, ignore_errors=True)

        value = ratio(ours, theirs, before=clean)
    yield Figure("unpacking 1,000 files / zipfile.extractall()", value, "times", 1.3)


def reading() -> Iterator[Figure]:
    """Compare reading the core library's manifest and classes with libyaml alone."""
    files = [path.read_bytes() for path in CORE_LIBRARY.rglob("*.yaml")]
    packed = io.BytesIO()
    with Archive.open(CORE_LIBRARY) as archive:
        archive.pack(packed)

    def ours() -> None:
        with Archive.open(packed) as archive:
            read_contents(archive)

    def theirs() -> None:
        for data in files:
            list(yaml.compose_all(data, Loader=yaml.CSafeLoader))

    value = least_ratio(ours, theirs)
    yield Figure("reading the core library / libyaml parsing its files", value, "times", 1.8)


def big_archive() -> Iterator[Figure]:
    """Measure the memory above idle while 500 MB are read, checked and unpacked."""
    with tempfile.TemporaryDirectory() as work:
        archive = pathlib.Path(work, "big.zip")
        write_big(archive)
        command = [sys.executable, "-m", "benchmarks.package", str(archive)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    value = float(printed)
    yield Figure("memory above idle, an archive of 500 MB unpacked", value, "MB", 1)


def write_big(path: pathlib.Path) -> None:
    """Write an archive of 500 MB."""
    block = os.urandom(1024**2)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(
            "manifest.yaml",
            "FullName: org.big\nType: Library\nClasses: {org.big.Big: Big.yaml}\n",
        )
        archive.writestr("Classes/Big.yaml", "Name: org.big.Big\n")
        with archive.open("Resources/big.img", "w", force_zip64=True) as stream:
            for _ in range(BIG // len(block)):
                stream.write(block)


def _unpack(path: pathlib.Path) -> None:
    with Archive.open(path, ROOMY) as archive:
        read_contents(archive)
        archive.unpack(path.with_suffix(".unpacked"))


BENCHMARKS = (selecting, unpacking, reading, big_archive)

if __name__ == "__main__":
    print(memory_above_idle(lambda: _unpack(pathlib.Path(sys.argv[1]))))
