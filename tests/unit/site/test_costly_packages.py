# SPDX-License-Identifier: Apache-2.0

"""Packages that would make pages too large or too slow, and faults of one package among others."""

import contextlib
import pathlib
import resource
from collections.abc import Iterator
from typing import Any

import pytest

from glare_murano.package import Unplannable
from loader import errors, resolution
from loader.site import documents, pages, paths, plans, rendering, search, sources
from tests import packages

TEXT = "x" * 10_000


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A directory with an honest package, beside which others are put."""
    made = tmp_path / "packages"
    made.mkdir()
    (made / "honest.zip").write_bytes(packages.package("org.honest"))
    return made


def _add(folder: pathlib.Path, code: str, version: str = "1.0.0", **keys: Any) -> None:
    archive = packages.package("org.odd", version, f"Name: org.odd.Thing\n{code}", **keys)
    (folder / f"odd{version}.zip").write_bytes(archive)


def _render(folder: pathlib.Path) -> tuple[rendering.Report, pathlib.Path]:
    site = folder.parent / "site"
    report = rendering.render(sources.Local([str(folder)]), site)
    assert "A Thing" in (site / paths.release("org.honest", "1.0.0")).read_text()
    return report, site


def _class_page(site: pathlib.Path) -> str:
    return (site / paths.class_page("org.odd", "1.0.0", "org.odd.Thing")).read_text()


def test_a_long_text_is_shortened_wherever_it_is_repeated(folder: pathlib.Path) -> None:
    repeated = "".join(f"  p{n}: {{Contract: $.string(), Default: *a}}\n" for n in range(100))
    _add(folder, f"Properties:\n  p: {{Contract: $.string(), Default: &a {TEXT}}}\n{repeated}")
    report, site = _render(folder)
    assert report.unreadable == []
    assert len(_class_page(site)) < 120 * documents._MAX_TEXT
    assert f"{TEXT[: documents._MAX_TEXT]}..." in _class_page(site)


def test_a_package_whose_pages_were_too_large_has_a_reason(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "_MAX_DOCUMENT", 5000)
    _add(folder, "".join(["Properties:\n", *(f"  p{n}: {{}}\n" for n in range(100))]))
    report, _ = _render(folder)
    ((place, (problem,)),) = report.unreadable
    assert place == "org.odd 1.0.0"
    assert "at most 5000 are shown" in problem


@pytest.mark.parametrize(
    ("limit", "number", "is_shown"),
    [("_MAX_INHERITED", 3, False), ("_MAX_BASES", 2, True), ("_MAX_ALL_BASES", 2, False)],
)
def test_of_many_inherited_members_some_are_shown(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, limit: str, number: int, is_shown: bool
) -> None:
    classes = {f"org.odd.C{n}": f"C{n}.yaml" for n in range(4)}
    files = {
        f"Classes/C{n}.yaml": (
            f"Name: org.odd.C{n}\nProperties:\n  own{n}: {{}}\n"
            + (f"Extends: org.odd.C{n + 1}\n" if n < 3 else "")
        ).encode()
        for n in range(4)
    }
    manifest = packages.manifest("org.odd", Classes=classes)
    (folder / "odd.zip").write_bytes(packages.zipped({**packages.files(manifest), **files}))
    page = paths.class_page("org.odd", "1.0.0", "org.odd.C0")
    _, site = _render(folder)
    assert "do not show all inherited members" not in (site / page).read_text()
    assert ">own3<" in (site / page).read_text()
    monkeypatch.setattr(rendering, limit, number)
    monkeypatch.setattr(rendering, "_code", lambda: "other")
    _render(folder)
    last = (site / paths.class_page("org.odd", "1.0.0", "org.odd.C1")).read_text()
    assert "do not show all inherited members" in last
    assert (">own3<" in last) == is_shown


def test_a_name_of_many_words_is_found_by_some(folder: pathlib.Path) -> None:
    name = "_".join(f"w{n}" for n in range(50))
    long = f"n{'o' * search._MAX_NAME}"
    _add(folder, f"Properties:\n  {name}: {{}}\n  {long}: {{}}\n")
    _, site = _render(folder)
    found = (site / "search" / f"{search.part('w')}.js").read_text()
    # A name that is divided at underscores is a word, too.
    assert found.count('"property"') <= search._MAX_OF_NAME
    assert '"w1"' in found
    assert '"w30"' not in found
    assert not any(long in path.read_text() for path in (site / "search").iterdir())


def test_a_search_has_a_largest_number_of_results(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_MAX_RESULTS", 10)
    document = {"classes": [{"name": "a.B", "properties": [{"name": f"p{n}"} for n in range(50)]}]}
    found = search.index("org.odd", document, {})
    assert sum(map(len, found.values())) == 10


def test_a_worker_has_a_limit_of_memory() -> None:
    with rendering._workers(rendering._FEW + 1) as workers:
        limit, _ = workers.submit(resource.getrlimit, resource.RLIMIT_AS).result()
    assert 0 < limit <= rendering._MAX_MEMORY


def test_of_many_subclasses_some_are_listed(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        archive = packages.extending(
            f"org.s{number}", "org.honest.Thing", Require={"org.honest": "1"}
        )
        (folder / f"{number}.zip").write_bytes(archive)
    monkeypatch.setattr(rendering, "_MAX_SUBCLASSES", 2)
    _, site = _render(folder)
    page = (site / paths.class_page("org.honest", "1.0.0", "org.honest.Thing")).read_text()
    assert page.count(".Thing</code></a></li>") == 2


def test_a_picture_with_many_lines_is_left_out(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add(folder, "", Require={"org.honest": "1"})
    monkeypatch.setattr(pages, "_MAX_LINES", 0)
    _, site = _render(folder)
    text = (site / paths.release("org.odd", "1.0.0")).read_text()
    assert "too large for a picture" in text


def test_a_package_whose_plans_take_long_is_planned_three_times(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        _add(folder, "", f"1.0.{number}")
    asked = []

    def resolve(catalogs: Any, query: Any, seconds: float) -> Any:
        (root, _), *_ = query.requirements
        asked.append(root)
        if root == "org.odd":
            raise Unplannable("it took too long")
        return resolution.Resolution()

    monkeypatch.setattr(plans.resolution, "resolve", resolve)
    _, site = _render(folder)
    assert asked.count("org.odd") == plans._MAX_FAILURES
    text = (site / paths.release("org.odd", "1.0.0")).read_text()
    assert "the plans of several other versions took too long" in text


def test_a_fault_in_writing_one_package_is_shown_on_its_page(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add(folder, "")
    render = pages.render_package

    def fail(site: Any, releases: Any, newest: Any) -> Iterator[tuple[str, str]]:
        if newest.fqn == "org.odd" and "problems" not in newest.document:
            raise RecursionError("too deep")
        return render(site, releases, newest)

    with monkeypatch.context() as patch:
        patch.setattr(pages, "render_package", fail)
        _, site = _render(folder)
    assert "too deep" in (site / paths.release("org.odd", "1.0.0")).read_text()
    # The next rendering writes the pages again.
    assert _render(folder)[0].written == 1
    assert "too deep" not in (site / paths.release("org.odd", "1.0.0")).read_text()


def test_a_package_that_could_not_be_read_for_the_moment_is_read_again(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add(folder, "")
    read = documents.read_contents

    def fail(archive: Any, **others: Any) -> Any:
        contents = read(archive, **others)
        if contents.manifest.fqn == "org.odd":
            raise MemoryError
        return contents

    with monkeypatch.context() as patch:
        patch.setattr(documents, "read_contents", fail)
        assert _render(folder)[0].unreadable == [("org.odd 1.0.0", ["MemoryError()"])]
    assert _render(folder)[0].unreadable == []
    assert _render(folder)[0].read == 0


class _Vanishing(sources.Local):
    """Packages of which one is deleted after it was listed."""

    @contextlib.contextmanager
    def fetched(self, entry: sources.Entry) -> Iterator[pathlib.Path]:
        if entry.fqn == "org.odd":
            raise errors.CatalogError("org.odd was not found")
        with super().fetched(entry) as path:
            yield path


def test_a_package_that_was_deleted_meanwhile_does_not_stop_the_others(
    folder: pathlib.Path,
) -> None:
    _add(folder, "")
    report = rendering.render(_Vanishing([str(folder)]), folder.parent / "site")
    assert report.unreadable == [("org.odd 1.0.0", ["org.odd was not found"])]
    assert _render(folder)[0].unreadable == []
