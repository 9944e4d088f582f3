# SPDX-License-Identifier: Apache-2.0

"""A catalogue of pages, rendered from directories."""

import concurrent.futures
import html
import html.parser
import json
import pathlib
import re
import shutil
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from loader import errors
from loader.publishing import bundles
from loader.site import documents, pages, paths, plans, rendering, search, sources
from tests import packages, processes

EXAMPLES = processes.ROOT / "examples" / "packages"
HOSTILE = "<script>alert('&\"')</script>\u202e"
POLICY = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'"


def _write(folder: pathlib.Path, name: str, version: str, **keys: object) -> None:
    (folder / f"{name}.{version}.zip").write_bytes(packages.package(name, version, **keys))


def _render(source: pathlib.Path, target: pathlib.Path, *names: str) -> rendering.Report:
    return rendering.render(sources.Local([str(source)]), target, names)


class _Page(html.parser.HTMLParser):
    """Reads what a page refers to, and which elements and attributes it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.elements: list[str] = []
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name in ("href", "src"):
                self.links.append(value or "")
            if name == "id":
                self.ids.add(value or "")


def _pages(site: pathlib.Path) -> Iterator[tuple[pathlib.Path, _Page]]:
    for path in site.rglob("*.html"):
        yield path, _Page(path.read_text())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The catalogue of the example packages."""
    target = tmp_path_factory.mktemp("site") / "catalogue"
    report = _render(EXAMPLES, target)
    assert (report.packages, report.unreadable) == (4, [])
    assert report.read == report.releases == 8
    return target


def test_no_link_is_dead(site: pathlib.Path) -> None:
    count = 0
    for path, page in _pages(site):
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme:
                assert link.startswith("https://www.example.org/"), link
                continue
            target = path.parent / parts.path if parts.path else path
            assert target.is_file(), f"{path}: {link}"
            if parts.fragment:
                assert parts.fragment in _Page(target.read_text()).ids
            count += 1
    assert count > 100


def test_pages_forbid_what_they_do_not_need(site: pathlib.Path) -> None:
    for path, page in _pages(site):
        assert POLICY in path.read_text()
        assert "style" not in page.elements
        assert not any(name == "style" or name.startswith("on") for name in page.attributes)
        assert page.elements.count("script") == (path.name == "index.html" and path.parent == site)


def test_a_page_shows_versions_requirements_and_changes(site: pathlib.Path) -> None:
    text = (site / paths.package("org.example.db")).read_text()
    assert re.findall(r'<th scope="row"><a href="[^"]+">([^<]+)<', text) == [
        *("2.0.0", "1.3.0", "1.2.0", "1.0.0")
    ]
    newest = (site / paths.release("org.example.wiki", "1.1.0")).read_text()
    assert "Changes since 1.0.0" in newest
    assert "method titles was added" in newest
    # The portal requires the wiki, which requires two packages, one of which requires the other.
    assert newest.count('class="arrow"') == 4
    # The pages of the newest release are at a second place, which stays.
    latest = (site / paths.release("org.example.wiki", "latest")).read_text()
    assert "This page is always about the newest version." in latest
    assert latest.partition("<dl>")[2].replace("/latest/", "/1.1.0/") == newest.partition("<dl>")[2]


def test_a_page_shows_which_versions_fit_together_and_why(site: pathlib.Path) -> None:
    text = (site / paths.release("org.example.portal", "latest")).read_text()
    row = r'<tr>\n<th scope="row"><a [^>]+>([^<]+)</a></th>\n<td><a [^>]+>([^<]+)<'
    assert re.findall(row, text) == [
        ("org.example.db", "1.3.0"),
        ("org.example.db", "2.0.0"),
        ("org.example.shop", "1.0.0"),
        ("org.example.wiki", "1.1.0"),
    ]
    assert "2.0.0 excluded by &gt;=1.0,&lt;2 of org.example.wiki 1.1.0" in text
    assert text.count(">side by side</text>") == 2
    assert "Several versions of org.example.db are used side by side" in text
    # The core library is not among the packages.
    assert '<th scope="row">io.murano</th><td><span class="mark">missing</span>' in text


