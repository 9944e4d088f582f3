# SPDX-License-Identifier: Apache-2.0

"""Make the HTML pages of a package from its documents and its relations.

Jinja2 escapes all texts. A text of a package never becomes a link, except for the HTTP URL of the
supplier. This link opens without a referrer. Styles and scripts are in separate files, so the
content security policy of the pages forbids styles and scripts inside a page.
"""

import collections
import dataclasses
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jinja2
from markupsafe import Markup

from glare_murano.package.errors import escaped
from loader.drawing import pictures
from loader.drawing.pictures import Box, Line
from loader.site import paths
from loader.site.documents import Document
from loader.site.relations import Dependent

# The largest number of dependents in a picture.
_MAX_DRAWN = 12
# The largest plan in a picture. With twice as many packages, drawing would take four times as long
# as all else that is done for a release, and nobody could read the picture.
_MAX_PLANNED = 30
_MAX_LINES = 120
# The usages of properties that a user sets.
_SETTABLE = ("In", "InOut", "Const")
_WEB = re.compile(r"https?://[^\s\"'<>\\]+\Z", re.I)


@dataclasses.dataclass(frozen=True)
class Site:
    """The description of the catalogue that every page shows.

    :param title: whose packages the catalogue shows, and where they come from.
    :param rendered: the time of the rendering.
    """

    title: str
    rendered: str


@dataclasses.dataclass(frozen=True)
class Release:
    """A release with everything that its pages show.

    :param document: the content of the archive; see ``documents``.
    :param listed: fields that do not come from the archive, as in ``sources.Entry``.
    :param download: how to get the archive, as in ``sources.Entry``.
    :param links: each base class, and each class in a contract -> the path of the page about it.
    :param dependents: the packages that require the package in a range with this release.
    :param requirers: all packages with a version that requires the package, in any range.
    :param users: the packages whose plans contain this release, as in ``plans.users``.
    :param affected: the packages that would break indirectly without this release: their plans
        contain a package with a requirement that only this release satisfies. Packages that have
        such a requirement themselves are left out.
    :param plan: the versions that are loaded together with the release, from ``plans.make``.
    :param inherited: each class -> its base classes, each with name, path of the page, and members.
    :param is_cut: whether inherited members were left out, since there are too many.
    :param subclasses: each class -> its direct subclasses, each with name and path of the page.
    :param schemas: each class -> its JSON schema, from ``schemas.make``; empty without schemas.
    """

    fqn: str
    version: str
    document: Document
    listed: Mapping[str, Any]
    download: str
    links: Mapping[str, str]
    dependents: Sequence[Dependent]
    requirers: Sequence[str]
    users: Sequence[str]
    affected: Sequence[str]
    plan: Mapping[str, Any]
    inherited: Mapping[str, Sequence[tuple[str, str, Mapping[str, Any]]]]
    is_cut: bool
    subclasses: Mapping[str, Sequence[tuple[str, str]]]
    schemas: Mapping[str, Mapping[str, str]]

    @property
    def path(self) -> str:
        """The path of the page about this release."""
        return paths.release(self.fqn, self.version)

    @property
    def sides(self) -> list[str]:
        """The FQNs of the packages of which the plan contains several versions."""
        counted = collections.Counter(each["fqn"] for each in self.plan["chosen"])
        return [fqn for fqn, number in counted.items() if number > 1]

    @functools.cached_property
    def graph(self) -> Markup:
        """The picture of the packages that use this release, and of the plan.

        It is drawn only once, although two pages show the picture of the newest release.
        """
        return _graph(self, paths.to_root(self.path))


def render_package(
    site: Site, releases: Sequence[Release], newest: Release
) -> Iterator[tuple[str, str]]:
    """Yield the pages of a package, each as path and HTML.

    :param releases: the releases of the package, the newest first.
    :param newest: the release that a user gets if the user requests no version.
    """
    context = {"site": site, "releases": releases, "newest": newest, "fqn": newest.fqn}
    yield _rendered("package.html", paths.package(newest.fqn), **context)
    for release in releases:
        yield from _of_release(release, release.version, context)
    yield from _of_release(newest, paths.LATEST, context)


