# SPDX-License-Identifier: Apache-2.0

"""The real packages of Murano's source distribution, from Glare and from directories.

The real engine loads them from Glare, and from directories by Murano's own loader and by ours.
"""

import json
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import yaml
from keystoneauth1 import exceptions as ksa_exceptions
from murano.common import engine as murano_engine
from murano.dsl import exceptions as dsl_exceptions
from murano.dsl import executor, helpers, schema_generator
from murano.engine import package_loader as murano_package_loader

from glare_murano.package import InvalidPackage
from glare_murano.package.ui_form import check_form
from tests import effort, prerequisites
from tests.integration import publish, tasks

# Package -> its directory in Murano's source distribution.
LOADED = {
    "com.paul.EncryptionDemo": "contrib/packages/EncryptionDemo",
    "io.murano": "meta/io.murano",
    "io.murano.applications": "meta/io.murano.applications",
    "io.murano.apps.HelloReporter": (
        "rally-jobs/extra/applications/HelloReporter/io.murano.apps.HelloReporter"
    ),
    "io.murano.test.MyTest1": "murano/tests/unit/api/cmd/test_package",
    "test.hot.v1.app": "murano/tests/unit/packages/test_packages/test.hot.v1.app",
    "test.mpl.v1.app": "murano/tests/unit/packages/test_packages/test.mpl.v1.app",
}


# They have many classes.
_LARGE = ("io.murano", "io.murano.applications")

# Directory -> why Glare and the loader refuse the package.
INVALID = {
    "contrib/plugins/cloudify_plugin/nodecellar_example_application": (
        "Format, line 13: 'Cloudify.TOSCA/1.0' is unknown"
    ),
    "contrib/plugins/murano_heat-translator_plugin/sample/hello_world": (
        "Format, line 3: 'TOSCA.CSAR/1.1.0' is unknown"
    ),
    "contrib/plugins/murano_heat-translator_plugin/sample/wordpress": (
        "Format, line 6: 'TOSCA.CSAR/1.1' is unknown"
    ),
    "murano/tests/unit/engine/meta": (
        "Classes/Mytest.yaml, line 4: 'sys:TestFixture': the namespace prefix 'sys' is not declared"
    ),
    "murano/tests/unit/packages/mpl_package": (
        "Classes.Class2: there is no file Classes/test.class2"
    ),
}

# Directory -> why Glare refuses the package, which a directory of the engine's host may have:
# extensions that are not installed, and a missing logo.
REFUSED_BY_GLARE = {
    "contrib/plugins/cloudify_plugin/cloudify_applications_library": (
        "io.murano.plugins.cloudify in the range 0"
    ),
    "contrib/plugins/magnum_plugin/magnum-app/com.intel.magnum.plugin.MagnumApp": (
        "murano.plugins.magnum in the range 0"
    ),
    "contrib/plugins/murano_exampleplugin/example-app/io.murano.apps.demo.DemoApp": (
        "murano.plugins.example in the range 0"
    ),
    "murano/tests/unit/packages/test_packages/test.hot.v1.app_with_files": (
        "Logo: there is no file test_logo.png"
    ),
}


def describe(name: str) -> Any:
    """Load a package by the configured loader, and return all that the engine knows of it."""
    spec = helpers.parse_version_spec("0")
    contexts = murano_engine.ContextManager()
    with murano_package_loader.CombinedPackageLoader(tasks.session()) as loader:
        package = loader.load_package(name, spec)
        with (
            executor.MuranoDslExecutor(loader, contexts, tasks.session()) as running,
            helpers.with_object_store(running.object_store),
        ):
            context = running.create_package_context(package)
            described = {
                "version": str(package.version),
                "format": str(package.runtime_version),
                "requirements": {fqn: str(spec) for fqn, spec in package.requirements.items()},
                "meta": _meta(package, context),
                "classes": {
                    class_name: _class(package.find_class(class_name, False), context)
                    for class_name in sorted(package.classes)
                },
            }
        described["schemas"] = {
            class_name: _schema(loader, contexts, class_name, name)
            for class_name in described["classes"]
        }
    return described


def _class(cls: Any, context: Any) -> Any:
    return {
        "usage": cls.usage,
        "ancestors": [f"{each.name} {each.version}" for each in cls.ancestors()],
        "meta": _meta(cls, context),
        "methods": {
            name: {
                "usage": method.usage,
                "scope": method.scope,
                "meta": _meta(method, context),
                "arguments": {
                    argument.name: {**_spec(argument), "meta": _meta(argument, context)}
                    for argument in (method.arguments_scheme or {}).values()
                },
            }
            for name, method in sorted(cls.methods.items())
        },
        "properties": {
            name: {**_spec(prop), "meta": _meta(prop, context)}
            for name, prop in sorted(cls.properties.items())
        },
    }


