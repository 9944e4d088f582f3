# SPDX-License-Identifier: Apache-2.0

"""Names that belong to projects, in the real Glare: who publishes, and what is chosen."""

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import loader
from glare_murano.glare.api import middleware
from glare_murano.package import Version
from glare_murano.wire import Query
from loader import GlareCatalog, PackageLoader, ReservedNames, resolution
from tests import packages
from tests.functional.client import SUBCLASSES, Client, message, refusal
from tests.functional.conftest import CORE, CORE_VERSION
from tests.functional.openstack_command import OpenStack

Reserve = Callable[[str], None]
Publish = Callable[..., Any]


@pytest.fixture
def reserve(set_option: Callable[[str, object], None], tmp_path: pathlib.Path) -> Reserve:
    """Gives Glare a file of reserved names, until the test ends."""

    def reserve_names(text: str) -> None:
        path = tmp_path / "reserved-names.yaml"
        path.write_text(text)
        set_option("reserved_names_file", str(path))

    return reserve_names


@pytest.fixture
def remove(admin: Client) -> Iterator[list[str]]:
    """The ids of public packages that other tests must not see."""
    ids: list[str] = []
    yield ids
    for artifact_id in ids:
        assert admin.delete(artifact_id).status_code == 204


def _catalog(client: Client, project: str) -> GlareCatalog:
    return GlareCatalog(client.session(), project_id=project, endpoint=client.url)


def _both_ways(client: Client, project: str, query: Query) -> resolution.Resolution:
    """Resolve a query by Glare's filter, and by Glare's lists; the answers are the same."""
    by_filter = resolution.resolve([_catalog(client, project)], query)
    by_lists = resolution.by_level([_catalog(client, project)], query)
    assert _shown(by_filter) == _shown(by_lists)
    return by_filter


def _shown(resolved: resolution.Resolution) -> Any:
    return (
        sorted((str(each.release), each.release.id) for each in resolved.chosen),
        sorted(str(each.demand) for each in resolved.unsatisfied),
        [str(each) for each in resolved.undefined],
    )


def _versions(resolved: resolution.Resolution, fqn: str) -> list[str]:
    return sorted(str(each.release.version) for each in resolved.chosen if each.release.fqn == fqn)


def _query(fqn: str, **others: Any) -> Query:
    return Query(((fqn, loader.VersionSpec.of("*")),), **others)


