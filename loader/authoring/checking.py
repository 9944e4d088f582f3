# SPDX-License-Identifier: Apache-2.0

"""Check a package on this host for its author: report all problems at once, without a network.

A finding is an error if an upload would be refused because of it, or if the version is too small
for the changes. Other findings are warnings: an upload accepts them, but they look like mistakes.
By default, a form that the dashboard cannot show causes only a warning.
"""

import contextlib
import enum
import functools
import itertools
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence

import yaml

from glare_murano.package import Archive, InvalidPackage, Problem, read_contents
from glare_murano.package.archive import Source
from glare_murano.package.classes import ClassSource, read_sources
from glare_murano.package.contents import (
    CLASSES_DIRECTORY,
    FORMS_DIRECTORY,
    read_class_files,
    read_manifest,
)
from glare_murano.package.errors import quoted
from glare_murano.package.manifest import MANIFEST_FILE, MURANO_PL, Manifest
from glare_murano.package.safe_yaml import MAX_SIZE, YAQL, compose, line_of
from glare_murano.package.type_process import describe_for_author
from glare_murano.package.ui_form import FormCheck, check_form
from loader.authoring import form_mistakes, local_packages
from loader.authoring.check_rules import CheckRule
from loader.authoring.findings import Finding, Level
from loader.catalogs.directory import DEV
from loader.compatibility import (
    Requirements,
    Verdict,
    compare,
    expressions,
    raised_part,
    smallest_version,
)
from loader.compatibility.hierarchy import Hierarchy, RequiredPackages
from loader.compatibility.interface import read_interface
from loader.compatibility.nodes import entries, is_expression, pairs

_CLASS_SUFFIXES = (".yaml", ".yml")
# The only class that the engine adds to the classes of the core library.
_ENGINE_CLASS = "io.murano.system.GC"


def check(
    place: pathlib.Path,
    form_check: FormCheck = FormCheck.WARN,
    requirements: Requirements | None = None,
) -> list[Finding]:
    """Check a package by the rules for uploads, and look for mistakes that an upload accepts.

    :param place: a directory or a ZIP file.
    :param form_check: whether the service refuses forms that the dashboard cannot show; by default,
        it accepts them, as a service with default options does.
    :param requirements: a function that takes an FQN and a range, and returns the required package;
        without it, classes of other packages are not searched for.
    :raises YaqlMissing: if the package has expressions, and yaql is not installed.
    """
    found: list[Finding] = []
    try:
        with Archive.open(place) as archive, contextlib.suppress(InvalidPackage):
            found += _broken_rules(place, archive, form_check)
            manifest = read_manifest(archive)
            # A node with aliases is found several times.
            mistakes = _Mistakes(place, archive, manifest, requirements)
            found += dict.fromkeys(mistakes.findings())
            local_packages.check_place(place, manifest)
    except InvalidPackage as error:
        return [_from_problem(place, None, each) for each in error.problems]
    except local_packages.WrongDirectory as error:
        return [_finding_at(place, "", 0, CheckRule.PACKAGE_DIRECTORY, str(error)), *found]
    except OSError as error:
        return [unreadable(pathlib.Path(error.filename or place), error.strerror or str(error))]
    return found


def _broken_rules(
    place: pathlib.Path, archive: Archive, form_check: FormCheck
) -> Iterator[Finding]:
    """Yield the findings of an upload: errors, for which it would be refused, and then warnings."""
    problems: Sequence[Problem] = ()
    try:
        warnings = read_contents(archive, describe_for_author, form_check).warnings
        archive.verify()
    except InvalidPackage as error:
        problems, warnings = error.problems, error.warnings
    for problem in problems:
        yield _from_problem(place, archive, problem)
    for warning in warnings:
        yield _from_problem(place, archive, warning, Level.WARNING)