def _schema(loader: Any, contexts: Any, class_name: str, name: str) -> Any:
    """Return the JSON schema of a class, or None after an error, whose text may differ."""
    try:
        found = schema_generator.generate_schema(
            loader, contexts, class_name, class_version="0", package_name=name
        )
    except Exception:
        return None
    return _plain(found)


def _spec(declared: Any) -> dict[str, Any]:
    return {
        "usage": declared.usage,
        "contract": _plain(declared.contract.spec),
        "default": _plain(declared.default) if declared.has_default else "none",
    }


def _meta(provider: Any, context: Any) -> list[Any]:
    """Return the objects attached to a package, class or member, in a fixed order."""
    found = [
        [item.type.name, {p: _plain(item.get_property(p)) for p in item.type.all_property_names}]
        for item in provider.get_meta(context)
    ]
    return sorted(found, key=json.dumps)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def test_every_package_of_the_source_distribution_is_tried() -> None:
    found = {
        str(path.parent.relative_to(prerequisites.MURANO))
        for path in prerequisites.MURANO.rglob("manifest.yaml")
    }
    assert found == {*LOADED.values(), *INVALID, *REFUSED_BY_GLARE}


def test_the_forms_of_the_source_distribution_are_valid() -> None:
    found = {}
    for path in prerequisites.MURANO.rglob("UI/*.yaml"):
        problems, warnings = check_form(path.read_bytes(), path.name)
        found[str(path.parents[1].relative_to(prerequisites.MURANO))] = [
            problem.message for problem in (*problems, *warnings)
        ]
    # Of a package without a class that its manifest lists.
    invalid = "murano/tests/unit/packages/mpl_package"
    assert found.pop(invalid) == ["the section 'Application' is missing"]
    assert len(found) == 4
    assert set(map(tuple, found.values())) == {()}


@pytest.mark.parametrize("name", LOADED if effort.FULL else sorted(LOADED.keys() - set(_LARGE)))
def test_a_package_from_glare_is_the_same_as_from_a_directory(
    conf: Any, glare: Any, core_library: pathlib.Path, name: str
) -> None:
    folder = prerequisites.MURANO / LOADED[name]
    if name not in _LARGE:
        publish.publish(glare, [folder], public=True)

    from_glare = describe(name)

    assert from_glare == _describe_from_directories(conf, name, core_library, folder)
    assert None not in from_glare["schemas"].values()


def _describe_from_directories(conf: Any, name: str, *folders: pathlib.Path) -> Any:
    """Load a package by our loader and by Murano's, which must be the same."""
    conf.set_override("load_packages_from", list(map(str, folders)), "engine")
    by_our_loader = describe(name)
    conf.set_override("package_loader", "murano", "engine")
    by_muranos_loader = describe(name)
    assert by_our_loader == by_muranos_loader
    return by_our_loader


@pytest.mark.parametrize(("folder", "reason"), INVALID.items())
def test_an_invalid_package_is_refused(
    conf: Any, glare: Any, caplog: pytest.LogCaptureFixture, folder: str, reason: str
) -> None:
    path, name = _refused_by_glare(glare, folder, reason)
    conf.set_override("load_packages_from", [str(path)], "engine")
    with pytest.raises(dsl_exceptions.NoPackageFound):
        describe(name)
    assert reason in caplog.text


@pytest.mark.parametrize(("folder", "reason"), REFUSED_BY_GLARE.items())
def test_a_package_that_only_glare_refuses_is_loaded_from_a_directory(
    conf: Any, glare: Any, core_library: pathlib.Path, folder: str, reason: str
) -> None:
    path, name = _refused_by_glare(glare, folder, reason)
    described = _describe_from_directories(conf, name, core_library, path)
    assert None not in described["schemas"].values()


def _refused_by_glare(glare: Any, folder: str, reason: str) -> tuple[pathlib.Path, str]:
    """Return the directory and the name of a package that cannot be published."""
    path = prerequisites.MURANO / folder
    with pytest.raises((InvalidPackage, ksa_exceptions.HttpError), match=re.escape(reason)):
        publish.publish(glare, [path], public=False)
    return path, yaml.safe_load((path / "manifest.yaml").read_text())["FullName"]