class TestPublishing:
    def test_a_draft_of_the_core_library_is_refused_to_those_who_may_not_publicize(
        self, glare: Client, admin: Client
    ) -> None:
        refused = refusal(glare.create(CORE, "0.99.0"), 403)

        assert "io.murano is Murano's core library" in refused
        assert "[name-reserved]" in refused
        created = admin.create(CORE, "0.98.0")
        assert created.status_code == 201
        assert admin.delete(created.json()["id"]).status_code == 204
        # Its classes have names below it, and so have packages of anybody.
        assert glare.create("io.murano.apps.mine", "1.0.0").status_code == 201

    def test_a_name_of_another_project_is_refused_to_everybody_else(
        self, glare: Client, admin: Client, as_user: Any, name: str, project: str, reserve: Reserve
    ) -> None:
        owner = as_user(f"{project}-owner")
        reserve(f"{name}.: [{project}-owner]")
        forced = Client(admin.url, admin.token)
        forced.headers["X-Murano-Override-Checks"] = "true"

        for client in (glare, admin, forced):
            for fqn in (name, f"{name}.db"):
                refused = refusal(client.create(fqn, "1.0.0"), 403)
                assert f"which is under the prefix {name}" in refused
                assert f"reserved for project {project}-owner" in refused
        assert glare.create(f"{name}s", "1.0.0").status_code == 201
        data = packages.package(f"{name}.db")
        assert owner.publish(f"{name}.db", "1.0.0", data)["status"] == "active"

    def test_a_class_of_another_project_is_refused_at_the_upload(
        self, glare: Client, name: str, reserve: Reserve
    ) -> None:
        reserve(f"{name}: [owner]\nio.murano: []")
        fqn = f"{name}s"
        for class_name in (f"{name}.Db", "io.murano.Application"):
            manifest = packages.manifest(fqn, Classes={class_name: "Thing.yaml"})
            draft = glare.create(fqn, "1.0.0").json()["id"]

            refused = refusal(glare.upload(draft, packages.zipped(packages.files(manifest))), 400)

            assert f"may not define {class_name}, which is under" in refused
            # The operator's prefixes have no owner to publish as.
            is_owned = class_name.startswith(name)
            assert ("publish as one of its owners" in refused) == is_owned
            assert "[name-reserved]" in refused
            assert glare.delete(draft).status_code == 204

    @pytest.mark.parametrize("what", ["name", "class"])
    def test_what_was_uploaded_before_the_reservation_is_not_published_after_it(
        self, glare: Client, admin: Client, name: str, reserve: Reserve, what: str
    ) -> None:
        defined = {"Classes": {f"{name}.reserved.Thing": "Thing.yaml"}}
        archive = [packages.package(name, version, **defined) for version in ("1.0.0", "2.0.0")]
        draft = glare.draft(name, "1.0.0", archive[0])
        private = glare.publish(name, "2.0.0", archive[1])["id"]
        reserve(f"{name if what == 'name' else f'{name}.reserved'}: [owner]")
        forced = Client(admin.url, admin.token)
        forced.headers["X-Murano-Override-Checks"] = "true"

        answers = [
            glare.set(draft, "status", "active"),
            glare.publish_all([draft], "private"),
            forced.publish_all([draft], "public"),
            forced.set(private, "visibility", "public"),
            forced.publish_all([private], "public"),
        ]

        assert [answer.status_code for answer in answers] == [403] * 5
        assert all("[name-reserved]" in message(answer) for answer in answers)
        assert (glare.show(draft)["status"], glare.show(private)["visibility"]) == (
            "drafted",
            "private",
        )

    def test_what_nobody_may_choose_satisfies_no_requirement(
        self, glare: Client, name: str, reserve: Reserve
    ) -> None:
        glare.publish(f"{name}.db", "1.0.0", packages.package(f"{name}.db"))
        wiki = glare.draft(
            f"{name}.wiki", "1.0.0", packages.package(f"{name}.wiki", Require={f"{name}.db": "1"})
        )
        reserve(f"{name}.db: [owner]")

        refused = refusal(glare.set(wiki, "status", "active"), 409)

        assert f"{name}.db in the range 1 (missing, or not visible" in refused

    def test_what_nobody_may_choose_can_be_deleted(
        self, glare: Client, name: str, reserve: Reserve
    ) -> None:
        db = glare.publish(f"{name}.db", "1.0.0", packages.package(f"{name}.db"))["id"]
        requiring = packages.package(f"{name}.wiki", Require={f"{name}.db": "1"})
        glare.publish(f"{name}.wiki", "1.0.0", requiring)
        assert glare.delete(db).status_code == 409
        reserve(f"{name}.db: [owner]")

        assert glare.delete(db).status_code == 204

    @pytest.mark.parametrize(
        ("text", "reason"),
        [(None, "No such file or directory"), ("org: x", "line 1: org: expected a list")],
    )
    def test_a_mistake_in_the_file_keeps_glare_from_starting(
        self,
        set_option: Callable[[str, object], None],
        tmp_path: pathlib.Path,
        text: str | None,
        reason: str,
    ) -> None:
        path = tmp_path / "names.yaml"
        if text is not None:
            path.write_text(text)
        set_option("reserved_names_file", str(path))

        with pytest.raises(RuntimeError) as error:
            middleware.MuranoFilter(None)

        assert str(error.value).startswith("[artifact_type:murano] reserved_names_file: ")
        assert reason in str(error.value)


