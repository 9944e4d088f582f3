# SPDX-License-Identifier: Apache-2.0

"""Plug-ins in the real engine: package types and extensions written for Murano."""

import os
import pathlib
import re
from typing import Any

import pytest
from murano.common import engine as murano_engine
from murano.dsl import dsl_exception, exceptions, executor, helpers
from murano.engine import package_loader as murano_package_loader

from examples import demo
from glare_murano.package.manifest import PLUGIN_NAMESPACE
from glare_murano.package.sandbox import warm_processes
from loader.engine import adapter
from loader.engine.cells import described_packages, warm
from loader.engine.extensions import NAMESPACE
from tests import packages
from tests.integration import example, publish, tasks
from tests.plugins import Site, site

pytestmark = pytest.mark.programs

__all__ = ["site"]

# Written against Murano's own classes, as its documentation has it.
PACKAGE_TYPE = """
from murano.packages import package_base

class PlainPackage(package_base.PackageBase):
    @property
    def classes(self):
        return [self.full_name]

    @property
    def requirements(self):
        return {}

    @property
    def ui(self):
        return None

    def get_class(self, name):
        with open(self.get_resource("answer")) as stream:
            answer = stream.read()
        text = "Name: %s\\nExtends: io.murano.Application\\n" % name
        text += "Properties: {answer: {Usage: Out, Contract: $.int()}}\\n"
        return text + "Methods: {deploy: {Body: [{$.answer: %s}]}}" % answer
"""

# The same, with the path of a file beside the code, as Murano's own class for MuranoPL has it.
PACKAGE_TYPE_WITH_PATHS = f"""{PACKAGE_TYPE}
get_class = PlainPackage.get_class
PlainPackage.get_class = lambda self, name: (get_class(self, name), self.get_resource("answer"))
"""

# Written against the interface alone, with no member that it does not have.
BARE_PACKAGE_TYPE = """
import semantic_version
from loader.formats.base import Package

class PlainPackage(Package):
    full_name = "org.test.Plain"
    version = semantic_version.Version("1.0.0")
    classes = ("org.test.Plain",)
    requirements = {"io.murano": semantic_version.Spec("<1")}
    package_type = "Library"
    display_name = description = author = supplier = logo = supplier_logo = ui = None
    tags = []

    def __init__(self, format_name, runtime_version, source_directory, manifest):
        super().__init__(format_name, runtime_version, source_directory)

    def get_class(self, name):
        text = "Name: %s\\nExtends: io.murano.Application\\n" % name
        text += "Properties: {answer: {Usage: Out, Contract: $.int()}}\\n"
        return text + "Methods: {deploy: {Body: [{$.answer: 42}]}}"

    def get_resource(self, name):
        raise NotImplementedError
"""

EXTENSION = """
class Adder:
    def __init__(self, start):
        self._value = start

    def add(self, number):
        self._value += number
        return self._value
"""

USER = """\
Name: {name}.Thing
Namespaces:
  ext: org.test.ext
Methods:
  sum:
    Usage: Static
    Scope: Public
    Body:
      - $adder: new(ext:Adder, start => 40)
      - Return: $adder.add(2)
"""

STATIC_METHODS = """
from yaql.language import specs, yaqltypes

class Tools:
    @staticmethod
    def double(number):
        return number * 2

    @classmethod
    def own_name(cls):
        return cls.__name__

    @staticmethod
    @specs.meta("Usage", "Extension")
    @specs.parameter("text", yaqltypes.String())
    def shout(text):
        return text + "!"
"""

STATIC_USER = """\
Name: org.test.static.Thing
Namespaces:
  ext: org.test.ext
Import: ext:Tools
Methods:
  all:
    Usage: Static
    Scope: Public
    Body:
      - Return:
          - ext:Tools.double(21)
          - new(ext:Tools).double(21)
          - ext:Tools.ownName()
          - a.shout()
          - ext:Tools.shout(b)
"""