def test_a_class_shows_what_it_inherits(tmp_path: pathlib.Path) -> None:
    place = tmp_path / "packages"
    place.mkdir()
    files = packages.content("org.db")
    code = "Name: org.db.Thing\nProperties:\n  size:\n    Contract: $.int().notNull()\n"
    files["Classes/Thing.yaml"] = code.encode()
    (place / "db.zip").write_bytes(packages.zipped(files))
    wiki = packages.extending("org.wiki", "org.db.Thing", Require={"org.db": "1"})
    (place / "wiki.zip").write_bytes(wiki)
    _render(place, tmp_path / "site")
    page = tmp_path / "site" / paths.class_page("org.wiki", "latest", "org.wiki.Thing")
    text = page.read_text()
    assert "The class has no properties and methods of its own." in text
    assert re.search('<code>size</code> <span class="mark">required</span></th>', text)
    assert "From" in text
    owner = paths.class_page("org.db", "1.0.0", "org.db.Thing")
    assert f'{owner}">Thing</a></td>' in text


def test_a_page_says_what_happens_without_the_version(site: pathlib.Path) -> None:
    def about(fqn: str, version: str) -> str:
        text = (site / paths.release(fqn, version)).read_text()
        return text.partition('<h2 id="dependents">')[2].partition("<h2")[0]

    used = about("org.example.db", "1.3.0")
    assert 'org.example.wiki</a> <span class="mark">uses it</span>' in used
    assert re.search('<td>could use <a href="[^"]+">1.2.0</a></td>', used)
    assert "Nothing breaks: each package that requires it has another version in its range." in used
    # The portal uses it through the wiki.
    assert ">org.example.portal</a>, <a" in used
    old = about("org.example.db", "1.2.0")
    assert re.search('<td>could use <a href="[^"]+">1.3.0</a></td>', old)
    assert "uses it" not in old
    assert "No package uses this version in its newest release." in old
    only = about("org.example.db", "2.0.0")
    assert "<td><strong>breaks</strong></td>" in only
    broken, _, rest = only.partition(" would break, since no other version is in the range.")
    assert broken.endswith(">org.example.shop</a>")
    assert re.search("would break as well: <a [^>]+>org.example.portal</a>[.]", rest)
    assert "Nothing breaks: no package" in about("org.example.portal", "1.0.0")


def test_a_picture_has_only_packages_that_use_the_version(site: pathlib.Path) -> None:
    old = (site / paths.release("org.example.db", "1.2.0")).read_text()
    assert "<title>org.example.wiki requires" not in old
    new = (site / paths.release("org.example.db", "1.3.0")).read_text()
    assert "<title>org.example.wiki requires" in new


def test_a_package_page_says_in_words_what_changed(site: pathlib.Path) -> None:
    text = (site / paths.package("org.example.db")).read_text()
    assert "changes since 1.3.0 are incompatible: packages that use this one can break." in text
    assert "1 change since 1.2.0, all compatible." in text
    required = text.partition('<h2 id="dependents">')[2]
    assert ">org.example.shop</a>, <a" in required


