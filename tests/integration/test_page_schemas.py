# SPDX-License-Identifier: Apache-2.0

"""The JSON schemas on the pages of a catalogue, which child processes make."""

import collections
import contextlib
import html
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Iterator
from typing import IO, Any

import pytest

from glare_murano.package.sandbox import ChildSettings
from loader.site import paths, rendering, schemas, sources
from tests import processes

pytestmark = pytest.mark.programs

EXAMPLES = processes.ROOT / "examples" / "packages"
SECRET = "gAAAAA-token-of-the-caller"


def _package(folder: pathlib.Path, name: str, contract: str, version: str = "1.0.0") -> None:
    manifest = f"""
        Format: '1.4'
        Type: Library
        FullName: {name}
        Name: {name}
        Version: {version}
        Classes: {{{name}.C: C.yaml}}
    """
    body = f"""
        Namespaces: {{=: {name}, std: io.murano}}
        Name: C
        Properties:
          size:
            Contract: {contract}
    """
    with zipfile.ZipFile(folder / f"{name}.{version}.zip", "w") as archive:
        archive.writestr("manifest.yaml", textwrap.dedent(manifest))
        archive.writestr("Classes/C.yaml", textwrap.dedent(body))


def _render(target: pathlib.Path, *places: pathlib.Path) -> rendering.Report:
    source = sources.Local([*map(str, places)])
    return rendering.render(source, target, with_schemas=True)


def _class_page(site: pathlib.Path, fqn: str, name: str, version: str = paths.LATEST) -> str:
    return html.unescape((site / paths.class_page(fqn, version, name)).read_text())


def _schema(page: str) -> dict[str, Any]:
    found = re.search("<details><summary>Show the schema</summary><pre>(.*?)</pre>", page, re.S)
    assert found, page
    schema: dict[str, Any] = json.loads(found[1])
    return schema


def test_each_class_has_its_schema(core_library: pathlib.Path, tmp_path: pathlib.Path) -> None:
    _package(tmp_path, "org.example.a", "$.int().notNull().check($ > 2)")
    site = tmp_path / "site"
    report = _render(site, core_library, tmp_path)
    assert (report.packages, report.unreadable) == (3, [])
    found = _schema(_class_page(site, "org.example.a", "org.example.a.C"))
    assert found["required"] == ["size"]
    assert found["properties"]["size"]["type"] == "integer"
    # The schema includes what the class inherits from another package of the catalogue.
    inherited = _schema(_class_page(site, "io.murano", "io.murano.resources.LinuxMuranoInstance"))
    assert "flavor" in inherited["required"]
    for page in site.rglob("classes/*.html"):
        assert _schema(html.unescape(page.read_text()))["type"] == "object"


