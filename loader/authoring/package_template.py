# SPDX-License-Identifier: Apache-2.0

"""Write the files of a new package, which is small and valid, and has a test that passes.

Comments in the files explain the package to its author.
"""

import os
import pathlib
import string
from collections.abc import Mapping
from typing import Literal

from glare_murano.package import InvalidName, safe_yaml
from glare_murano.package.classes import resolve
from glare_murano.package.errors import quoted
from glare_murano.package.manifest import MANIFEST_FILE, check_fqn
from loader import errors, fs
from loader.catalogs.directory import DEV

PackageType = Literal["Application", "Library"]

_MANIFEST = """\
Format: MuranoPL/1.4
Type: $type
FullName: $name
${version}Name: $title

# What users read about the package.
Description: |
  $title.
Author: ''
Tags: []

# The packages whose classes this one uses, with the versions that it works with, such as
#   org.example.db: '>=1.2,<2'
Require: {}

Classes:
  $name.$title: $title.yaml
  $name.${title}Test: ${title}Test.yaml
"""

_VERSION = "Version: 0.1.0\n"
_NO_VERSION = """\
# Version: "openstack murano package release" sets it in the directory of each release.
"""

_LIBRARY = """\
Namespaces:
  =: $name

Name: $title

Methods:
  # Other packages call this method. A later version must not take it away, unless its major
  # number is raised: "openstack murano package compare" says so.
  greeting:
    Arguments:
      - name:
          Contract: $$.string().notNull()
    Body:
      - Return: concat('Hello, ', $$name)
"""

_LIBRARY_TEST = """\
Namespaces:
  =: $name
  test: io.murano.test

Name: ${title}Test

Extends: test:TestFixture

Methods:
  testGreeting:
    Body:
      - $$library: new(:$title)
      - $$.assertEqual('Hello, Murano', $$library.greeting(Murano))
"""

_APPLICATION = """\
Namespaces:
  =: $name
  std: io.murano

Name: $title

Extends: std:Application

Properties:
  # The form in UI/ui.yaml asks the user for it.
  name:
    Contract: $$.string().notNull()

Methods:
  # Called for every deployment of the environment, so the work must not be done a second time.
  deploy:
    Body:
      - If: not $$.getAttr(deployed, false)
        Then:
          - $$reporter: $$.find(std:Environment).require().reporter
          - $$reporter.report($$this, concat('Deploying ', $$.name))
          # Here it creates servers and installs software.
          - $$.setAttr(deployed, true)
"""

_APPLICATION_TEST = """\
Namespaces:
  =: $name
  std: io.murano
  sys: io.murano.system
  test: io.murano.test

Name: ${title}Test

Extends: test:TestFixture

Properties:
  reports:
    Contract: [$$.string()]
    Usage: Runtime
    Default: []

Methods:
  testASecondDeploymentDoesNothing:
    Body:
      - $$environment: $$.load({Objects => {
            std:Environment => {
              name => test,
              applications => [{:$title => {name => Example}}]
            }}})
      # A mock: nothing is sent to users.
      - inject(sys:StatusReporter, report, $$this, remember)
      - $$environment.applications[0].deploy()
      - $$environment.applications[0].deploy()
      - $$.assertEqual(['Deploying Example'], $$.reports)

  remember:
    Arguments:
      - object:
          Contract: $$.class(std:Object)
      - message:
          Contract: $$.string()
    Body:
      - $$.reports: $$.reports.append($$message)
"""

_FORM = """\
Version: 2

Application:
  ?:
    type: $name.$title
  name: $$.configuration.name

Forms:
  - configuration:
      fields:
        - name: name
          type: string
          label: Name
          initial: $title
"""


class DirectoryUsed(errors.LoaderError):
    """The directory for a new package is not empty."""


def create(folder: pathlib.Path, name: str, package_type: PackageType) -> list[pathlib.Path]:
    """Write a new package into a new or empty directory.

    If the directory is called ``dev``, the manifest has no version, since each release sets it.

    :param name: the fully qualified name of the package, which has to contain a dot.
    :returns: the paths of the files, relative to the directory.
    :raises InvalidName: if the name is not valid, or no valid class name can be made from it.
    :raises DirectoryUsed: if the directory has files.
    :raises NotADirectory: if it is a file.
    :raises OSError: if a file cannot be written.
    """
    # The directory may be ".", so its absolute path is needed for the name.
    is_dev = os.path.basename(os.path.abspath(folder)) == DEV  # noqa: PTH100, PTH119
    files = new_package(name, package_type, is_versioned=not is_dev)
    fs.make_directory(folder)
    if any(folder.iterdir()):
        raise DirectoryUsed(f"{folder} is not empty; name a new directory with --directory")
    try:
        for path, text in files.items():
            target = folder / path
            target.parent.mkdir(exist_ok=True)
            with fs.created(target) as file:
                file.write(text.encode())
    except BaseException:
        # Remove all files after an error, since the next run needs an empty directory.
        for each in folder.iterdir():
            fs.remove(each)
        raise
    return [pathlib.Path(path) for path in files]


def new_package(
    name: str, package_type: PackageType, *, is_versioned: bool = True
) -> Mapping[str, str]:
    """Return a mapping of paths to the contents of a new package's files; the manifest comes last.

    :param is_versioned: whether the manifest has a version.
    :raises InvalidName: as in ``create``.
    """
    title = _class_name(check_fqn(name))
    files = {f"Classes/{title}.yaml": _LIBRARY, f"Classes/{title}Test.yaml": _LIBRARY_TEST}
    if package_type == "Application":
        files = {
            f"Classes/{title}.yaml": _APPLICATION,
            f"Classes/{title}Test.yaml": _APPLICATION_TEST,
            "UI/ui.yaml": _FORM,
        }
    version = _VERSION if is_versioned else _NO_VERSION
    values = {"name": name, "title": title, "type": package_type, "version": version}
    files[MANIFEST_FILE] = _MANIFEST
    return {path: string.Template(text).substitute(values) for path, text in files.items()}


def _class_name(name: str) -> str:
    """Return the name of a package's main class, such as ``WebShop`` for ``org.example.web_shop``.

    :raises InvalidName: if no valid class name can be made from the package's name.
    """
    words = name.rpartition(".")[2].split("_")
    title = "".join(f"{word[:1].upper()}{word[1:]}" for word in words)
    node = safe_yaml.compose(title.encode(), MANIFEST_FILE)
    try:
        resolve(f"{name}.{title}Test", {})
        is_string = node is not None and node.tag == safe_yaml.STR
    except ValueError:
        is_string = False
    if "." not in name or not is_string:
        raise InvalidName(
            f"{quoted(name)} cannot be the name of a package with classes: join words by dots, "
            f"such as org.example.wiki; each begins with a letter, and the last one is not a word "
            f"of YAML such as 'yes'"
        )
    return title