class TestChoosing:
    def test_a_private_core_library_is_never_chosen(
        self, admin: Client, tmp_path: pathlib.Path
    ) -> None:
        private = admin.publish(CORE, "0.99.0", packages.package(CORE, "0.99.0"))["id"]
        pins = {CORE: [Version("0.99.0")]}

        assert _versions(_both_ways(admin, "admin", _query(CORE)), CORE) == [CORE_VERSION]
        assert _versions(_both_ways(admin, "admin", _query(CORE, pins=pins)), CORE) == []
        thing = Query(classes=((f"{CORE}.Thing", loader.VersionSpec.of("*")),))
        assert _versions(_both_ways(admin, "admin", thing), CORE) == [CORE_VERSION]
        exact = Query(((CORE, loader.VersionSpec.of("0.99.0")),))
        assert _versions(_both_ways(admin, "admin", exact), CORE) == []
        with (
            PackageLoader(_catalog(admin, "admin"), tmp_path) as packages_of_admin,
            pytest.raises(loader.NoSuchPackage) as missing,
        ):
            packages_of_admin.load(CORE, "0.99.0")
        assert "io.murano 0.99.0 of project admin is not used: of the core library" in str(
            missing.value
        )
        assert admin.resolve(package=private).status_code == 409
        assert admin.delete(private).status_code == 204

    def test_earlier_packages_under_a_reserved_name_are_not_chosen(
        self,
        glare: Client,
        admin: Client,
        as_user: Any,
        project: str,
        name: str,
        reserve: Reserve,
        remove: list[str],
    ) -> None:
        owner = as_user(f"{project}-owner")
        glare.publish(name, "1.0.0", packages.package(name))
        glare.publish(name, "3.0.0", packages.package(name, "3.0.0"))
        remove.append(
            admin.publish(name, "2.0.0", packages.package(name, "2.0.0"), public=True)["id"]
        )
        owned = owner.publish(name, "1.0.0", packages.package(name, Author="owner"))["id"]
        assert admin.set(owned, "visibility", "public").status_code == 200
        remove.append(owned)
        thing = ((f"{name}.Thing", loader.VersionSpec.of("*")),)
        assert _versions(_both_ways(glare, project, _query(name)), name) == ["3.0.0"]

        text = f"{name}: [{project}-owner]"
        reserve(text)

        reserved = ReservedNames.parse(text.encode(), "names")
        for query in (_query(name, why=True), Query(classes=thing, why=True)):
            by_filter = resolution.resolve([_catalog(glare, project)], query)
            # The file of the loader, where Glare has no filter.
            by_lists = resolution.by_level([_catalog(glare, project)], query, reserved=reserved)
            for resolved in (by_filter, by_lists):
                (chosen,) = (c.release for c in resolved.chosen if c.release.fqn == name)
                assert (chosen.id, str(chosen.version)) == (owned, "1.0.0")
                assert sorted(map(str, resolved.excluded)) == [
                    f"{name} {version} of project {owning} is not used: its name is under the "
                    f"prefix {name}, which is reserved for project {project}-owner"
                    for version, owning in (
                        ("1.0.0", project),
                        ("2.0.0", "admin"),
                        ("3.0.0", project),
                    )
                ]

    def test_an_answer_of_a_glare_with_another_file_is_not_used(
        self, glare: Client, project: str, name: str
    ) -> None:
        glare.publish(name, "1.0.0", packages.package(name))
        reserved = ReservedNames.parse(f"{name}: [owner]".encode(), "names")

        resolved = resolution.resolve([_catalog(glare, project)], _query(name), reserved=reserved)

        assert _versions(resolved, name) == []
        assert [str(each.key) for each in resolved.excluded] == [f"{name} 1.0.0"]

    def test_records_of_the_offline_index_follow_the_file_of_today(
        self, glare: Client, project: str, name: str, tmp_path: pathlib.Path
    ) -> None:
        glare.publish(name, "1.0.0", packages.package(name))
        texts = ("", f"{name}: [{project}]", f"{name}: [owner]")
        ends = []
        for down, text in ((False, texts[0]), *((True, text) for text in texts)):
            catalog = GlareCatalog(
                glare.session(), project_id=project, endpoint=glare.url, attempts=1
            )
            cache = loader.Cache(tmp_path / "cache")
            index = loader.OfflineIndex(catalog, cache, project)
            if down:
                catalog._client.endpoint_override = "http://127.0.0.1:9"
            reserved = ReservedNames.parse(text.encode(), "names")
            with PackageLoader(
                catalog, cache, offline_index=index, reserved_names=reserved
            ) as loaded:
                try:
                    ends.append(str(loaded.load(name).version))
                except loader.CatalogUnavailable:
                    ends.append("unavailable")

        assert ends == ["1.0.0", "1.0.0", "1.0.0", "unavailable"]

    def test_a_class_of_another_project_is_neither_found_nor_loaded(
        self, glare: Client, project: str, name: str, reserve: Reserve, tmp_path: pathlib.Path
    ) -> None:
        class_name, base = f"{name}.reserved.Thing", f"{name}.base.Base"
        keys = {"Classes": {class_name: "Thing.yaml"}, "Require": {f"{name}.base": "1"}}
        archive = packages.package(name, code=f"Name: {class_name}\nExtends: {base}\n", **keys)
        defining = packages.package(f"{name}.base", Classes={base: "Base.yaml"})
        glare.publish(f"{name}.base", "1.0.0", defining)
        glare.publish(name, "1.0.0", archive)
        text = f"{name}.reserved: [owner]"
        reserve(text)
        query = Query(classes=((class_name, loader.VersionSpec.of("*")),))
        reserved = ReservedNames.parse(text.encode(), "names")

        assert not resolution.resolve([_catalog(glare, project)], query).chosen
        by_lists = resolution.by_level([_catalog(glare, project)], query, reserved=reserved)
        assert not by_lists.chosen
        with (
            PackageLoader(_catalog(glare, project), tmp_path, reserved_names=reserved) as loaded,
            pytest.raises(loader.CatalogError, match=f"it defines class {class_name}, whose name"),
        ):
            loaded.load(name)
        page = glare.query(SUBCLASSES, {"class": base}).json()
        assert page["subclasses"] == []