def test_a_missing_package_is_shown_with_the_package_that_requires_it(
    folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    _write(folder, "org.db", "1.1.0", Require={"org.none": "2"})
    _render(folder, tmp_path / "site")
    text = (tmp_path / "site" / paths.release("org.wiki", "latest")).read_text()
    assert "<title>org.db 1.1.0 requires org.none 2</title>" in text
    assert "org.wiki 1.0.0 requires org.none" not in text


def test_a_plan_that_is_too_large_is_told(
    folder: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "_SECONDS", 0)
    _render(folder, tmp_path / "site")
    text = (tmp_path / "site" / paths.release("org.wiki", "1.0.0")).read_text()
    assert '<p class="warning">planning' in text


def test_a_class_links_to_classes_of_other_packages(site: pathlib.Path) -> None:
    text = (
        site / paths.class_page("org.example.wiki", "latest", "org.example.wiki.Wiki")
    ).read_text()
    assert "/org.example.db/1.3.0/classes/org.example.db.~database.html" in text
    assert "<code>titles(" in text
    assert '<span class="mark">action</span>' in text


def test_the_search_has_packages_classes_and_properties(site: pathlib.Path) -> None:
    found: dict[str, list[list[str]]] = {}
    for part in (site / "search").iterdir():
        call = re.fullmatch(r'catalogue\.add\("(\w+)",(.*)\);\n', part.read_text(), re.DOTALL)
        assert call
        assert call[1] == part.stem
        words = json.loads(call[2])
        assert {f"{ord(word[0]):x}" for word in words} == {part.stem}
        found |= words
    kinds = {kind: text for kind, text, _ in found["database"]}
    assert kinds["class"] == "org.example.db.Database"
    assert kinds["package"] == "org.example.db"
    for results in found.values():
        for _, _, path in results:
            assert (site / path.partition("#")[0]).is_file()


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """Two packages, of which one requires the other."""
    place = tmp_path / "packages"
    place.mkdir()
    _write(place, "org.db", "1.0.0")
    _write(place, "org.wiki", "1.0.0", Require={"org.db": "1"})
    _write(place, "org.other", "1.0.0")
    return place


def _inodes(target: pathlib.Path) -> Mapping[str, int]:
    return {
        str(path.relative_to(target)): path.stat().st_ino
        for path in (target / "packages").rglob("*.html")
    }


def test_a_second_rendering_writes_only_what_has_changed(
    folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    target = tmp_path / "site"
    _render(folder, target)
    before = _inodes(target)
    report = _render(folder, target)
    assert (report.read, report.written) == (0, 0)
    assert _inodes(target) == before

    _write(folder, "org.wiki", "1.1.0", Require={"org.db": "1"})
    report = _render(folder, target)
    after = _inodes(target)
    same = {path for path, inode in before.items() if after.get(path) == inode}
    # The package itself, and what it requires.
    assert {path.split("/")[1] for path in before.keys() - same} == {"org.db", "org.wiki"}
    assert (report.read, report.written) == (2, 2)
    assert "1.1.0" in (target / paths.package("org.wiki")).read_text()

    (folder / "org.other.1.0.0.zip").unlink()
    _render(folder, target)
    assert not (target / "packages" / "org.other").exists()


def test_a_logo_stays_if_only_another_package_changes(
    folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    logo = b"\x89PNG\r\n\x1a\n"
    (folder / "logo.zip").write_bytes(packages.package("org.db", "1.1.0", more={"logo.png": logo}))
    target = tmp_path / "site"
    _render(folder, target)
    _write(folder, "org.wiki", "1.1.0", Require={"org.db": "1"})
    report = _render(folder, target)
    # The pages of org.db are written again, but its archives are not read.
    assert (report.read, report.written) == (2, 2)
    for version in ("1.1.0", paths.LATEST):
        page = target / paths.release("org.db", version)
        assert (page.parent / "logo.png").read_bytes() == logo


def test_files_that_are_not_part_of_a_package_are_not_read(tmp_path: pathlib.Path) -> None:
    place = packages.write(tmp_path / "db", packages.content("org.db"))
    # An editor marks a file that it edits with such a link, which leads nowhere.
    (place / ".#manifest.yaml").symlink_to("somebody@host.1")
    report = _render(place, tmp_path / "site")
    assert (report.packages, report.unreadable) == (1, [])


def test_a_property_with_a_line_break_is_one_result() -> None:
    name = "a\nhttps://evil.example.org"
    document = {"classes": [{"name": "org.db.Db", "properties": [{"name": name}]}]}
    found = search.index("org.db", document, {})
    (property_,) = (each for each in found["evil"] if each.kind == "property")
    assert "\n" not in property_.text


def test_names_select_packages(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    target = tmp_path / "site"
    assert _render(folder, target, "org.d*", "org.wiki").packages == 2
    with pytest.raises(errors.NotFound, match=r"no package has the name org\.none"):
        _render(folder, target, "org.none")
    assert (target / paths.package("org.db")).is_file()


@pytest.mark.parametrize("foreign", ["notes.txt", "images/"])
def test_foreign_files_are_never_removed(
    folder: pathlib.Path, tmp_path: pathlib.Path, foreign: str
) -> None:
    target = tmp_path / "site"
    for _ in range(2):
        target.mkdir(exist_ok=True)
        file = target / foreign
        file.mkdir() if foreign.endswith("/") else file.touch()
        with pytest.raises(rendering.ForeignFiles, match=foreign.rstrip("/")):
            _render(folder, target)
        assert [*target.iterdir()].count(file) == 1
        # A catalogue with a foreign file is refused as well.
        shutil.rmtree(target)
        _render(folder, target)
    assert {path.name for path in tmp_path.iterdir()} == {"packages", "site"}


def test_a_file_is_no_target(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "site").touch()
    with pytest.raises(rendering.ForeignFiles, match="is not a directory"):
        _render(folder, tmp_path / "site")


def test_an_interrupted_rendering_leaves_the_old_pages_whole(
    folder: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "site"
    _render(folder, target)
    before = {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}
    _write(folder, "org.wiki", "1.1.0")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pages, "render_index", interrupt)
    with pytest.raises(KeyboardInterrupt):
        _render(folder, target)
    assert {path: path.read_bytes() for path in target.rglob("*") if path.is_file()} == before
    assert {path.name for path in tmp_path.iterdir()} == {"packages", "site"}


def test_what_a_killed_rendering_has_left_is_removed(
    folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / f".site.{'0' * 32}" / "packages").mkdir(parents=True)
    (tmp_path / ".site.other").mkdir()
    _render(folder, tmp_path / "site")
    assert {path.name for path in tmp_path.iterdir()} == {".site.other", "packages", "site"}


def test_of_two_renderings_at_once_one_is_refused(
    folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    target = tmp_path / "site"

    def render(_: int) -> bool:
        try:
            return _render(folder, target).packages == 3
        except rendering.BusyTarget:
            return False

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        done = [*pool.map(render, range(12))]
    assert {*done} == {True, False}
    assert (target / paths.package("org.db")).is_file()
    assert {path.name for path in tmp_path.iterdir()} == {"packages", "site"}


def test_a_damaged_state_begins_anew(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    target = tmp_path / "site"
    _render(folder, target)
    (target / rendering.STATE).write_text("{")
    assert _render(folder, target).read == 3


def test_what_cannot_be_read_is_shown_with_its_reason(
    folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (folder / "broken.zip").write_bytes(b"PK")
    (folder / "wrong.zip").write_bytes(packages.package("org.wrong", code="Name: [\n"))
    report = _render(folder, tmp_path / "site")
    assert report.packages == 4
    places = dict(report.unreadable)
    assert "archive-format" in places[str(folder / "broken.zip")][0]
    page = (tmp_path / "site" / paths.release("org.wrong", "1.0.0")).read_text()
    assert "cannot be read" in page
    assert re.search(r"Classes/Thing.yaml, line \d+: .* \[yaml-syntax\]", page)
    assert "broken.zip" in (tmp_path / "site" / "index.html").read_text()


def test_a_link_in_a_package_is_not_read(tmp_path: pathlib.Path) -> None:
    package = tmp_path / "packages" / "org.db"
    packages.write(package, packages.content("org.db"))
    (package / "endless").symlink_to("/dev/zero")
    report = _render(package.parent, tmp_path / "site")
    (place, problems) = report.unreadable[0]
    assert place == str(package)
    assert "endless" in problems[0]


def test_texts_of_packages_are_inert(tmp_path: pathlib.Path) -> None:
    place = tmp_path / "packages"
    place.mkdir()
    _write(
        *(place, "org.evil", "1.0.0"),
        Name=HOSTILE,
        Description=HOSTILE,
        Author=HOSTILE,
        Tags=[HOSTILE],
        Supplier={"CompanyUrl": {"Link": "javascript:alert(1)", "Text": HOSTILE}, "Name": HOSTILE},
    )
    _render(place, tmp_path / "site")
    for path, page in _pages(tmp_path / "site"):
        text = path.read_text()
        assert "<script>alert" not in text
        assert "\u202e" not in text
        assert not any(link.startswith("javascript:") for link in page.links)
        assert page.elements.count("script") <= 1
    page = (tmp_path / "site" / paths.release("org.evil", "1.0.0")).read_text()
    assert "&lt;script&gt;alert(" in page
    assert "\\u202e" in page
    for part in (tmp_path / "site" / "search").iterdir():
        assert "</script" not in part.read_text()


def test_a_bundle_is_a_source(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    bundle = folder / "packages.bundle"
    bundles.write(bundle, [bundles.Entry("org.db", "1.0.0", "org.db.1.0.0.zip", "")])
    assert _render(bundle, tmp_path / "site").packages == 1
    with pytest.raises(bundles.BundleError, match="save the bundle"):
        rendering.render(sources.Local(["https://127.0.0.1/a.bundle"]), tmp_path / "other")


def test_a_missing_directory_is_an_error(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError):
        _render(tmp_path / "none", tmp_path / "site")
    assert not (tmp_path / "site").exists()


TEMPLATE = b"""heat_template_version: 2016-10-14
parameters:
  flavor:
    type: string
    label: The flavor
    default: m1.small
resources: {}
outputs:
  address:
    description: Where it listens
    value: none
"""


def test_a_heat_template_has_its_parameters_and_outputs(tmp_path: pathlib.Path) -> None:
    place = tmp_path / "packages"
    place.mkdir()
    manifest = packages.manifest(
        "org.heat", Format="Heat.HOT/1.0", Type="Application", Classes=None
    )
    files = {**packages.files(manifest), "template.yaml": TEMPLATE}
    (place / "heat.zip").write_bytes(packages.zipped(files))
    assert _render(place, tmp_path / "site").unreadable == []
    text = (tmp_path / "site" / paths.release("org.heat", "1.0.0")).read_text()
    for shown in ("The flavor", "m1.small", "address", "Where it listens"):
        assert shown in text


def test_a_form_has_its_steps_and_fields(site: pathlib.Path) -> None:
    text = (site / paths.release("org.example.wiki", "latest")).read_text()
    assert '<h2 id="form">Form</h2>' in text
    assert "Fields of appConfiguration" in text
    assert "How the wiki is called." in text


FORM = b"""
Version: 2
Application: {?: {type: org.db.Thing}, name: $.first.name}
Forms:
  - first:
      fields:
        - name: name
          type: string
          label: Host name
          helpText: Lower case only
          initial: db
          minLength: 3
          regexpValidator: '[a-z]+'
          validators:
            - expr: {regexpValidator: '.*[^-]'}
              message: It ends with no hyphen
        - name: size
          type: choice
          choices: [[small, Small], [large, Large]]
          required: false
"""


def test_a_field_has_its_default_and_its_rules(tmp_path: pathlib.Path) -> None:
    place = tmp_path / "packages"
    place.mkdir()
    (place / "db.zip").write_bytes(packages.package("org.db", more={"UI/ui.yaml": FORM}))
    _render(place, tmp_path / "site")
    text = (tmp_path / "site" / paths.release("org.db", "1.0.0")).read_text()
    shown = html.unescape(text)
    for rule in ("characters: at least 3", "matches '[a-z]+'", "It ends with no hyphen"):
        assert f"<br>{rule}" in shown
    assert "<br>one of [[small, Small], [large, Large]]" in shown
    assert "choice, optional" in shown
    assert "<td><code>db</code></td>" in shown
    assert "Lower case only" in shown


def test_titles_and_descriptions_come_from_metadata(tmp_path: pathlib.Path) -> None:
    place = tmp_path / "packages"
    place.mkdir()
    files = packages.content("org.db")
    files["Classes/Thing.yaml"] = b"""
Namespaces:
  =: org.db
  m: io.murano.metadata
Name: Thing
Meta:
  - m:Title: {text: A thing to keep}
  - m:Description: {text: It keeps records.}
Properties:
  size:
    Contract: $.int().notNull()
    Meta:
      - m:Title: {text: How large}
      - io.murano.metadata.forms.Position: {index: 2, section: [a, b]}
      - m:Hidden
"""
    (place / "db.zip").write_bytes(packages.zipped(files))
    _render(place, tmp_path / "site")
    text = (tmp_path / "site" / paths.class_page("org.db", "1.0.0", "org.db.Thing")).read_text()
    for shown in ("A thing to keep", "It keeps records.", "How large", "required"):
        assert shown in text
    assert "Metadata: <code>io.murano.metadata.Hidden</code>" in text
    position = "io.murano.metadata.forms.Position: {index: 2, section: [a, b]}"
    assert f"Metadata: <code>{position}</code>" in text


def test_latest_is_what_a_user_gets(tmp_path: pathlib.Path) -> None:
    place = tmp_path / "packages"
    place.mkdir()
    for version in ("1.0.0", "1.1.0", "2.0.0-rc.1"):
        _write(place, "org.db", version)
    _write(place, "org.early", "1.0.0-rc.1")
    _render(place, tmp_path / "site")
    for fqn, version in (("org.db", "1.1.0"), ("org.early", "1.0.0-rc.1")):
        text = (tmp_path / "site" / paths.release(fqn, "latest")).read_text()
        assert f"<h1>A Thing {version}</h1>" in text
    assert "org.db: 1</code>" in (tmp_path / "site" / paths.package("org.db")).read_text()


def test_an_archive_with_another_digest_than_its_bundle_says_is_not_shown(
    folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    bundle = folder / "packages.bundle"
    bundles.write(bundle, [bundles.Entry("org.db", "1.0.0", "org.db.1.0.0.zip", "0" * 64)])
    report = _render(bundle, tmp_path / "site")
    assert report.packages == 0
    assert "0" * 64 in report.unreadable[0][1][0]


def test_a_fault_in_reading_one_package_leaves_the_others(
    folder: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = documents.read_interface

    def fail(path: pathlib.Path) -> Any:
        if "other" in path.name:
            raise RecursionError("too deep")
        return read(path)

    monkeypatch.setattr(documents, "read_interface", fail)
    report = _render(folder, tmp_path / "site")
    assert report.unreadable == [("org.other 1.0.0", ["too deep"])]
    assert (tmp_path / "site" / paths.package("org.db")).is_file()


@pytest.mark.parametrize("most", [0, 1])
def test_a_large_plan_is_not_drawn(
    folder: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    (folder / "org.db.1.0.0.zip").unlink()
    _write(folder, "org.db", "1.1.0")
    monkeypatch.setattr(pages, "_MAX_PLANNED", most)
    _render(folder, tmp_path / "site")
    text = (tmp_path / "site" / paths.release("org.wiki", "latest")).read_text()
    assert text.count(">org.wiki 1.0.0 requires org.db 1</title>") == most
    assert text.count("too large for a picture") == 1 - most


def test_of_many_dependents_some_are_drawn(
    folder: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(folder, "org.blog", "1.0.0", Require={"org.db": "1"})
    monkeypatch.setattr(pages, "_MAX_DRAWN", 1)
    _render(folder, tmp_path / "site")
    text = (tmp_path / "site" / paths.release("org.db", "latest")).read_text()
    assert text.count("requires 1</title>") == 1
    assert ">1 more packages</text>" in text


def test_of_many_changes_some_are_listed(
    folder: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "Name: org.db.Thing\nMethods:\n  a: {Body: []}\n  b: {Body: []}\n  c: {Body: []}\n"
    (folder / "new.zip").write_bytes(packages.package("org.db", "1.1.0", code=code))
    monkeypatch.setattr(documents, "_MAX_CHANGES", 1)
    _render(folder, tmp_path / "site")
    text = (tmp_path / "site" / paths.release("org.db", "1.1.0")).read_text()
    assert text.count("<code>org.db.Thing</code>: ") == 1
    assert "3 more" in text


def test_of_many_words_some_are_found(
    folder: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_MAX_WORDS", 2)
    _render(folder, tmp_path / "site", "org.db")
    parts = {path.stem for path in (tmp_path / "site" / "search").iterdir()}
    assert parts == {search.part("org"), search.part("db")}