_OF_PLUGIN = (
    r"org\.test\.trap 1\.0\.0 of .* cannot be loaded: it defines the class org\.test\.ext\.Adder "
    r"of the extension plug-in org\.test\.ext 1\.4\.2, which is code of the operator; publish"
)


@pytest.fixture
def folder(conf: Any, tmp_path: pathlib.Path) -> pathlib.Path:
    """A directory whose packages the engine loads."""
    path = tmp_path / "packages"
    path.mkdir()
    conf.set_override("load_packages_from", [str(path)], "engine")
    return path


@pytest.fixture
def extensions(monkeypatch: pytest.MonkeyPatch) -> adapter.PluginLoader:
    """The extensions that are installed now."""
    found = adapter.PluginLoader()
    monkeypatch.setattr(murano_engine, "PLUGIN_LOADER", found)
    return found


def _deploy(*class_names: str) -> Any:
    """Deploy an environment with an application of each class; return the applications."""
    environment = demo.Environment.new("plug-ins")
    environment.model["Objects"]["applications"] = [
        {"?": {"id": name, "type": name, "classVersion": "1"}, "name": name} for name in class_names
    ]
    environment.run("plug-ins", "deploy")
    return environment.model["Objects"]["applications"]


@pytest.mark.parametrize(
    "code",
    [PACKAGE_TYPE, PACKAGE_TYPE_WITH_PATHS, BARE_PACKAGE_TYPE],
    ids=["murano", "paths", "bare"],
)
def test_a_package_type_written_for_the_interface_deploys(
    site: Site, folder: pathlib.Path, code: str
) -> None:
    point = {"Test.Plain/1.0": "plain_plugin:PlainPackage"}
    site.install("plain", "1.0", {PLUGIN_NAMESPACE: point}, {"plain_plugin": code})
    content = packages.content("org.test.Plain", Format="Test.Plain/1.0", Classes=None)
    packages.write(folder / "plain", {**content, "Resources/answer": b"42"})

    (application,) = _deploy("org.test.Plain")

    assert application["answer"] == 42


def test_the_example_of_a_package_type_is_stored_and_deploys(
    site: Site, conf: Any, glare: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(example.FOLDER))
    example.install(site)

    (artifact,) = publish.publish(glare, [example.PACKAGE], public=True)
    applications = _deploy("org.example.greetings.Hello", "org.example.greetings.Goodbye")

    names = [f"org.example.greetings.{name}" for name in ("Hello", "Goodbye")]
    assert artifact["class_definitions"] == names
    assert artifact["inherits"] == {"io.murano.Application": ",".join(sorted(names))}
    assert artifact["requirements"] == {"io.murano": "<2", "org.example.greetings": "1"}
    form = glare.get(f"{publish.ARTIFACTS}/{artifact['id']}/ui_definition").text
    assert "type: org.example.greetings.Hello" in form
    greetings = [application["greeting"] for application in applications]
    assert greetings == ["Good morning to you", "See you tomorrow"]


def test_an_extension_is_a_package_with_the_distributions_name_and_version(
    site: Site, folder: pathlib.Path, extensions: adapter.PluginLoader
) -> None:
    point = {"org.test.ext.Adder": "adder_plugin:Adder"}
    site.install("test-adder", "1.4.2", {NAMESPACE: point}, {"adder_plugin": EXTENSION})
    for name, range_text in (("org.test.user", "1.4"), ("org.test.old", ">=2")):
        content = packages.content(name, Require={"test-adder": range_text})
        content["Classes/Thing.yaml"] = USER.format(name=name).encode()
        packages.write(folder / name, content)

    assert tasks.call_static("org.test.user.Thing", "sum") == 42
    # Names of distributions have hyphens. The engine writes such a header into the model.
    saved = tasks.run({"type": "org.test.ext.Adder/1.4.2@test-adder"}, start=40)
    assert not saved["action"]["isException"], saved
    with pytest.raises(dsl_exception.MuranoPlException, match=r"provided by engines: 1\.4\.2"):
        tasks.call_static("org.test.old.Thing", "sum")