class TestPrivateOverrides:
    def test_a_private_package_is_not_considered_where_a_public_one_has_its_name(
        self, glare: Client, admin: Client, project: str, name: str, remove: list[str]
    ) -> None:
        glare.publish(name, "1.0.0", packages.package(name, Author="own"))
        glare.publish(name, "2.0.0", packages.package(name, "2.0.0"))
        glare.publish(f"{name}.private", "1.0.0", packages.package(f"{name}.private"))
        public = admin.publish(name, "1.0.0", packages.package(name), public=True)["id"]
        remove.append(public)
        pins = {name: [Version("2.0.0")]}
        thing = ((f"{name}.Thing", loader.VersionSpec.of("*")),)

        assert _versions(_both_ways(glare, project, _query(name)), name) == ["2.0.0"]
        for query in (
            _query(name, private_overrides=False),
            Query(classes=thing, private_overrides=False),
        ):
            resolved = _both_ways(glare, project, query)
            assert [c.release.id for c in resolved.chosen if c.release.fqn == name] == [public]
        pinned = _both_ways(glare, project, _query(name, private_overrides=False, pins=pins))
        assert _versions(pinned, name) == []
        assert {str(each.key) for each in pinned.excluded} == {f"{name} 2.0.0", f"{name} 1.0.0"}
        alone = _query(f"{name}.private", private_overrides=False)
        assert _versions(_both_ways(glare, project, alone), f"{name}.private") == ["1.0.0"]

    def test_a_public_package_of_another_catalogue_counts(
        self, glare: Client, project: str, name: str, tmp_path: pathlib.Path
    ) -> None:
        glare.publish(name, "2.0.0", packages.package(name, "2.0.0"))
        packages.write(tmp_path / "packages" / name, packages.content(name))
        directory = loader.DirectoryCatalog(tmp_path / "packages")

        in_glare = _catalog(glare, project)
        cases = [([directory, in_glare], "1.0.0"), ([in_glare, directory], "2.0.0")]
        for catalogs, by_default in cases:
            for private_overrides, expected in ((True, by_default), (False, "1.0.0")):
                query = _query(name, private_overrides=private_overrides)
                resolved = resolution.resolve(catalogs, query)
                assert _versions(resolved, name) == [expected]

    def test_a_draft_is_still_previewed(
        self, glare: Client, admin: Client, name: str, remove: list[str]
    ) -> None:
        remove.append(admin.publish(name, "1.0.0", packages.package(name), public=True)["id"])
        draft = glare.draft(name, "2.0.0", packages.package(name, "2.0.0"))

        answer = glare.resolve(package=draft, private_overrides=False).json()

        assert draft in [release["id"] for release in answer["releases"]]