def test_pages_with_schemas_are_written_again_only_after_a_change(
    core_library: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    site = tmp_path / "site"
    _package(tmp_path, "org.example.a", "$.int()")
    assert _render(site, core_library, tmp_path).written == 3
    assert _render(site, core_library, tmp_path).written == 0
    # The same version of a required package can change in a directory, and the schema with it.
    without = rendering.render(sources.Local([str(core_library), str(tmp_path)]), site)
    assert without.written == 3
    assert "JSON schema" not in _class_page(site, "org.example.a", "org.example.a.C")


def test_a_class_without_its_core_library_has_a_reason(tmp_path: pathlib.Path) -> None:
    _package(tmp_path, "org.example.a", "$.int()")
    site = tmp_path / "site"
    _render(site, tmp_path)
    page = _class_page(site, "org.example.a", "org.example.a.C")
    assert "No schema can be made from the contracts of this class" in page
    reason = page.partition("No schema can be made")[2].partition("</p>")[0]
    assert "package io.murano" in reason
    assert "this catalogue" in reason
    assert "/tmp" not in reason
    assert "Traceback" not in reason


def test_a_wrong_contract_does_not_take_the_schemas_of_others(
    core_library: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    _package(tmp_path, "org.example.wrong", "$.noSuchFunction()")
    _package(tmp_path, "org.example.a", "$.int()")
    site = tmp_path / "site"
    _render(site, core_library, tmp_path)
    page = _class_page(site, "org.example.wrong", "org.example.wrong.C")
    assert "noSuchFunction" in page.partition("No schema can be made")[2]
    assert _schema(_class_page(site, "org.example.a", "org.example.a.C"))


def test_a_class_that_computes_for_ever_is_stopped_once(
    core_library: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thousand = "range(0, 1000)"
    endless = f"{thousand}.select({thousand}.select({thousand}.len()).sum()).sum()"
    for number in range(3):
        _package(tmp_path, "org.example.endless", endless, f"1.0.{number}")
    _package(tmp_path, "org.example.a", "$.int()")
    monkeypatch.setattr(schemas, "_LIMITS", ChildSettings(seconds=3, memory=1024**3))
    requested = []
    request = schemas._request

    def record(fqn: str, version: str, places: Any) -> Any:
        requested.append((fqn, version))
        return request(fqn, version, places)

    monkeypatch.setattr(schemas, "_request", record)
    site = tmp_path / "site"
    _render(site, core_library, tmp_path)
    # The older versions are not tried.
    assert [version for fqn, version in requested if fqn == "org.example.endless"] == ["1.0.2"]
    for version in ("1.0.0", "1.0.2"):
        page = _class_page(site, "org.example.endless", "org.example.endless.C", version)
        assert "The schemas of 1.0.2 were made in a child process, which took more than 3" in page
    assert _schema(_class_page(site, "org.example.a", "org.example.a.C"))


def test_a_schema_that_is_too_long_is_not_shown(
    core_library: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _package(tmp_path, "org.example.a", "$.int()")
    for limit in ("_MAX_SCHEMA", "_MAX_WRITTEN"):
        with monkeypatch.context() as patch:
            patch.setattr(schemas, limit, 100)
            site = tmp_path / limit
            _render(site, core_library, tmp_path)
        page = _class_page(site, "org.example.a", "org.example.a.C")
        assert "The schema is too long for a page." in page


def test_schemas_are_made_again_after_a_fault_of_the_host(
    core_library: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no memory is left")

    _package(tmp_path, "org.example.a", "$.int()")
    site = tmp_path / "site"
    with monkeypatch.context() as patch:
        patch.setattr("glare_murano.package.sandbox.run", fail)
        _render(site, core_library, tmp_path)
    assert "no memory is left" in _class_page(site, "org.example.a", "org.example.a.C")
    _render(site, core_library, tmp_path)
    assert _schema(_class_page(site, "org.example.a", "org.example.a.C"))


def test_the_child_reads_no_configuration(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / ".murano" / "murano.conf.d"
    folder.mkdir(parents=True)
    (folder / "secret.conf").write_text("[murano]\ndsl_iterators_limit = 77\n")
    code = (
        "import loader.engine.class_schemas\n"
        "from murano.common import config\n"
        "print(config.CONF.murano.dsl_iterators_limit)\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", code]
    environment = {**os.environ, "HOME": str(tmp_path)}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["2000"]


class _Counting(sources.Local):
    def __init__(self, places: list[str]) -> None:
        super().__init__(places)
        self.fetches: collections.Counter[str] = collections.Counter()

    @contextlib.contextmanager
    def fetched(self, entry: sources.Entry) -> Iterator[pathlib.Path]:
        self.fetches[entry.place] += 1
        with super().fetched(entry) as path:
            yield path


def test_each_archive_is_downloaded_once(
    core_library: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    for number in range(3):
        _package(tmp_path, "org.example.a", "$.int()", f"1.0.{number}")
    source = _Counting([str(core_library), str(tmp_path)])
    rendering.render(source, tmp_path / "site", with_schemas=True)
    assert len(source.fetches) == 5
    assert set(source.fetches.values()) == {1}


def answer_environment(file: IO[bytes], fqn: str, version: str) -> dict[str, Any]:
    """Show what the code of a package could find; a child process calls this."""
    found = dict(os.environ)
    return {f"{fqn}.C": {"problem": repr(found)}}


def answer_nonsense(file: IO[bytes], fqn: str, version: str) -> Any:
    """Answer like a child that a package has taken over."""
    return {
        f"{fqn}.C": {"schema": "<script>alert(1)</script>", "problem": ["<script>"]},
        "../../../evil": {"schema": {}},
    }


def test_the_child_has_no_token(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_TOKEN", SECRET)
    monkeypatch.setattr(schemas, "_FUNCTION", f"{__name__}:answer_environment")
    _package(tmp_path, "org.example.a", "$.int()")
    _render(tmp_path / "site", tmp_path)
    page = _class_page(tmp_path / "site", "org.example.a", "org.example.a.C")
    assert "'HOME'" in page
    assert SECRET not in page
    assert "OS_TOKEN" not in page


def test_an_answer_of_another_form_is_not_shown(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schemas, "_FUNCTION", f"{__name__}:answer_nonsense")
    _package(tmp_path, "org.example.a", "$.int()")
    site = tmp_path / "site"
    _render(site, tmp_path)
    assert "has returned no schema" in _class_page(site, "org.example.a", "org.example.a.C")
    assert not [path for path in site.rglob("*") if "evil" in path.name]


def test_without_an_engine_nothing_is_rendered(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(schemas.NoEngine, match="pip install"):
        _render(tmp_path / "site", EXAMPLES)
    assert not (tmp_path / "site").exists()
