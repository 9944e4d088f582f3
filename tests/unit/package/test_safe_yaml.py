# SPDX-License-Identifier: Apache-2.0

"""Limits of YAML files that no single kind of file has."""

import pytest

from glare_murano.package import InvalidPackage
from glare_murano.package.safe_yaml import compose_all


def test_repeated_long_strings_are_counted_by_their_length() -> None:
    # 98 times 1,001 values of a string, and a few others.
    text = f"a: &a {'x' * 64_000}\nb: [{', '.join(['*a'] * 97)}]\n"
    _, count = compose_all(text.encode(), "a file")

    assert count == 98 * 1001 + 4


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_file_has_at_most_a_hundred_tag_directives(encoding: str) -> None:
    def text(count: int) -> bytes:
        directives = (f"%TAG !t{number}! tag:example.org:\n" for number in range(count))
        return f"{''.join(directives)}--- a\n".encode(encoding)

    compose_all(text(100), "a file")
    compose_all("%TAG% ".join(["a"] * 102).encode(encoding), "a file")
    with pytest.raises(InvalidPackage, match=r"more than 100 directives '%TAG'.*\[yaml-size\]"):
        compose_all(text(101), "a file")
