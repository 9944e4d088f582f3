# SPDX-License-Identifier: Apache-2.0

"""``openstack murano package copy``: all or nothing, with the same digests and fields."""

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from loader.catalogs.glare import GlareCatalog, GlareRepository
from loader.publishing import copying
from tests import packages
from tests.functional.client import Client
from tests.functional.openstack_command import OpenStack


@pytest.fixture
def other(as_user: Callable[[str], Client], project: str) -> Client:
    """A client of the project that packages are copied to."""
    return as_user(f"other-{project}")


@pytest.fixture
def openstack(tmp_path: pathlib.Path, glare: Client, other: Client) -> OpenStack:
    command = OpenStack(tmp_path, glare.url, glare.token)
    command.add_cloud("other", other.url, other.token)
    return command


def _copy(openstack: OpenStack, *arguments: object) -> dict[tuple[str, str], str]:
    rows = openstack.json("package", "copy", *arguments, "--to-cloud", "other")
    return {(row["Name"], row["Version"]): row["Result"] for row in rows}


def _found(client: Client, name: str) -> Any:
    """Return the one package of this name that the client's project owns."""
    owner = client.token.split(":")[1]
    answer = client.request("GET", "", params={"name": name, "owner": owner})
    (found,) = answer.json()["artifacts"]
    return found


def test_a_closure_is_copied_with_its_digests_and_fields(
    openstack: OpenStack,
    glare: Client,
    other: Client,
    name: str,
    set_option: Callable[[str, object], None],
) -> None:
    library = f"{name}.library"
    for version in ("1.0.0", "1.1.0"):
        glare.publish(library, version, packages.package(library, version))
    glare.publish(name, "1.0.0", packages.package(name, "1.0.0", Require={library: "1"}))
    openstack.ok(
        *("package", "set", name, "--display-name", "Mine", "--description", "What it is"),
        *("--category", "Web", "--tag", "new"),
    )
    for options in [], ["--dry-run"]:
        missing = openstack.fails("package", "copy", name, "--to-cloud", "other", *options)
        assert f"{name} 1.0.0 requires {library} in the range 1" in missing.err
    set_option("check_requirements", "warn")
    accepted = openstack.ok("package", "copy", name, "--to-cloud", "other", "--dry-run")
    assert f"{name} 1.0.0 requires {library} in the range 1" in accepted.err
    alone = f"{name}.alone"
    glare.publish(alone, "1.0.0", packages.package(alone, Require={library: "1"}))
    copied = openstack.ok("package", "copy", alone, "--to-cloud", "other")
    assert f"{alone} 1.0.0 requires {library} in the range 1" in copied.err
    assert other.names(name=alone) == [(alone, "1.0.0")]
    set_option("check_requirements", "enforce")
    chosen = [(name, "1.0.0"), (library, "1.1.0")]
    # Public in this Glare, which is the target as well.
    core = ("io.murano", "0.0.1")
    dry = _copy(openstack, name, "--closure", "--dry-run")
    assert dry == {**dict.fromkeys(chosen, "would be copied"), core: "is published"}
    assert other.names(name=f"in:{name},{library}") == []

    results = _copy(openstack, name, "--closure")

    skipped = "skipped, was published before"
    assert results == {**dict.fromkeys(chosen, "copied"), core: skipped}
    source, copied = _found(glare, name), _found(other, name)
    assert copied["status"] == "active"
    assert copied["archive"]["sha256"] == source["archive"]["sha256"]
    for field in ("display_name", "description", "tags", "categories", "keywords"):
        assert copied[field] == source[field]
    assert (copied["display_name"], copied["categories"]) == ("Mine", ["Web"])


def test_a_refused_copy_publishes_nothing_and_the_next_run_goes_on(
    openstack: OpenStack, glare: Client, other: Client, name: str
) -> None:
    glare.publish(name, "1.0.0", packages.package(name, "1.0.0"))
    library = f"{name}.library"
    glare.publish(library, "1.0.0", packages.package(library, "1.0.0"))
    # Only administrators may publish for every project.
    refused = openstack.fails("package", "copy", name, library, "--to-cloud", "other", "--public")
    assert "Uploaded packages stay as drafts" in refused.err
    # Other tests may have left drafts that anybody may see.
    drafts = other.names(status="drafted", name=f"in:{name},{library}")
    assert drafts == [(name, "1.0.0"), (library, "1.0.0")]

    results = _copy(openstack, name, library)

    assert set(results.values()) == {"published, was uploaded before"}
    again = openstack.ok("package", "copy", name, library, "--to-cloud", "other")
    assert again.out.count("skipped, was published before") == 2
    # The archives are not downloaded again.
    assert "downloaded" not in again.err


