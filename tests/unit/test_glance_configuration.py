# SPDX-License-Identifier: Apache-2.0

"""Merging the settings for packages into the configuration files of a Glance."""

import pathlib
import sys

import pytest
import yaml

from glare_murano.glance import configuration
from glare_murano.glance.configuration import ETC, ConfigurationError, configure
from glare_murano.glance.ini_file import IniFile

PASTE = """\
[composite:glance-api]
paste.composite_factory = glance.api:root_app_factory
/: api

[composite:glance-api-keystone]
paste.composite_factory = glance.api:root_app_factory
/: api

# Ours, with an audit.
[composite:glance-api-keystone+audit]
paste.composite_factory = glance.api:root_app_factory
/: api

[composite:api]
paste.composite_factory = glance.api:pipeline_factory
default = cors unauthenticated-context rootapp
keystone = cors versionnegotiation authtoken context rootapp
keystone+audit = cors versionnegotiation authtoken context cache audit limits cachemanage rootapp

[filter:context]
paste.filter_factory = glance.api.middleware.context:ContextMiddleware.factory

[filter:cache]
paste.filter_factory = glance.api.middleware.cache:CacheFilter.factory

[filter:cachemanage]
paste.filter_factory = glance.api.middleware.cache_manage:CacheManageFilter.factory

[filter:audit]
paste.filter_factory = keystonemiddleware.audit:filter_factory

[filter:limits]
use = egg:site#limits
"""
SHIPPED = IniFile(ETC / "glance-api-paste.ini").options("composite:api")["keystone"]
OURS = " ".join(name for name in SHIPPED.split() if "murano" in name)
PACKAGES = "[(?i)^murano_]"
GUARD = "not 'murano':%(container_format)s"


@pytest.fixture
def etc(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "glance-api.conf").write_text("# Ours.\n[DEFAULT]\ndebug = true\n")
    (tmp_path / "glance-api-paste.ini").write_text(PASTE)
    return tmp_path


def _texts(etc: pathlib.Path) -> dict[str, str]:
    return {str(p.relative_to(etc)): p.read_text() for p in etc.rglob("*") if p.is_file()}


def _policy(etc: pathlib.Path) -> dict[str, str]:
    rules: dict[str, str] = yaml.safe_load((etc / "policy.d/glare-murano.yaml").read_text())
    return rules


def _shipped_policy() -> dict[str, str]:
    rules: dict[str, str] = yaml.safe_load((ETC / "glance-policy.yaml").read_text())
    return rules


def _rules_of_glance() -> dict[str, str]:
    return {k: v for k, v in _shipped_policy().items() if not k.startswith("murano_")}


def test_a_glance_without_settings_gets_the_shipped_ones(etc: pathlib.Path) -> None:
    (etc / "glance-api-paste.ini").unlink()
    configure(etc)

    conf = IniFile(etc / "glance-api.conf")
    shipped = IniFile(ETC / "glance-murano.conf")
    assert conf.options("image_format") == shipped.options("image_format")
    protections = conf.get("DEFAULT", "property_protection_file")
    assert protections == str(etc / "property-protections.conf")
    assert conf.get("paste_deploy", "config_file") == str(etc / "glance-api-paste.ini")
    assert conf.text.startswith("# Ours.\n[DEFAULT]\n")
    assert conf.get("DEFAULT", "debug") == "true"
    texts = _texts(etc)
    for name in ("property-protections.conf", "glance-api-paste.ini"):
        assert texts[name] == (ETC / name).read_text()
    imports = IniFile(etc / "glance-image-import.conf")
    assert imports.get("image_import_opts", "image_import_plugins") == "['murano_package']"
    assert _policy(etc) == _shipped_policy()


def test_a_second_run_changes_nothing(etc: pathlib.Path) -> None:
    assert len(configure(etc)) == 5
    before = _texts(etc)

    assert configure(etc) == []
    assert _texts(etc) == before