@pytest.mark.usefixtures("extensions")
def test_no_package_is_taken_for_an_extension(site: Site, folder: pathlib.Path) -> None:
    point = {"org.test.ext.Adder": "adder_plugin:Adder"}
    site.install("org.test.ext", "1.4.2", {NAMESPACE: point}, {"adder_plugin": EXTENSION})
    # A package that has the name of the plug-in, in another version.
    content = packages.content("org.test.ext", "2.0.0")
    packages.write(folder / "name", content)
    # One that defines its class, and has another class as well.
    files = {"org.test.ext.Adder": "Adder.yaml", "org.test.trap.Thing": "Thing.yaml"}
    content = packages.content("org.test.trap", Classes=files)
    content["Classes/Adder.yaml"] = b"Name: org.test.ext.Adder\n"
    content["Classes/Thing.yaml"] = USER.format(name="org.test.trap").encode()
    packages.write(folder / "class", content)
    # A package that requires the one or the other.
    for name, required in (("user", {"org.test.ext": ">=2"}), ("other", {"org.test.trap": "1"})):
        content = packages.content(f"org.test.{name}", Require=required)
        content["Classes/Thing.yaml"] = USER.format(name=f"org.test.{name}").encode()
        packages.write(folder / name, content)

    refusals = {
        ("org.test.user.Thing", "1"): r"provided by engines: 1\.4\.2\); install a version of the "
        r"extension plug-in org\.test\.ext in the range",
        ("org.test.other.Thing", "1"): _OF_PLUGIN,
        ("org.test.trap.Thing", "1"): _OF_PLUGIN,
        ("org.test.ext.Thing", "2"): r"class org\.test\.ext\.Thing is defined by a package in the "
        r"directory .* that has the name of the extension plug-in org\.test\.ext",
        ("org.test.ext.Adder", "2"): r"class org\.test\.ext\.Adder is defined by the extension "
        r"plug-in org\.test\.ext 1\.4\.2, which is not in the range",
    }
    for (class_name, version), expected in refusals.items():
        with pytest.raises(Exception, match=expected):
            tasks.call_static(class_name, "sum", version)
    # A refused package is not pinned.
    result = tasks.run({"type": "org.test.trap.Thing", "classVersion": "1"})
    assert re.search(_OF_PLUGIN, result["action"]["result"]["message"])
    assert "org.test.trap" not in result["model"]["SystemData"]["Packages"]


def test_static_methods_in_python_are_static_methods_of_the_class(
    site: Site, folder: pathlib.Path, extensions: adapter.PluginLoader
) -> None:
    point = {"org.test.ext.Tools": "tools_plugin:Tools"}
    site.install("test-tools", "1.0", {NAMESPACE: point}, {"tools_plugin": STATIC_METHODS})
    content = packages.content("org.test.static", code=STATIC_USER, Require={"test-tools": "1"})
    packages.write(folder / "static", content)

    found = tasks.call_static("org.test.static.Thing", "all")

    assert found == [42, 42, "Tools", "a!", "b!"]