def check_bases(
    place: pathlib.Path, requirements: Requirements | None = None
) -> tuple[list[Finding], Mapping[str, str]]:
    """Check that the package itself, or a package that it requires, defines each base class.

    If a required package cannot be read, it may define a missing base class. Then the base class is
    not reported, but the unread package is.

    :param place: a valid package: a directory or a ZIP file.
    :param requirements: a function that takes an FQN and a range, and returns the required package.
    :returns: the findings, and a mapping of unread packages, as ``FQN RANGE``, to the reasons why
        they were not read.
    """
    with Archive.open(place) as archive:
        contents = read_contents(archive)
    manifest, found = contents.manifest, []
    required = RequiredPackages(requirements)
    package = Hierarchy(read_interface(place), required)
    unread: dict[str, str] = {}
    for definition in contents.classes if manifest.format.name == MURANO_PL else ():
        file = f"{CLASSES_DIRECTORY}/{manifest.classes[definition.name]}"
        for base in definition.extends:
            if form_mistakes.is_missing(manifest, base) or package.find(base):
                continue
            unread |= required.unseen
            if not required.unseen:
                message = (
                    f"{definition.name} extends {base}, which neither the package nor one that it "
                    f"requires has; add the package of the class to Require"
                )
                line = definition.line
                found.append(_finding_at(place, file, line, CheckRule.BASE_UNKNOWN, message))
    return found, unread


def check_version(
    place: pathlib.Path, old: Source, requirements: Requirements | None = None
) -> list[Finding]:
    """Check whether the version of a valid package is enough for the changes since a release.

    If all files are the same, including the version, there are no findings.

    :param old: the release to compare with.
    :param requirements: a function that takes an FQN and a range, and returns the required package.
    :raises DifferentPackages: if the packages have different names.
    :raises InvalidPackage: if the old package breaks rules.
    """
    comparison = compare(old, place, requirements)
    verdict = comparison.verdict
    if verdict.is_enough or local_packages.repacked_digest(old) == local_packages.repacked_digest(
        place
    ):
        return []
    with Archive.open(place) as archive:
        line = _manifest_line(archive, "Version")
    if verdict.is_unversioned:
        rule = CheckRule.VERSION_MISSING
        return [_finding_at(place, MANIFEST_FILE, line, rule, str(verdict), Level.WARNING)]
    found = [_finding_at(place, MANIFEST_FILE, line, CheckRule.VERSION_SMALL, str(verdict))]
    for change in comparison.changes:
        smallest = smallest_version(verdict.old, change.part)
        if not Verdict(change.part, verdict.old, verdict.declared, smallest).is_enough:
            subject = f"class {change.class_name}: " if change.class_name else ""
            raised = raised_part(verdict.old, change.part)
            message = f"{subject}{change.message} (needs a new {raised} version)"
            if change.place.is_old:
                # Something that was removed has no line in the new version.
                message = f"{change.place}: {message}"
                found.append(_finding_at(place, MANIFEST_FILE, line, change.rule, message))
            else:
                found.append(_finding_at(place, change.file, change.line, change.rule, message))
    return found


def unreadable(place: pathlib.Path, reason: str) -> Finding:
    """Return the finding for a path that cannot be read, or at which there is no package."""
    return Finding(Level.ERROR, CheckRule.PACKAGE_UNREADABLE, place, 0, reason)