def test_a_new_file_can_be_read_by_whom_the_others_can(etc: pathlib.Path) -> None:
    (etc / "glance-api.conf").chmod(0o640)

    for path in configure(etc):
        assert path.stat().st_mode & 0o777 == (
            0o644 if path.name == "glance-api-paste.ini" else 0o640
        )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[image_format]\ncontainer_formats = bare,ovf", "bare,ovf,murano"),
        ("[image_format]\ncontainer_formats = bare,\n  ovf", "bare,ovf,murano"),
        ("[image_format]\ncontainer_formats = murano, bare", "murano, bare"),
        ("container_formats = bare", "bare,murano"),
    ],
)
def test_container_formats_stay(etc: pathlib.Path, before: str, after: str) -> None:
    (etc / "glance-api.conf").write_text(f"[DEFAULT]\n{before}\n")
    configure(etc)

    assert IniFile(etc / "glance-api.conf").get("image_format", "container_formats") == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[]", "['murano_package']"),
        ("['image_conversion']", "['image_conversion', 'murano_package']"),
        ("[murano_package, no_op]", "['no_op', 'murano_package']"),
        ('["no_op","murano_package"]', '["no_op","murano_package"]'),
    ],
)
@pytest.mark.parametrize("file", ["glance-image-import.conf", "glance-api.conf"])
def test_the_plugin_comes_last_where_plugins_are_set(
    etc: pathlib.Path, before: str, after: str, file: str
) -> None:
    with (etc / file).open("a") as stream:
        stream.write(f"[image_import_opts]\nimage_import_plugins = {before}\n")
    configure(etc)

    assert IniFile(etc / file).options("image_import_opts") == {"image_import_plugins": after}
    if file == "glance-api.conf":
        assert not (etc / "glance-image-import.conf").exists()


def test_pipelines_with_keystone_get_ours(etc: pathlib.Path) -> None:
    configure(etc)

    paste = IniFile(etc / "glance-api-paste.ini")
    assert paste.options("composite:api") == {
        "paste.composite_factory": "glance.api:pipeline_factory",
        "default": "cors unauthenticated-context rootapp",
        "keystone": f"cors versionnegotiation authtoken context {OURS} rootapp",
        # Glance's cache stays where it is, and the operator's filters see what ours refuse.
        "keystone+audit": f"cors versionnegotiation authtoken context cache audit limits {OURS} "
        "cachemanage rootapp",
    }
    mounted = paste.options("composite:murano")
    for flavor, added in {"keystone": "", "keystone+audit": " audit limits"}.items():
        expected = f"cors murano-requests authtoken context{added} murano-packages"
        assert mounted[flavor] == expected
        assert paste.get(f"composite:glance-api-{flavor}", "/murano") == "murano"
    assert paste.get("composite:glance-api", "/murano") is None
    assert "\n# Ours, with an audit.\n[composite:glance-api-keystone+audit]\n" in paste.text


def test_the_shipped_paste_file_has_what_is_merged(etc: pathlib.Path) -> None:
    shipped = IniFile(ETC / "glance-api-paste.ini")
    lines = [line for line in shipped.text.splitlines() if not line.startswith("/murano")]
    stock = "\n".join(lines).replace(f" {OURS}", "")
    (etc / "glance-api-paste.ini").write_text(stock)
    configure(etc)

    merged = IniFile(etc / "glance-api-paste.ini")
    assert merged.sections() == shipped.sections()
    for section in shipped.sections():
        assert merged.options(section) == shipped.options(section)


def test_a_paste_file_elsewhere_is_changed_there(etc: pathlib.Path) -> None:
    elsewhere = (etc / "glance-api-paste.ini").rename(etc / "elsewhere.ini")
    with (etc / "glance-api.conf").open("a") as stream:
        stream.write(f"[paste_deploy]\nconfig_file = {elsewhere}\n")
    configure(etc)

    assert f"context {OURS}" in elsewhere.read_text()
    assert not (etc / "glance-api-paste.ini").exists()


def test_property_protections_stay_behind_ours(etc: pathlib.Path) -> None:
    theirs = "# Ours.\n[^billing_.*]\ncreate = billing\nread = @\nupdate = billing\ndelete = !\n"
    (etc / "rules.conf").write_text(theirs)
    with (etc / "glance-api.conf").open("a") as stream:
        stream.write("property_protection_file = rules.conf\n")
    configure(etc)

    written = (etc / "rules.conf").read_text()
    assert written.startswith(f"{PACKAGES}\ncreate = !\n")
    assert written.endswith(f"\n\n{theirs}")
    assert not (etc / "property-protections.conf").exists()