@pytest.mark.usefixtures("conf")
def test_a_member_publishes_a_package_that_needs_an_extension_and_runs_it(
    site: Site, glare_url: str, tmp_path: pathlib.Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = publish.client_of(glare_url, demo.USER_TOKEN)
    content = packages.content(name, code=USER.format(name=name), Require={"test-adder": "1.4"})
    publish.publish(member, [packages.write(tmp_path / "package", content)], public=False)
    point = {"org.test.ext.Adder": "adder_plugin:Adder"}

    # An engine without the plug-in says what is missing.
    with pytest.raises(
        dsl_exception.MuranoPlException,
        match=f"required by {name} 1.0.0, .*install the extension plug-in test-adder 1.4.2",
    ):
        tasks.call_static(f"{name}.Thing", "sum")
    site.install("test-adder", "1.4.2", {NAMESPACE: point}, {"adder_plugin": EXTENSION})
    monkeypatch.setattr(murano_engine, "PLUGIN_LOADER", adapter.PluginLoader())
    # An operator restarts the engine, and with it the process that has imported the plug-ins.
    warm_processes.end(warm.NAME)
    assert tasks.call_static(f"{name}.Thing", "sum") == 42


def test_an_extension_reaches_only_its_requirements(
    site: Site, folder: pathlib.Path, extensions: adapter.PluginLoader
) -> None:
    code = EXTENSION + "    murano_requirements = {'org.test.base': '1'}\n"
    point = {"org.test.ext.Adder": "adder_plugin:Adder"}
    site.install("test-adder", "1.4.2", {NAMESPACE: point}, {"adder_plugin": code})
    for name in ("base", "other"):
        packages.write(folder / name, packages.content(f"org.test.{name}"))
    session = tasks.session()

    with murano_package_loader.CombinedPackageLoader(session) as loader:
        extensions.register_in_loader(loader)
        with executor.MuranoDslExecutor(loader, murano_engine.ContextManager(), session):
            package = loader.load_package("test-adder", helpers.parse_version_spec("1"))
            found = package.find_class("org.test.base.Thing")
            with pytest.raises(exceptions.NoClassFound):
                package.find_class("org.test.other.Thing")

    assert (found.name, str(found.version)) == ("org.test.base.Thing", "1.0.0")


@pytest.fixture
def in_cells(conf: Any) -> None:
    """Tasks, static actions and schemas run in cells, as by default in an engine."""
    for option in ("request_cells", "task_cells"):
        conf.set_override(option, True, "engine")


@pytest.mark.usefixtures("in_cells")
def test_only_cells_call_the_package_type_of_a_plugin(
    site: Site, tenant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(example.FOLDER))
    example.install(site)
    publish.publish(tenant, [example.PACKAGE], public=False)

    def refuse(*_: Any) -> None:
        raise AssertionError("the engine's process reads the package")

    monkeypatch.setattr("example_greetings.package.GreetingsPackage.__init__", refuse)
    (application,) = _deploy("org.example.greetings.Hello")
    assert application["greeting"] == "Good morning to you"
    assert tasks.schemas("org.example.greetings.Hello")[""]["type"] == "object"


@pytest.mark.usefixtures("in_cells")
@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("raise ValueError('bad file')", r"its package type Test\.Bad/1\.0\.0: bad file"),
        (
            'os.write(3, b\'{"result": {"requirements": {}, "classes": [1]}}\'); os._exit(0)',
            r"its package type Test\.Bad/1\.0\.0 has not described the package",
        ),
        (
            "self._requirements = {'org.test.x': '>>'}",
            r"its package type .* has not described the package: .*>>",
        ),
        ("self._requirements = dict.fromkeys(map('a.b{}'.format, range(300)))", "not described"),
        ("while True: pass", r"its package type .* the cell of the description .* took more than"),
    ],
    ids=["error", "forged", "range", "many", "endless"],
)
def test_a_package_type_that_fails_in_its_cell_fails_the_task(
    site: Site, folder: pathlib.Path, code: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(described_packages, "_SECONDS", 1)
    text = PACKAGE_TYPE + (
        "    requirements = property(lambda self: getattr(self, '_requirements', {}))\n"
        "    def __init__(self, *arguments):\n"
        "        super().__init__(*arguments)\n"
        # The catalogue, which the operator fills, calls the package type in this process.
        f"        if os.getpid() != {os.getpid()}:\n"
        f"            {code}\n"
    )
    point = {"Test.Bad/1.0": "bad_plugin:PlainPackage"}
    site.install("bad", "1.0", {PLUGIN_NAMESPACE: point}, {"bad_plugin": f"import os\n{text}"})
    content = packages.content("org.test.Bad", Format="Test.Bad/1.0", Classes=None)
    packages.write(folder / "bad", {**content, "Resources/answer": b"42"})

    answer = tasks.run({"type": "org.test.Bad"})

    assert re.search(message, answer["action"]["result"]["message"])