class _Mistakes:
    """Looks for probable mistakes in a package with a valid manifest."""

    def __init__(
        self,
        place: pathlib.Path,
        archive: Archive,
        manifest: Manifest,
        requirements: Requirements | None,
    ) -> None:
        self._place = place
        self._archive = archive
        self._manifest = manifest
        self._required = RequiredPackages(requirements)
        self._find = requirements

    def findings(self) -> Iterator[Finding]:
        """Yield a warning for each mistake.

        :raises YaqlMissing: if there are expressions, and yaql is not installed.
        """
        manifest = self._manifest
        if "Version" not in manifest.document and self._directory != DEV:
            message = "Version is missing, so the package is published as 0.0.0; add a version"
            yield self._warning(MANIFEST_FILE, 0, CheckRule.VERSION_MISSING, message)
        form = f"{FORMS_DIRECTORY}/{manifest.ui}"
        if "UI" in manifest.document and form not in self._archive.paths:
            line = _manifest_line(self._archive, "UI")
            yield self._warning(
                MANIFEST_FILE, line, CheckRule.FORM_MISSING, f"there is no file {form}"
            )
        if form in self._archive.paths:
            yield from self._form(form)
        if manifest.format.name != MURANO_PL:
            return
        listed = {f"{CLASSES_DIRECTORY}/{file}" for file in manifest.classes.values()}
        for path in self._archive.paths:
            is_class_file = path.startswith(f"{CLASSES_DIRECTORY}/")
            if is_class_file and path.endswith(_CLASS_SUFFIXES) and path not in listed:
                yield self._warning(
                    path, 0, CheckRule.FILE_UNLISTED, "Classes does not list this file"
                )
        for source in read_class_files(self._archive, manifest, read_sources, []):
            file = f"{CLASSES_DIRECTORY}/{manifest.classes[source.definition.name]}"
            yield from self._bases(source, file)
            for key in ("Properties", "Methods", "Workflow"):
                if key in source.keys:
                    yield from self._expressions(source.keys[key], file, source.namespaces)

    def _form(self, file: str) -> Iterator[Finding]:
        data = self._archive.read(file, MAX_SIZE)
        try:
            node = compose(data, file)
        except InvalidPackage:
            return
        if node is None:
            return
        # ``_broken_rules`` already reports the problems that do not need parsed expressions.
        known = {*itertools.chain(*check_form(data, file))}
        for problem in itertools.chain(*check_form(data, file, expressions.is_form_expression)):
            if problem not in known:
                yield _from_problem(self._place, self._archive, problem, Level.WARNING)
        for rule, place, message in form_mistakes.find(node, self._manifest):
            yield self._warning(file, line_of(place), rule, message)
        yield from self._expressions(node, file)

    @property
    def _directory(self) -> str:
        # The place may be ".", so its absolute path is needed for the name.
        return os.path.basename(os.path.abspath(self._place))  # noqa: PTH100, PTH119

    def _bases(self, source: ClassSource, file: str) -> Iterator[Finding]:
        for base in source.definition.extends:
            if form_mistakes.is_missing(self._manifest, base):
                line = line_of(source.keys.get("Extends"))
                message = f"{source.definition.name} extends {base}, which Classes does not list"
                yield self._warning(file, line, CheckRule.BASE_UNKNOWN, message)

    def _expressions(
        self, node: yaml.Node, file: str, namespaces: Mapping[str, str] | None = None
    ) -> Iterator[Finding]:
        """Find mistakes in all expressions of a YAML node.

        :param namespaces: a mapping of prefixes to namespaces for a class; None for a form.
        """
        if isinstance(node, yaml.MappingNode):
            for pair in pairs(node):
                for each in pair:
                    yield from self._expressions(each, file, namespaces)
        elif isinstance(node, yaml.SequenceNode):
            for each in node.value:
                yield from self._expressions(each, file, namespaces)
        elif _is_meant_as_expression(node) or self._may_use_class(node, namespaces):
            yield from self._expression(node, file, namespaces)

    def _may_use_class(self, node: yaml.Node, namespaces: Mapping[str, str] | None) -> bool:
        """Return whether an unmarked string has to be searched for the names of classes.

        A string is unmarked if it has no tag ``!yaql``, and does not begin with ``$``. It has to be
        searched if it is in a class file and is valid YAQL. Without a function that finds required
        packages, nothing is searched.

        :param namespaces: a mapping of prefixes to namespaces for a class; None for a form.
        """
        if namespaces is None or self._find is None or not is_expression(node):
            return False
        try:
            expressions.parse(node.value)
        except ValueError:
            return False
        return True

    def _expression(
        self, node: yaml.Node, file: str, namespaces: Mapping[str, str] | None
    ) -> Iterator[Finding]:
        try:
            expression = expressions.parse(node.value, of_form=namespaces is None)
        except ValueError as error:
            message = f"{quoted(node.value)} is not valid YAQL: {error}"
            yield self._warning(file, line_of(node), CheckRule.EXPRESSION_INVALID, message)
            return
        # A string that is only a name may name an exception, which is not a class.
        if namespaces is None or expressions.class_name(expression, namespaces) is not None:
            return
        for name in dict.fromkeys(expressions.used_classes(expression, namespaces)):
            if self._is_unrequired(name):
                message = f"{quoted(node.value)} uses {name}, which no required package has"
                yield self._warning(file, line_of(node), CheckRule.CLASS_UNREQUIRED, message)

    def _is_unrequired(self, class_name: str) -> bool:
        """Return whether a class is missing in the package and in all packages that it requires.

        If a required package cannot be read, the result is False. It is also False for the class
        that the engine itself defines, and for a class whose name begins with the package's name:
        such a class may be in a file of another class.
        """
        is_own = class_name.startswith(f"{self._manifest.fqn}.")
        if self._hierarchy is None or is_own or class_name == _ENGINE_CLASS:
            return False
        try:
            found = self._hierarchy.find(class_name)
        except InvalidPackage:
            return False
        return found is None and not self._required.unseen

    @functools.cached_property
    def _hierarchy(self) -> Hierarchy | None:
        """The classes of the package, with those of required packages.

        This is None if the package is invalid, or if no function finds required packages.
        """
        if self._find is None:
            return None
        try:
            return Hierarchy(read_interface(self._place), self._required)
        except InvalidPackage:
            return None

    def _warning(self, file: str, line: int, rule: CheckRule, message: str) -> Finding:
        return _finding_at(self._place, file, line, rule, message, Level.WARNING)