def test_a_rule_before_ours_is_reported(etc: pathlib.Path) -> None:
    shipped = (ETC / "property-protections.conf").read_text()
    (etc / "property-protections.conf").write_text(f"[.*]\ncreate = @\n{shipped}")
    before = _texts(etc)

    with pytest.raises(ConfigurationError, match="should be the first section"):
        configure(etc)
    assert _texts(etc) == before


def test_the_rules_of_the_policy_file_are_kept_and_restricted(etc: pathlib.Path) -> None:
    (etc / "policy.yaml").write_text('"upload_image": "role:uploader or role:admin"\n')
    (etc / "policy.d").mkdir()
    (etc / "policy.d/a.yaml").write_text('"add_image_location": "@"\n"other": "!"\n')
    configure(etc)

    assert _policy(etc) == {
        **_shipped_policy(),
        "upload_image": f"(role:uploader or role:admin) and {GUARD}",
        "add_image_location": GUARD,
    }


def test_a_changed_rule_is_taken_over(etc: pathlib.Path) -> None:
    configure(etc)
    (etc / "policy.yaml").write_text('"upload_image": "role:uploader"\n')

    assert configure(etc) == [etc / "policy.d/glare-murano.yaml"]
    assert _policy(etc)["upload_image"] == f"(role:uploader) and {GUARD}"


def test_nothing_is_written_beside_a_policy_that_is_ours(etc: pathlib.Path) -> None:
    (etc / "policy.yaml").write_text((ETC / "glance-policy.yaml").read_text())
    configure(etc)

    assert not (etc / "policy.d").exists()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("policy.d/later.yaml", "upload_image: role:x", "is read after glare-murano.yaml"),
        ("policy.yaml", "upload_image: [", "is not valid YAML"),
        ("policy.yaml", "- upload_image", "should contain rules as strings"),
        ("policy.yaml", "upload_image: [[a]]", "should contain rules as strings"),
        ("glance-api-paste.ini", "[pipeline:x]\n", "should have pipelines with the filter context"),
    ],
)
def test_a_file_that_cannot_be_merged_changes_nothing(
    etc: pathlib.Path, name: str, text: str, message: str
) -> None:
    (etc / name).parent.mkdir(exist_ok=True)
    (etc / name).write_text(text)
    before = _texts(etc)

    with pytest.raises(ConfigurationError, match=message):
        configure(etc)
    assert _texts(etc) == before


def test_each_shipped_rule_ends_with_a_condition_for_packages() -> None:
    conditions = {rule.rpartition(" and ")[2] for rule in _rules_of_glance().values()}
    assert conditions == {GUARD, "rule:murano_change"}


def test_the_operators_rule_for_changes_of_packages_is_kept(etc: pathlib.Path) -> None:
    (etc / "policy.yaml").write_text('"murano_change": "@"\n"delete_image": "role:deleter"\n')
    configure(etc)

    written = _policy(etc)
    assert "murano_change" not in written
    assert written["delete_image"] == "(role:deleter) and rule:murano_change"


def test_the_command_lists_the_files(
    etc: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["glare-murano-glance-configure", str(etc)])

    assert configuration.main() == 0
    assert f"changed {etc}/glance-api.conf\n" in capsys.readouterr().out
    assert configuration.main() == 0
    assert capsys.readouterr().out == "nothing to change\n"


def test_a_relative_directory_gives_absolute_paths(
    etc: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(etc.parent)

    changed = configure(pathlib.Path(etc.name))

    assert set(changed) <= set(etc.rglob("*"))
    protections = IniFile(etc / "glance-api.conf").get("DEFAULT", "property_protection_file")
    assert protections == str(etc / "property-protections.conf")
    assert configure(pathlib.Path(etc.name)) == []


def test_the_command_names_a_directory_without_glance(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["glare-murano-glance-configure", str(tmp_path)])

    assert configuration.main() == 1
    assert f"{tmp_path}/glance-api.conf is missing" in capsys.readouterr().err
