# SPDX-License-Identifier: Apache-2.0

"""Extension plug-ins as packages."""

import logging

import pytest

from loader.engine import extensions
from loader.engine.extensions import NAMESPACE
from tests.plugins import Site

CODE = """
class Mail:
    murano_requirements = {"org.smtp": ">=1.2", "org.log": None}
    prepared = 0

    @classmethod
    def init_plugin(cls):
        cls.prepared += 1

class Spool:
    murano_requirements = {"org.smtp": "<2"}
"""


def _install(site: Site, name: str, *points: str, code: str = CODE) -> None:
    module = name.replace("-", "_")
    site.install(
        name,
        "1.4",
        {NAMESPACE: dict(point.split("=") for point in points)},
        {module: code},
    )


def test_the_classes_of_a_distribution_are_one_package(site: Site) -> None:
    _install(site, "mail-ext", "org.mail.Mail=mail_ext:Mail", "org.mail.Spool=mail_ext:Spool")

    (package,) = extensions.load_extensions()

    assert (package.name, str(package.version)) == ("mail-ext", "1.4.0")
    assert sorted(package.classes) == ["org.mail.Mail", "org.mail.Spool"]
    assert package.classes["org.mail.Mail"].prepared == 1  # type: ignore[attr-defined]


def test_requirements_of_all_classes_hold(site: Site) -> None:
    _install(site, "mail-ext", "org.mail.Mail=mail_ext:Mail", "org.mail.Spool=mail_ext:Spool")

    (package,) = extensions.load_extensions()

    versions = {fqn: str(spec) for fqn, spec in package.requirements.items()}
    assert sorted(versions) == ["org.log", "org.smtp"]
    smtp = package.requirements["org.smtp"]
    parse = extensions.parse_version
    assert [smtp.match(parse(text)) for text in ("1.1", "1.2", "2.0")] == [False, True, False]


@pytest.mark.parametrize(
    ("python", "semver"),
    [
        ("1", "1.0.0"),
        ("1.2", "1.2.0"),
        ("1.2.3.4", "1.2.3+4"),
        ("1.2rc1", "1.2.0-rc.1"),
        ("1.2.3.dev5", "1.2.3-dev.5"),
        ("1.0.post2", "1.0.0+post.2"),
        ("1.0+abc.1", "1.0.0+abc.1"),
    ],
)
def test_a_distributions_version_becomes_semver(python: str, semver: str) -> None:
    assert str(extensions.to_semver(python)) == semver


@pytest.mark.parametrize(
    ("point", "code"),
    [
        ("org.bad.Class=broken:Mail", "raise ImportError('no smtplib')"),
        ("org.bad.Class=broken:Mail", "raise SystemExit(3)"),
        ("org..bad=broken:Mail", CODE),
        ("org.bad.Class=broken:Missing", CODE),
        (
            "org.bad.Class=broken:Mail",
            CODE.replace("cls.prepared += 1", "raise ValueError('x')"),
        ),
    ],
)
def test_an_unusable_plug_in_is_left_out_with_a_warning(
    site: Site, caplog: pytest.LogCaptureFixture, point: str, code: str
) -> None:
    _install(site, "broken", point, code=code)
    _install(site, "mail-ext", "org.mail.Mail=mail_ext:Mail")

    with caplog.at_level(logging.WARNING):
        found = extensions.load_extensions()

    assert [package.name for package in found] == ["mail-ext"]
    assert point.split("=")[0] in caplog.text


def test_a_package_with_invalid_requirements_is_left_out(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    _install(site, "broken", "org.Bad=broken:Bad", code="class Bad:\n    murano_requirements = 7\n")
    wrong = "class Bad:\n    murano_requirements = {'a': '>>1'}\n"
    _install(site, "wrong", "org.Wrong=wrong:Bad", code=wrong)

    assert extensions.load_extensions() == []
    assert "broken" in caplog.text
    assert "'>>1'" in caplog.text


def test_a_class_that_two_define_is_left_out(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    _install(site, "one", "org.Same=one:Mail", "org.One=one:Spool")
    _install(site, "two", "org.Same=two:Mail", "org.Two=two:Spool")

    found = {package.name: list(package.classes) for package in extensions.load_extensions()}

    assert found == {"one": ["org.One"], "two": ["org.Two"]}
    assert "org.Same" in caplog.text


def test_an_operator_can_leave_plug_ins_out(site: Site) -> None:
    _install(site, "one", "org.One=one:Mail")
    _install(site, "two", "org.Two=two:Mail")

    assert [package.name for package in extensions.load_extensions(["two"])] == ["two"]
