# SPDX-License-Identifier: Apache-2.0

"""Check a package on this host for its author: report all problems at once, without a network.

A finding is an error if it breaks a rule of uploads or of the SemVer guard. Other findings are
warnings: an upload accepts them, although they look like mistakes.
"""

import contextlib
import enum
import itertools
import os
import pathlib
from collections.abc import Iterator, Sequence

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
from loader.compatibility.nodes import entries, is_expression, pairs

_CLASS_SUFFIXES = (".yaml", ".yml")


def check(place: pathlib.Path) -> list[Finding]:
    """Check a package by the rules of an upload, and find mistakes that an upload accepts.

    :param place: a directory or a ZIP file.
    :raises YaqlMissing: if the package has expressions, and yaql is not installed.
    """
    found: list[Finding] = []
    try:
        with Archive.open(place) as archive, contextlib.suppress(InvalidPackage):
            found += _broken_rules(place, archive)
            manifest = read_manifest(archive)
            # A node with aliases is found several times.
            found += dict.fromkeys(_Mistakes(place, archive, manifest).findings())
            local_packages.check_place(place, manifest)
    except InvalidPackage as error:
        return [_from_problem(place, None, each) for each in error.problems]
    except local_packages.WrongDirectory as error:
        return [_finding_at(place, "", 0, CheckRule.PACKAGE_DIRECTORY, str(error)), *found]
    except OSError as error:
        return [unreadable(pathlib.Path(error.filename or place), error.strerror or str(error))]
    return found


def _broken_rules(place: pathlib.Path, archive: Archive) -> Iterator[Finding]:
    """Yield the problems for which an upload is refused, and then its warnings."""
    problems: Sequence[Problem] = ()
    try:
        warnings = read_contents(archive, form_check=FormCheck.ENFORCE).warnings
        archive.verify()
    except InvalidPackage as error:
        problems, warnings = error.problems, error.warnings
    for problem in problems:
        yield _from_problem(place, archive, problem)
    for warning in warnings:
        yield _from_problem(place, archive, warning, Level.WARNING)


def check_version(
    place: pathlib.Path, old: Source, requirements: Requirements | None = None
) -> list[Finding]:
    """Check whether the version of a valid package is enough for its changes.

    If the version and all files are the same, there are no changes, and no findings.

    :param old: the release to compare with.
    :param requirements: returns required packages, as in ``compare``.
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
    """Return the finding for a place that cannot be read, or has no package."""
    return Finding(Level.ERROR, CheckRule.PACKAGE_UNREADABLE, place, 0, reason)


class _Mistakes:
    """Finds probable mistakes in a package whose manifest is valid."""

    def __init__(self, place: pathlib.Path, archive: Archive, manifest: Manifest) -> None:
        self._place = place
        self._archive = archive
        self._manifest = manifest

    def findings(self) -> Iterator[Finding]:
        """Yield all warnings.

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
                    yield from self._expressions(source.keys[key], file)

    def _form(self, file: str) -> Iterator[Finding]:
        data = self._archive.read(file, MAX_SIZE)
        try:
            node = compose(data, file)
        except InvalidPackage:
            return
        if node is None:
            return
        # An upload already finds the problems that do not need parsed expressions.
        known = {*itertools.chain(*check_form(data, file))}
        for problem in itertools.chain(*check_form(data, file, expressions.is_form_expression)):
            if problem not in known:
                yield _from_problem(self._place, self._archive, problem, Level.WARNING)
        for rule, place, message in form_mistakes.find(node, self._manifest):
            yield self._warning(file, line_of(place), rule, message)
        yield from self._expressions(node, file, of_form=True)

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

    def _expressions(self, node: yaml.Node, file: str, of_form: bool = False) -> Iterator[Finding]:
        if isinstance(node, yaml.MappingNode):
            for pair in pairs(node):
                for each in pair:
                    yield from self._expressions(each, file, of_form)
        elif isinstance(node, yaml.SequenceNode):
            for each in node.value:
                yield from self._expressions(each, file, of_form)
        elif _is_meant_as_expression(node):
            try:
                expressions.parse(node.value, of_form)
            except ValueError as error:
                message = f"{quoted(node.value)} is not valid YAQL: {error}"
                yield self._warning(file, line_of(node), CheckRule.EXPRESSION_INVALID, message)

    def _warning(self, file: str, line: int, rule: CheckRule, message: str) -> Finding:
        return _finding_at(self._place, file, line, rule, message, Level.WARNING)


def _is_meant_as_expression(node: yaml.Node) -> bool:
    is_marked = node.tag == YAQL or str(node.value).startswith("$")
    return is_marked and is_expression(node) and len(node.value) <= expressions.MAX_LENGTH


def _from_problem(
    place: pathlib.Path, archive: Archive | None, problem: Problem, level: Level = Level.ERROR
) -> Finding:
    """Make a finding from a problem, which names a file or a key of the manifest."""
    where, line, message = problem.where, problem.line, problem.message
    paths: Sequence[str] = archive.paths if archive is not None else ()
    if where in paths or (place.is_dir() and os.path.lexists(place / where)):
        return _finding_at(place, where, line, problem.rule, message, level)
    message = f"{where}: {message}"
    if archive is None or MANIFEST_FILE not in paths:
        return _finding_at(place, "", 0, problem.rule, message, level)
    line = line or _manifest_line(archive, *where.split(".", 1))
    return _finding_at(place, MANIFEST_FILE, line, problem.rule, message, level)


def _manifest_line(archive: Archive, *keys: str) -> int:
    """Return the line of a key in the manifest, or of an inner key; 0 if the key is missing."""
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
    # For a ZIP file, the message has the inner file and the line: a finding's line would be that
    # of the ZIP file.
    inside = f"{file}, line {line}: " if line else f"{file}: " if file else ""
    return Finding(level, rule, place, 0, f"{inside}{message}")