def _of_release(
    release: Release, version: str, context: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield the pages of a release, each as path and HTML.

    :param version: the version in the paths of the pages, which can also be ``paths.LATEST``.
    :param context: the variables that all pages of the package have in common.
    """
    path = paths.release(release.fqn, version)
    own = {**context, "release": release, "document": release.document, "version": version}
    if "problems" in release.document:
        yield _rendered("unreadable.html", path, **own)
        return
    yield _rendered("release.html", path, **own)
    for each in release.document["classes"]:
        class_path = paths.class_page(release.fqn, version, each["name"])
        subclasses = release.subclasses.get(each["name"], ())
        inherited = release.inherited.get(each["name"], ())
        members = {
            "settable": _settable(each, inherited),
            "others": [one for one in each["properties"] if one["usage"] not in _SETTABLE],
            "inherited": [(name, link, _words(found)) for name, link, found in inherited],
        }
        yield _rendered(
            "class.html", class_path, shown=each, subclasses=subclasses, **members, **own
        )


def _settable(
    shown: Mapping[str, Any], inherited: Sequence[tuple[str, str, Mapping[str, Any]]]
) -> list[Mapping[str, Any]]:
    """Return the properties of a class that a user sets, inherited properties included.

    The required properties come first. For an inherited property, ``owner`` is the name of the base
    class, and ``link`` is the path of the page about the base class.

    :param shown: the class.
    :param inherited: the base classes, each with name, path of the page, and members.
    """
    found = [{**one, "owner": "", "link": ""} for one in shown["properties"]]
    for owner, link, members in inherited:
        properties = (one for one in members.values() if isinstance(one, Mapping))
        found += [{**one, "owner": owner, "link": link} for one in properties]
    settable = [one for one in found if one["usage"] in _SETTABLE]
    return sorted(settable, key=lambda one: not one["required"])


def _words(members: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the members that a user does not set, each with a word that describes it.

    The word for a property is its usage. The word for a method is ``action``; it is empty if the
    method is not public.

    :param members: the members, from ``relations.members``.
    """
    words = {key: one["usage"] if isinstance(one, Mapping) else one for key, one in members.items()}
    return {key: word for key, word in words.items() if word not in _SETTABLE}


def render_index(
    site: Site,
    packages: Sequence[Mapping[str, Any]],
    unreadable: Sequence[tuple[str, Sequence[str]]],
) -> tuple[str, str]:
    """Return the path and the HTML of the first page, which lists all packages.

    :param packages: the packages, each with name, newest version, path of the page, and more.
    :param unreadable: the packages without a page, each with its place and its problems.
    """
    context = {"site": site, "packages": packages, "unreadable": unreadable}
    return _rendered("index.html", paths.INDEX, **context)


def render_help(site: Site) -> tuple[str, str]:
    """Return the path and the HTML of the help page, which explains the other pages."""
    return _rendered("help.html", paths.HELP, site=site)


def _graph(release: Release, root: str) -> Markup:
    """Draw the plan for a release, and the packages that require the release and use it.

    A plan that is too large is not drawn.

    :param root: the relative URL from the page to the directory of the site.
    """
    own = f"{release.fqn} {release.version}"
    boxes: dict[str, Box] = {}
    lines: list[Line] = []
    drawn = [each for each in release.dependents if each.fqn in release.users]
    for each in drawn[:_MAX_DRAWN]:
        link = f"{root}{paths.package(each.fqn)}"
        key = f"dependent {each.fqn}"
        boxes[key] = Box(each.fqn, [each.versions[0]], frozenset(), link)
        lines.append(Line(key, own, each.range, f"{each.fqn} requires {each.range}"))
    more = len(drawn) - _MAX_DRAWN
    if more > 0:
        boxes["more"] = Box(f"{more} more packages")
        lines.append(Line("more", own, "", "more packages require it"))
    forms = {"first", "dashed"} if release.listed.get("yanked") else {"first"}
    texts = [release.version, *(["yanked"] if "dashed" in forms else [])]
    boxes[own] = Box(release.fqn, texts, frozenset(forms))
    chosen = release.plan["chosen"]
    requirements = sum(len(each["ranges"]) for each in chosen)
    if len(chosen) > _MAX_PLANNED or requirements > _MAX_LINES:
        title = f"What requires {own}, whose plan is too large for a picture"
        return Markup(pictures.draw_inside(title, boxes, lines))  # noqa: S704
    versions = collections.Counter(each["fqn"] for each in chosen)
    for each in chosen:
        link = f"{root}{paths.release(each['fqn'], each['version'])}"
        is_double = versions[each["fqn"]] > 1
        found = [each["version"], *(["side by side"] if is_double else [])]
        form = frozenset({"double"} if is_double else ())
        boxes[f"{each['fqn']} {each['version']}"] = Box(each["fqn"], found, form, link)
    for each in release.plan["missing"]:
        box = Box(each["fqn"], ["missing in this catalogue"], frozenset({"dotted"}))
        boxes[f"{each['fqn']} missing"] = box
    for each in (*chosen, *release.plan["missing"]):
        end = f"{each['fqn']} {each.get('version', 'missing')}"
        for fqn, version, text in each["ranges"]:
            start = f"{fqn} {version}"
            lines.append(Line(start, end, text, f"{start} requires {each['fqn']} {text}"))
    title = f"The packages that fit together with {own}, and those that require it"
    # The picture has escaped all texts.
    return Markup(pictures.draw_inside(title, boxes, lines))  # noqa: S704


def _rendered(template: str, path: str, **context: Any) -> tuple[str, str]:
    root = paths.to_root(path)
    return path, _environment().get_template(template).render(root=root, path=path, **context)


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("loader.site"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_plain,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["paths"] = paths
    environment.tests["web"] = _is_web
    environment.filters["first_sentence"] = _first_sentence
    return environment


def _plain(value: Any) -> Any:
    """Escape unprintable characters in a string, such as characters that reverse the text.

    Markup, and values that are not strings, are returned unchanged.
    """
    if isinstance(value, str) and not isinstance(value, Markup):
        return escaped(value, "\n")
    return value


def _is_web(text: str) -> bool:
    return bool(_WEB.match(text))


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?]) ", " ".join(text.split()), maxsplit=1)[0][:200]
