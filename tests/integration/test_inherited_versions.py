# SPDX-License-Identifier: Apache-2.0

"""A class that inherits two versions of a class, from each kind of catalogue.

The specification "Murano versioning", section "Side by side versioning of packages", treats the
versions as unrelated classes. The packages are in ``language/inheritance``.
"""

import contextlib
import copy
import dataclasses
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from murano.common import engine as murano_engine

from examples import demo, demo_glance
from tests.integration import tasks

# The first test of each catalogue starts its service.
pytestmark = pytest.mark.timeout(300)

PACKAGES = pathlib.Path(__file__).with_name("language") / "inheritance"
INHERITANCE = "org.example.language.inheritance"
BASE = f"{INHERITANCE}.base.Base"
APPLICATION = f"{INHERITANCE}.application.Application"
VERSIONS = [
    f"{BASE} of {INHERITANCE}.base 1.0.0, required by {INHERITANCE}.first 1.0.0",
    f"{BASE} of {INHERITANCE}.base 2.0.0, required by {INHERITANCE}.second 1.0.0",
]
GIVEN = {
    "description": "mine",
    "name": "me",
    "size": 1,
    "color": "red",
    "limits": {"cpu": "1", "memory": 2, "disk": 3},
}


@dataclasses.dataclass(frozen=True)
class Engine:
    """The engine with one catalogue.

    :param user: whose task it is.
    """

    user: Mapping[str, str] = dataclasses.field(default_factory=lambda: demo.USER)

    def run(
        self, method: str | None, model: Any = None, former: Any = None, **arguments: Any
    ) -> Any:
        """Load a model, call a method of its object, and return the engine's answer.

        :param former: the model of the former deployment.
        """
        objects = {"?": {"id": "object", "type": APPLICATION}, **GIVEN} if model is None else model
        owner = {key: self.user[key] for key in ("project_id", "user_id")}
        action = tasks.action("object", method, **arguments) if method else None
        found = {"Objects": copy.deepcopy(objects), "ObjectsCopy": former, "SystemData": {}}
        return tasks.run_model({**found, **owner}, action, dict(self.user))

    def schema(self) -> Any:
        """Return the schema of the application."""
        return murano_engine.SchemaEndpoint.generate_schema(
            dict(self.user), class_name=APPLICATION
        )[""]

    def result(self, method: str, model: Any = None, **arguments: Any) -> Any:
        """Return what a method returns."""
        answer = self.run(method, model, **arguments)["action"]
        assert not answer["isException"], answer["result"]["message"]
        return answer["result"]

    def error(self, method: str | None, model: Any = None, **arguments: Any) -> str:
        """Return the message of the error that a method raises."""
        answer = self.run(method, model, **arguments)["action"]
        assert answer["isException"], answer
        message: str = answer["result"]["message"]
        return message


def model(**properties: Any) -> dict[str, Any]:
    """Return a model of the application with these properties alone."""
    return {"?": {"id": "object", "type": APPLICATION}, **properties}


@pytest.fixture(
    scope="module",
    params=["directory", "glare", pytest.param("glance", marks=pytest.mark.services)],
)
def engine(
    request: pytest.FixtureRequest,
    engine_conf: Any,
    core_library: pathlib.Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Engine]:
    """The engine with the packages in a directory, in Glare, and in Glance."""
    if request.param == "glare":
        request.getfixturevalue("language")
        yield Engine()
    elif request.param == "directory":
        folders = [str(core_library), str(PACKAGES)]
        engine_conf.set_override("catalogs", ["directory"], "package_loader")
        engine_conf.set_override("load_packages_from", folders, "engine")
        yield Engine()
        engine_conf.clear_override("catalogs", "package_loader")
        engine_conf.clear_override("load_packages_from", "engine")
    else:
        work = tmp_path_factory.mktemp("glance")
        with demo_glance.GlanceServer(work) as catalogue, _options(engine_conf, catalogue.options):
            folders = [core_library / "io.murano", *_folders(PACKAGES)]
            demo.publish_all(catalogue.repository, folders, work)
            yield Engine(catalogue.user)


def _folders(root: pathlib.Path) -> list[pathlib.Path]:
    return sorted(manifest.parent for manifest in root.rglob("manifest.yaml"))


@contextlib.contextmanager
def _options(conf: Any, options: str) -> Iterator[None]:
    """Configure the engine by its file, with these options of a catalogue."""
    file = pathlib.Path(conf.config_file[0])
    written = file.read_text()
    file.write_text(f"{written.partition('[glare]')[0]}{options}\n")
    conf.reload_config_files()
    try:
        yield
    finally:
        file.write_text(written)
        conf.reload_config_files()


def test_a_version_that_satisfies_all_parents_is_the_only_one(engine: Engine) -> None:
    header = {"id": "object", "type": f"{INHERITANCE}.application.OneVersion"}

    assert engine.result("versions", {"?": header, "name": "me"}) == ["one", "1.0.0"]


def test_a_member_of_one_version_is_used_without_a_cast(engine: Engine) -> None:
    assert engine.result("members") == [1, "red", 1, "red"]


def test_each_parent_uses_its_own_version(engine: Engine) -> None:
    assert engine.result("parents") == {
        "calls": [1, "red"],
        "casts": [["one", "me"], ["two", "me"]],
        "supers": [["one"], ["two"]],
        "contracts": [[True, "one"], [True, "two"]],
    }


