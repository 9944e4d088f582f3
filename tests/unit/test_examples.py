# SPDX-License-Identifier: Apache-2.0

"""The examples in the docstrings of the loader's public names run as they are written."""

import doctest
import inspect
import pathlib
from collections.abc import Iterator

import pytest
import yaml
from keystoneauth1 import session, token_endpoint

import loader
from glare_murano.package import Version
from tests import packages

# What examples print may be wrapped, and shortened by three dots.
_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
_RELEASES = {
    "io.murano": ["0.1.0"],
    "org.db": ["1.0.0", "1.2.0", "2.0.0"],
    "org.wiki": ["1.0.0", "1.1.0"],
}
_WITHOUT_EXAMPLE = {"Package"}


def _examples(name: str) -> list[doctest.DocTest]:
    """Return the examples of a public name and of the members that its class defines."""
    return [
        test for test in doctest.DocTestFinder().find(getattr(loader, name), name) if test.examples
    ]


@pytest.fixture
def names(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, object]]:
    """The names that examples use, in a working directory with packages."""
    monkeypatch.chdir(tmp_path)
    pathlib.Path("packages").mkdir()
    for fqn, versions in _RELEASES.items():
        for version in versions:
            required = {"org.db": ">=1,<2"} if fqn == "org.wiki" else {}
            classes = {f"{fqn}.Database": "Database.yaml"}
            content = packages.package(fqn, version, Require=required, Classes=classes)
            pathlib.Path("packages", f"{fqn}-{version}.zip").write_bytes(content)
    url = "http://127.0.0.1:9"
    credentials = {"endpoint": url, "token": "token"}
    cloud = {"auth_type": "admin_token", "auth": credentials, "artifact_endpoint_override": url}
    pathlib.Path("clouds.yaml").write_text(yaml.safe_dump({"clouds": {"prod": cloud}}))
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", "clouds.yaml")
    catalog = loader.DirectoryCatalog("packages")
    lock = loader.Lock.create(catalog, {"org.wiki": "1"})
    lock.save("packages.lock")
    with loader.PackageLoader(catalog, loader.Cache("cache")) as package_loader:
        yield {
            **{name: getattr(loader, name) for name in loader.__all__},
            "catalog": catalog,
            "lock": lock,
            "packages": package_loader,
            "pins": loader.Pins({"org.db": ["1.2.0"]}),
            "release": list(catalog.releases("org.db"))[1],
            "session": session.Session(token_endpoint.Token("http://127.0.0.1:9", "token")),
            "Version": Version,
        }


@pytest.mark.parametrize(
    "test", [test for name in loader.__all__ for test in _examples(name)], ids=lambda t: t.name
)
def test_an_example_runs(test: doctest.DocTest, names: dict[str, object]) -> None:
    test.globs = names

    results = doctest.DocTestRunner(optionflags=_FLAGS).run(test)

    assert results.failed == 0
    assert results.attempted > 0


@pytest.mark.parametrize("name", loader.__all__)
def test_a_public_name_is_documented_with_an_example(name: str) -> None:
    public = getattr(loader, name)
    if name in _WITHOUT_EXAMPLE or issubclass(public, Exception):
        assert inspect.getdoc(public)
    else:
        assert _examples(name)


@pytest.mark.parametrize("name", ["Lock", "PackageLoader", "Pins"])
def test_a_public_method_is_documented_with_an_example(name: str) -> None:
    methods = {
        f"{name}.{member}"
        for member, value in vars(getattr(loader, name)).items()
        if not member.startswith("_") and callable(getattr(value, "__func__", value))
    }

    assert methods <= {test.name for test in _examples(name)}
