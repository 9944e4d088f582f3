# SPDX-License-Identifier: Apache-2.0

"""``openstack murano package publish``: everything checked first, all published or nothing."""

import hashlib
import json
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from loader.catalogs.glare import GlareRepository
from tests import packages
from tests.functional.client import Client
from tests.functional.openstack_command import OpenStack


@pytest.fixture
def source(tmp_path: pathlib.Path) -> Callable[..., pathlib.Path]:
    """Writes the directory of a package."""

    def write(name: str, version: str, **keys: Any) -> pathlib.Path:
        folder = tmp_path / "sources" / name / version
        folder.mkdir(parents=True)
        return packages.write(folder, packages.content(name, version, **keys))

    return write


@pytest.fixture
def sources(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "sources"


def _results(openstack: OpenStack, *arguments: object) -> dict[tuple[str, str], str]:
    rows = openstack.json("package", "publish", *arguments)
    return {(row["Name"], row["Version"]): row["Result"] for row in rows}


def test_a_tree_of_versions_is_published_and_the_second_run_skips_all(
    openstack: OpenStack,
    glare: Client,
    name: str,
    source: Callable[..., pathlib.Path],
    sources: pathlib.Path,
) -> None:
    other = f"{name}2"
    # They require each other, so neither could be published before the other.
    source(name, "1.0.0", Require={other: "1"})
    source(name, "1.1.0", Require={other: "1"})
    source(other, "1.0.0", Require={name: ">=1"})
    source(name, "dev")
    first = _results(openstack, sources)
    assert first == dict.fromkeys([(name, "1.0.0"), (name, "1.1.0"), (other, "1.0.0")], "published")
    assert glare.names(name=f"in:{name},{other}", status="active") == sorted(first)
    second = _results(openstack, sources)
    assert set(second.values()) == {"skipped, was published before"}
    failed = openstack.fails("package", "publish", sources, "--if-exists", "fail")
    assert failed.err.count("is published already") == 3


def test_all_errors_are_reported_before_anything_is_sent(
    openstack: OpenStack,
    glare: Client,
    name: str,
    source: Callable[..., pathlib.Path],
    sources: pathlib.Path,
) -> None:
    source(name, "1.0.0")
    source(name, "1.1.0", Type="Nonsense")
    (sources / "broken.zip").write_bytes(b"no archive")
    result = openstack.fails("package", "publish", sources, sources / "missing")
    for problem in ("1.1.0: Type, line", "broken.zip: archive", "missing: No such file"):
        assert problem in result.err, result.err
    assert glare.names(name=name) == []


def test_a_published_version_never_changes(
    openstack: OpenStack, name: str, source: Callable[..., pathlib.Path]
) -> None:
    folder = source(name, "1.0.0")
    openstack.ok("package", "publish", folder)
    (folder / "Resources").mkdir()
    (folder / "Resources" / "new.txt").write_text("new")
    result = openstack.fails("package", "publish", folder)
    assert f"{name} 1.0.0 is published in" in result.err
    assert "publish these files as another version" in result.err


def test_an_archive_of_another_tool_with_the_same_files_is_the_same_version(
    openstack: OpenStack, glare: Client, name: str, source: Callable[..., pathlib.Path]
) -> None:
    folder = source(name, "1.0.0")
    glare.publish(name, "1.0.0", packages.package(name, "1.0.0"))
    assert _results(openstack, folder) == {(name, "1.0.0"): "skipped, was published before"}


def test_a_dry_run_changes_nothing(
    openstack: OpenStack, glare: Client, name: str, source: Callable[..., pathlib.Path]
) -> None:
    folder = source(name, "1.0.0")
    results = _results(openstack, folder, "--dry-run")
    assert results == {(name, "1.0.0"): "would be uploaded and published"}
    assert glare.names(name=name) == []


def test_missing_requirements_are_named_before_the_upload_or_taken_from_a_directory(
    openstack: OpenStack,
    glare: Client,
    name: str,
    source: Callable[..., pathlib.Path],
    sources: pathlib.Path,
) -> None:
    library = f"{name}.library"
    folder = source(name, "1.0.0", Require={library: ">=1,<2"})
    for version in ("1.0.0", "1.2.0", "2.0.0"):
        source(library, version)
    missing = openstack.fails("package", "publish", folder)
    assert f"{name} 1.0.0 requires {library} in the range >=1,<2" in missing.err
    assert glare.names(name=name) == []
    results = _results(openstack, folder, "--with-requirements", sources / library)
    assert set(results) == {(name, "1.0.0"), (library, "1.2.0")}


@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_the_requirements_of_a_public_package_have_to_be_public(
    tmp_path: pathlib.Path,
    admin: Client,
    name: str,
    source: Callable[..., pathlib.Path],
    options: list[str],
) -> None:
    openstack = OpenStack(tmp_path, admin.url, admin.token)
    library = f"{name}.library"
    admin.publish(library, "1.0.0", packages.package(library))
    admin.publish(library, "2.0.0", packages.package(library, "2.0.0"), public=True)
    folder = source(name, "1.0.0", Require={library: "1"})
    refused = openstack.fails("package", "publish", "--public", folder, *options)
    assert f"{name} 1.0.0 requires {library} in the range 1, which was not found among" in (
        refused.err
    )
    assert "(available: 2.0.0, 1.0.0 (private)); publish it as well" in refused.err
    assert admin.names(name=name) == []
    # A public one is found, and a private one serves a private package.
    openstack.ok("package", "publish", folder, *options)


@pytest.mark.parametrize("mode", ["warn", "off"])
def test_requirements_that_the_server_does_not_enforce_are_warnings(
    tmp_path: pathlib.Path,
    admin: Client,
    name: str,
    source: Callable[..., pathlib.Path],
    set_option: Callable[[str, object], None],
    mode: str,
) -> None:
    """Also those that no package can satisfy: only an extension plug-in may have such a name."""
    openstack = OpenStack(tmp_path, admin.url, admin.token)
    library = f"{name}.library"
    private = source(name, "1.0.0", Require={library: "1", "org-example-mail": "1"})
    hint = "if engines provide one as an extension plug-in, the operator names it in the option"
    warnings = [
        f"{private}: {name} 1.0.0 requires org-example-mail in the range 1, which was not found "
        f"in Glare at {admin.url} (available: none); {hint} provided_packages\n",
        f"{private}: {name} 1.0.0 requires {library} in the range 1, which was not found in "
        f"Glare at {admin.url} (available: none); publish it as well; {hint} provided_packages\n",
    ]
    refused = openstack.run("package", "publish", private)
    assert (refused.code, refused.err) == (1, "".join(warnings))
    set_option("check_requirements", mode)
    accepted = openstack.ok("package", "publish", private, "--dry-run")
    assert accepted.err == "".join(warnings)
    openstack.ok("package", "publish", private)
    assert admin.names(name=name, status="active") == [(name, "1.0.0")]

    # The requirements of a public package are another check.
    public = source(name, "1.1.0", Require={library: "1"})
    refused = openstack.fails("package", "publish", "--public", public)
    assert f"{name} 1.1.0 requires {library} in the range 1" in refused.err
    set_option("check_public_requirements", mode)
    openstack.ok("package", "publish", "--public", public)
    assert admin.names(name=name, visibility="public") == [(name, "1.1.0")]


def test_a_package_that_the_server_would_refuse_is_refused_before_anything_is_sent(
    openstack: OpenStack,
    glare: Client,
    name: str,
    source: Callable[..., pathlib.Path],
    sources: pathlib.Path,
    set_option: Callable[[str, object], None],
) -> None:
    set_option("check_forms", "enforce")
    source(name, "1.0.0")
    form = packages.write(source(name, "1.1.0"), {"UI/ui.yaml": b"Forms: []\n"})
    long = source(name, "1.2.0", Description="x" * 5000)
    large = source(name, "40000.0.0")
    for options in [], ["--dry-run"]:
        refused = openstack.fails("package", "publish", sources, *options)
        problem = "UI/ui.yaml, line 1: the section 'Application' is missing [form-section]"
        assert refused.err.splitlines()[-3:] == [
            f"{long}: description: 5000 characters, at most 4096 are allowed [manifest-limit]",
            f"{large}: Version: '40000.0.0': services store a first number up to 32767, other "
            "numbers up to 65535, and up to 6 digits in a pre-release [manifest-limit]",
            f"{form}: {problem}",
        ]
    assert glare.names(name=name) == []


def test_a_dry_run_of_uploaded_packages_checks_the_rights(
    openstack: OpenStack, glare: Client, name: str, source: Callable[..., pathlib.Path]
) -> None:
    folder = source(name, "1.0.0")
    openstack.ok("package", "publish", folder)
    refused = openstack.fails("package", "publish", "--public", folder, "--dry-run")
    assert f"{name} 1.0.0: the policy artifact:publish forbids it" in refused.err
    assert glare.names(name=name, visibility="public") == []


def test_a_yanked_requirement_is_named_as_such_and_serves_exactly_its_version(
    openstack: OpenStack, glare: Client, name: str, source: Callable[..., pathlib.Path]
) -> None:
    library = f"{name}.library"
    published = glare.publish(library, "1.0.0", packages.package(library))
    glare.set(published["id"], "yanked", "loses data")
    refused = openstack.fails("package", "publish", source(name, "1.0.0", Require={library: "1"}))
    assert "(available: 1.0.0 (yanked)); publish it as well" in refused.err
    openstack.ok("package", "publish", source(name, "1.1.0", Require={library: "1.0.0"}))


def test_a_refused_publication_keeps_drafts_and_the_next_run_goes_on(
    openstack: OpenStack, glare: Client, name: str, source: Callable[..., pathlib.Path]
) -> None:
    folder = source(name, "1.0.0")
    # Only administrators may publish for every project.
    refused = openstack.fails("package", "publish", "--public", folder)
    assert f"{name} 1.0.0: the policy artifact:publish forbids it" in refused.err
    # Behind the error.
    assert refused.err.endswith(
        "\nUploaded packages stay as drafts, and the same command goes on with them.\n"
    )
    assert glare.names(name=name, status="drafted") == [(name, "1.0.0")]
    assert _results(openstack, folder) == {(name, "1.0.0"): "published, was uploaded before"}


def test_a_refusal_before_any_upload_mentions_no_drafts(
    openstack: OpenStack,
    name: str,
    source: Callable[..., pathlib.Path],
    policy: Callable[[str, str], None],
) -> None:
    policy("artifact:create", "!")
    refused = openstack.fails("package", "publish", source(name, "1.0.0"))
    assert "artifact:create" in refused.err
    assert "Uploaded packages" not in refused.err


@pytest.mark.parametrize("is_packed", [False, True])
def test_packages_are_published_as_another_version(
    openstack: OpenStack,
    glare: Client,
    name: str,
    source: Callable[..., pathlib.Path],
    tmp_path: pathlib.Path,
    is_packed: bool,
) -> None:
    path = source(name, "0.0.0")
    if is_packed:
        path = tmp_path / "package.zip"
        path.write_bytes(packages.package(name, None))
    published = {(name, "0.16.0"): "published"}
    assert _results(openstack, path, "--as-version", "0.16") == published
    assert openstack.json("package", "show", name)["version"] == "0.16.0"
    skipped = {(name, "0.16.0"): "skipped, was published before"}
    assert _results(openstack, path, "--as-version", "0.16.0") == skipped
    assert glare.names(name=name) == [(name, "0.16.0")]


def test_changed_files_are_refused_under_a_published_version(
    openstack: OpenStack, name: str, source: Callable[..., pathlib.Path]
) -> None:
    path = source(name, "0.0.0")
    openstack.ok("package", "publish", path, "--as-version", "0.16.0")
    (path / "Classes/Thing.yaml").write_text(f"Name: {name}.Thing\n")
    result = openstack.fails("package", "publish", path, "--as-version", "0.16.0")
    assert f"{name} 0.16.0 is published in Glare at" in result.err
    assert "with other files" in result.err
    openstack.fails("package", "publish", path, "--as-version", "new", code=2)
    assert _results(openstack, path, "--as-version", "0.16.1") == {(name, "0.16.1"): "published"}


def test_categories_are_set_without_another_request(
    openstack: OpenStack,
    name: str,
    source: Callable[..., pathlib.Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(GlareRepository, "change", None)
    openstack.ok(
        "package", "publish", source(name, "1.0.0"), "--category", "Web", "--category", "Text"
    )
    assert openstack.json("package", "show", name)["categories"] == ["Web", "Text"]


def _bundle(tmp_path: pathlib.Path, name: str, url: str, digest: str = "") -> pathlib.Path:
    path = tmp_path / "packages.bundle"
    entry = {"Name": name, "Version": "1.0.0", "Url": url, "Sha256": digest}
    path.write_text(json.dumps({"Packages": [entry]}))
    return path


def test_a_bundle_file_is_published_and_its_digests_are_checked(
    openstack: OpenStack, tmp_path: pathlib.Path, name: str
) -> None:
    archive = packages.package(name, "1.0.0")
    (tmp_path / "package.zip").write_bytes(archive)
    digest = hashlib.sha256(archive).hexdigest()
    wrong = openstack.fails("package", "publish", _bundle(tmp_path, name, "package.zip", "0" * 64))
    assert digest in wrong.err
    results = _results(openstack, _bundle(tmp_path, name, "package.zip", digest))
    assert results == {(name, "1.0.0"): "published"}


def test_a_bundle_does_not_read_outside_its_directory(
    openstack: OpenStack, tmp_path: pathlib.Path, name: str
) -> None:
    for url in ("../package.zip", "/etc/passwd", "file:///etc/passwd", "%2e%2e/package.zip"):
        result = openstack.fails("package", "publish", _bundle(tmp_path, name, url))
        assert "is not below the directory of the bundle" in result.err


def test_a_url_of_another_kind_is_refused(openstack: OpenStack) -> None:
    refused = openstack.fails("package", "publish", "ftp://x/y", code=2)
    assert "ftp://x/y: only http and https URLs of bundles can be downloaded\n" in refused.err


@pytest.mark.parametrize("part", ["manifest.yaml", "Classes/Thing.yaml"])
def test_a_file_of_a_package_is_refused_with_the_name_of_its_directory(
    openstack: OpenStack, tmp_path: pathlib.Path, part: str
) -> None:
    folder = tmp_path / "package"
    (folder / "Classes").mkdir(parents=True)
    (folder / "manifest.yaml").write_text("Format: 1.0\n")
    (folder / part).touch()

    refused = openstack.fails("package", "publish", folder / part)

    assert refused.err == (
        f"{folder / part}: is a file of a package; name the directory of the package, {folder}\n"
    )
