# SPDX-License-Identifier: Apache-2.0

"""The fields that services store of a package, and their limits."""

import pytest

from glare_murano import fields
from glare_murano.package import InvalidVersion


@pytest.mark.parametrize(
    "text",
    ["32767.65535.65535", "1.0.0-" + "a" * 54, "1.0.0-999999", "1.0.0-rc.0.999999", "1"],
)
def test_a_version_within_the_limits_is_stored(text: str) -> None:
    assert str(fields.check_version(text)).startswith(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("32768.0.0", "services store a first number up to 32767, other numbers up to 65535"),
        ("0.65536.0", "services store a first number up to 32767, other numbers up to 65535"),
        ("0.0.65536", "services store a first number up to 32767, other numbers up to 65535"),
        ("1.0.0-1000000", "up to 6 digits in a pre-release"),
        ("1.0.0-rc.1.1000000", "up to 6 digits in a pre-release"),
        ("1.0.0-" + "a" * 55, "longer than 60 characters"),
        ("1.x", "1.x"),
    ],
)
def test_a_version_beyond_a_limit_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidVersion, match=problem):
        fields.check_version(text)


def test_fields_come_either_from_the_package_or_from_clients() -> None:
    from_package = {field.name for field in fields.FIELDS if field.by_package}

    assert {"class_definitions", "requirements", "format", "type"} <= from_package
    assert from_package.isdisjoint({"display_name", "categories", "yanked"})
    changeable = {field.name for field in fields.FIELDS if field.mutable}
    assert changeable == {"display_name", "categories", "keywords", "yanked"}