def _is_meant_as_expression(node: yaml.Node) -> bool:
    is_marked = node.tag == YAQL or str(node.value).startswith("$")
    return is_marked and is_expression(node) and len(node.value) <= expressions.MAX_LENGTH


def _from_problem(
    place: pathlib.Path, archive: Archive | None, problem: Problem, level: Level = Level.ERROR
) -> Finding:
    """Make a finding from a problem, which names a file of the package or a key of the manifest.

    For a key, the finding has the line of the key in the manifest.
    """
    where, line, message = problem.where, problem.line, problem.message
    paths: Sequence[str] = archive.paths if archive is not None else ()
    # A key of the manifest, such as Classes, may also be the name of a directory.
    is_key = problem.rule.startswith("manifest-") and where != MANIFEST_FILE
    is_file = where in paths or (place.is_dir() and os.path.lexists(place / where))
    if is_file and not is_key:
        return _finding_at(place, where, line, problem.rule, message, level)
    message = f"{where}: {message}"
    if archive is None or MANIFEST_FILE not in paths:
        return _finding_at(place, "", 0, problem.rule, message, level)
    line = line or _manifest_line(archive, *where.split(".", 1))
    return _finding_at(place, MANIFEST_FILE, line, problem.rule, message, level)


def _manifest_line(archive: Archive, *keys: str) -> int:
    """Return the line of a key in the manifest; 0 if the key is missing.

    :param keys: the key; for a key in a nested mapping, the keys that lead to it.
    """
    line = 0
    with contextlib.suppress(InvalidPackage):
        node = compose(archive.read(MANIFEST_FILE, MAX_SIZE), MANIFEST_FILE)
        for key in keys:
            key_node, node = entries(node).get(key, (None, None))
            line = line_of(key_node) or line
    return line


def _finding_at(
    place: pathlib.Path,
    file: str,
    line: int,
    rule: enum.StrEnum,
    message: str,
    level: Level = Level.ERROR,
) -> Finding:
    if place.is_dir():
        return Finding(level, rule, place / file if file else place, line, message)
    # For a ZIP file, the message has the inner file and the line: the attribute ``line`` would
    # count the lines of the ZIP file itself.
    inside = f"{file}, line {line}: " if line else f"{file}: " if file else ""
    return Finding(level, rule, place, 0, f"{inside}{message}")