def test_other_files_under_the_same_version_are_refused(
    openstack: OpenStack, glare: Client, other: Client, name: str
) -> None:
    glare.publish(name, "1.0.0", packages.package(name, "1.0.0"))
    other.publish(name, "1.0.0", packages.package(name, "1.0.0", Author="Somebody else"))
    result = openstack.fails("package", "copy", name, "--to-cloud", "other")
    assert f"{name} 1.0.0 is published in" in result.err
    assert "with other files" in result.err


def test_a_yanked_version_is_copied_only_by_its_exact_version_and_stays_yanked(
    openstack: OpenStack, glare: Client, other: Client, name: str
) -> None:
    for version in ("1.0.0", "1.1.0"):
        glare.publish(name, version, packages.package(name, version))
    openstack.ok("package", "yank", f"{name}@1.1.0", "--reason", "loses data")
    assert list(_copy(openstack, name)) == [(name, "1.0.0")]

    assert _copy(openstack, f"{name}@1.1.0") == {(name, "1.1.0"): "copied"}

    answer = other.request("GET", "", params={"name": name, "version": "1.1.0"})
    (copied,) = answer.json()["artifacts"]
    assert (copied["yanked"], copied["status"]) == ("loses data", "active")
    # As if the first copy had been stopped before.
    assert other.set(copied["id"], "yanked", "").status_code == 200
    skipped = {(name, "1.1.0"): "skipped, was published before"}
    assert _copy(openstack, f"{name}@1.1.0") == skipped
    assert other.show(copied["id"])["yanked"] == "loses data"


def test_an_unknown_cloud_is_a_misuse(openstack: OpenStack, name: str) -> None:
    result = openstack.fails("package", "copy", name, "--to-cloud", "nowhere", code=2)
    assert "nowhere" in result.err


def test_a_copy_to_the_same_service_is_a_misuse(
    openstack: OpenStack, glare: Client, name: str
) -> None:
    openstack.add_cloud("again", glare.url, glare.token)
    result = openstack.fails("package", "copy", name, "--to-cloud", "again", code=2)
    assert result.err == (
        f"the target is the service from which the packages come, {glare.url}; choose another "
        f"cloud or service\n"
    )


def test_a_damaged_download_is_refused(
    glare: Client, other: Client, name: str, tmp_path: pathlib.Path
) -> None:
    glare.publish(name, "1.0.0", packages.package(name, "1.0.0"))

    class Damaged(GlareRepository):
        """Glare checks its own digests, so nothing real can send another archive."""

        def download(self, package: Any) -> Any:
            return iter([packages.package(name, "1.0.0", Author="Attacker")])

    source = Damaged(glare.session(), endpoint=glare.url)
    target = GlareRepository(other.session(), endpoint=other.url)
    catalog = GlareCatalog(other.session(), endpoint=other.url)
    found = list(source.named([name]))
    with pytest.raises(copying.errors.DigestMismatch, match=f"{name} 1.0.0 has the SHA-256"):
        copying.plan(source, target, catalog, found, "private", tmp_path)


def test_another_package_in_place_of_the_requested_one_is_refused(
    glare: Client, other: Client, name: str, tmp_path: pathlib.Path
) -> None:
    glare.publish(name, "1.0.0", packages.package(name, "1.0.0"))
    source = GlareRepository(glare.session(), endpoint=glare.url)
    target = GlareRepository(other.session(), endpoint=other.url)
    catalog = GlareCatalog(other.session(), endpoint=other.url)
    wrong = [dataclasses.replace(each, fqn=f"{name}.other") for each in source.named([name])]
    message = f"sent {name} 1.0.0 as the archive of {name}.other 1.0.0"
    with pytest.raises(copying.errors.CatalogError, match=message):
        copying.plan(source, target, catalog, wrong, "private", tmp_path)
