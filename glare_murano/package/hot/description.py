# SPDX-License-Identifier: Apache-2.0

"""Describe a package that has a HOT template: its class, its requirements and its form."""

from glare_murano.package.archive import Archive
from glare_murano.package.errors import InvalidPackage, Problem
from glare_murano.package.hot import class_code, form, yaql_dumper
from glare_murano.package.hot.template import TEMPLATE_FILE, Template
from glare_murano.package.manifest import Manifest
from glare_murano.package.package_types import Description
from glare_murano.package.rules import Rule
from glare_murano.package.safe_yaml import MAX_SIZE


def describe(manifest: Manifest, archive: Archive) -> Description:
    """Return the generated class, the requirements and the form of a package with a HOT template.

    A form is generated only if the package does not contain a form.

    :raises InvalidPackage: if the template is missing or not valid.
    """
    if TEMPLATE_FILE not in archive.paths:
        raise template_missing()
    template = Template.parse(archive.read(TEMPLATE_FILE, MAX_SIZE))
    requirements = {fqn: spec.text for fqn, spec in manifest.requirements.items()}
    ui = None
    if f"UI/{manifest.ui}" not in archive.paths:
        name, written = manifest.fqn, manifest.document.get("Description")
        ui = yaql_dumper.dump(form.make_form(name, manifest.version, written, template))
    return Description({manifest.fqn: [class_code.BASE]}, requirements, ui)


def template_missing() -> InvalidPackage:
    """Return the error for a package that has no HOT template."""
    message = "is missing at the top of the package, which needs this Heat template"
    return InvalidPackage([Problem(Rule.TEMPLATE_MISSING, TEMPLATE_FILE, message)])