def test_the_code_of_a_version_uses_the_members_of_this_version(engine: Engine) -> None:
    first, second = engine.result("describeBoth", model(**GIVEN, title="initialized"))

    assert first == {
        "version": "one", "name": "me", "zone": "north", "port": 80,
        "limits": {"cpu": 1, "disk": 3}, "result": None, "notes": ["initialized", "me"],
    }  # fmt: skip
    assert second == {
        "version": "two", "name": "me", "zone": "north", "port": 443,
        "limits": {"cpu": 1, "memory": 2}, "result": None, "notes": ["me", "initialized"],
    }  # fmt: skip


def test_a_cast_to_a_range_chooses_a_version(engine: Engine) -> None:
    assert engine.result("castToRanges") == ["one", "two"]


def test_values_that_are_not_in_the_model_are_separate(engine: Engine) -> None:
    answer = engine.run("writeBoth")

    assert answer["action"]["result"] == {
        "private": ["one", "two"],
        "attributes": ["from two", "from two"],
        "notes": [[None, "me", "from one"], ["me", None, "from two"]],
        "result": ["from two", "from two"],
    }
    assert answer["model"]["Objects"]["result"] == "from two"
    assert engine.result("countBoth") == [2, 1, 3]


def test_a_value_in_the_model_is_one_for_both_versions(engine: Engine) -> None:
    answer = engine.run("writeByCast", value="written")

    assert answer["action"]["result"] == "written"
    assert answer["model"]["Objects"]["result"] == "written"
    # The contract of version 2 refuses the value, which version 1 was to get.
    refused = engine.run("writeByCast", value="forbidden")
    assert "Base.result] Value 'forbidden'" in refused["action"]["result"]["message"]
    assert refused["model"]["Objects"].get("result") is None


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("readWithoutCast", 'Found more than one property "name"'),
        ("writeWithoutCast", 'Found more than one property "result"'),
        ("callWithoutCast", 'Found more than one method "version"'),
        ("callStaticWithoutCast", 'Found more than one method "count"'),
        ("readStaticWithoutCast", 'Found more than one property "calls"'),
        ("castWithoutRange", f'Found more than one version of class "{BASE}"'),
        ("acceptWithoutRange", f'Found more than one version of class "{BASE}"'),
    ],
)
def test_a_member_of_both_versions_needs_a_cast(engine: Engine, method: str, words: str) -> None:
    message = engine.error(method)

    for each in (words, *VERSIONS, f"as by cast($, '{BASE}', '1.0.0')"):
        assert each in message


def test_the_model_keeps_the_values_of_both_versions(engine: Engine) -> None:
    deployed = engine.run("describeBoth", model(**GIVEN, zone="south", port=8080))
    saved = deployed["model"]["Objects"]
    again = engine.run("describeBoth", saved)

    assert {key: saved[key] for key in saved if key != "?"} == {
        **GIVEN, "zone": "south", "port": 8080, "result": None, "owner": None,
    }  # fmt: skip
    assert [each["port"] for each in again["action"]["result"]] == [8080, 8080]
    assert again["action"]["result"] == deployed["action"]["result"]
    assert again["model"]["Objects"] == saved


def test_a_default_is_saved_if_it_is_the_same_in_both_versions(engine: Engine) -> None:
    deployed = engine.run("describeBoth")
    saved = deployed["model"]["Objects"]
    again = engine.run("describeBoth", saved)

    assert saved["zone"] == "north"
    assert "port" not in saved
    for answer in (deployed, again):
        assert [each["port"] for each in answer["action"]["result"]] == [80, 443]
    assert again["model"]["Objects"] == saved


def test_a_value_has_to_satisfy_the_contracts_of_both_versions(engine: Engine) -> None:
    message = engine.error(None, model(name="forbidden"))

    assert f"{BASE}.name] Value 'forbidden' doesn't match predicate" in message


@pytest.mark.parametrize("owner", [None, "object", {"?": {"type": "io.murano.Object"}}])
def test_an_object_of_both_versions_is_loaded_once(engine: Engine, owner: Any) -> None:
    saved = engine.run("members", model(owner=owner))["model"]["Objects"]
    again = engine.run("members", saved)["model"]["Objects"]

    assert again == saved
    if isinstance(owner, dict):
        assert saved["owner"]["?"]["type"].startswith("io.murano.Object/")
    else:
        assert saved["owner"] == owner


def test_a_schema_has_the_contracts_of_both_versions(engine: Engine) -> None:
    properties = engine.schema()["properties"]

    assert properties.keys() == {*GIVEN, "zone", "port", "owner"}
    # The versions have one contract, but each a default of its own.
    assert properties["port"] == {"type": "integer", "title": "port"}
    assert properties["zone"] == {"type": "string", "title": "zone", "default": "north"}
    assert properties["limits"]["properties"].keys() == {"cpu", "memory"}
    (older,) = properties["limits"]["allOf"]
    assert older["properties"].keys() == {"cpu", "disk"}


def test_an_input_of_both_versions_is_immutable_to_a_workflow(engine: Engine) -> None:
    assert 'Property "name" is immutable to the caller' in engine.error("writeInputByCast")


def test_the_former_model_does_not_change_the_values(engine: Engine) -> None:
    answer = engine.run("describeBoth", model(name="new"), model(name="old"))

    assert [each["name"] for each in answer["action"]["result"]] == ["new", "new"]
    assert answer["model"]["Objects"]["name"] == "new"