class TestCommands:
    def test_packages_of_others_under_reserved_names_are_listed(
        self,
        glare: Client,
        admin: Client,
        name: str,
        project: str,
        tmp_path: pathlib.Path,
    ) -> None:
        glare.publish(name, "1.0.0", packages.package(name))
        glare.create(f"{name}.draft", "1.0.0")
        other = packages.package(f"{name}s", Classes={f"{name}.Posing": "Thing.yaml"})
        glare.publish(f"{name}s", "1.0.0", other)
        private = admin.publish(CORE, "0.97.0", packages.package(CORE, "0.97.0"))["id"]
        file = tmp_path / "names.yaml"
        command = OpenStack(tmp_path, admin.url, admin.token)
        under = f"under the prefix {name}, which is reserved for project owner"

        def listed(text: str) -> set[tuple[str, str, str]]:
            file.write_text(text)
            rows = command.json("package", "reserved", file)
            return {(row["Name"], row["Status"], row["Reason"]) for row in rows}

        public_only = "of the core library io.murano, only public releases are used"
        core = (CORE, "active", public_only)
        assert listed(f"{name}: [owner]") >= {
            (name, "active", f"its name is {under}"),
            (f"{name}.draft", "drafted", f"its name is {under}"),
            (f"{name}s", "active", f"class {name}.Posing is {under}"),
            core,
        }
        # A class under the prefix of the name adds nothing.
        reasons = {each[2] for each in listed(f"{name}: [owner]\n{name}.Posing: []")}
        assert f"class {name}.Thing is {under}" not in reasons
        assert (
            f"class {name}.Posing is under the prefix {name}.Posing, which is reserved for the "
            f"operator"
        ) in reasons
        assert {each[0] for each in listed(f"{name}: [{project}]")} & {name, f"{name}s"} == set()
        assert core in listed("")
        assert admin.delete(private).status_code == 204
        file.write_text("org: x")
        refused = command.run("package", "reserved", file)
        assert (refused.code, "expected a list of project ids" in refused.err) == (1, True)

    def test_show_says_whether_a_package_would_be_chosen_and_why_not(
        self,
        glare: Client,
        admin: Client,
        openstack: OpenStack,
        name: str,
        project: str,
        reserve: Reserve,
        remove: list[str],
    ) -> None:
        old = glare.publish(name, "1.0.0", packages.package(name))["id"]
        yanked = glare.publish(name, "1.2.0", packages.package(name, "1.2.0"))["id"]
        assert glare.yank(yanked, "broken").status_code == 200
        newest = glare.publish(name, "1.1.0", packages.package(name, "1.1.0"))["id"]
        draft = glare.draft(name, "3.0.0", packages.package(name, "3.0.0"))
        same = admin.publish(name, "1.1.0", packages.package(name, "1.1.0"), public=True)["id"]
        remove.append(same)

        def chosen(reference: str) -> str:
            return str(openstack.json("package", "show", reference)["chosen"])

        assert chosen(newest) == "1: yes"
        assert chosen(f"{name}@1.0.0") == "1.0.0: yes"
        assert chosen(old) == f"1: no, {name} 1.1.0 of project {project} is chosen"
        assert chosen(same) == f"1: no, {name} 1.1.0 of project {project} is chosen"
        assert chosen(yanked) == "1: no, it was yanked: broken"
        assert chosen(f"{name}@1.2.0") == "1.2.0: yes"
        assert chosen(draft) == "3: no, it is drafted"
        reserve(f"{name}: [admin]")
        assert chosen(same) == "1: yes"
        assert chosen(newest) == (
            f"1: no, its name is under the prefix {name}, which is reserved for project admin"
        )
