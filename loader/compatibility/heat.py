# SPDX-License-Identifier: Apache-2.0

"""Read the class that is generated for a Heat template, as users of the package see it.

The class has one property for all parameters, and one for all outputs. To compare them one by one,
this module returns a property ``templateParameters.NAME`` for each parameter, and a property
``templateOutputs.NAME`` for each output. Their places are lines of the template.
"""

import dataclasses
import types
from collections.abc import Iterator

import yaml

from glare_murano.package import Archive, Manifest, safe_yaml
from glare_murano.package.classes import read_sources
from glare_murano.package.hot import class_code, yaql_dumper
from glare_murano.package.hot.description import template_missing
from glare_murano.package.hot.template import TEMPLATE_FILE, Template
from glare_murano.package.safe_yaml import MAX_SIZE
from loader.compatibility.changes import Place
from loader.compatibility.class_files import read_class
from loader.compatibility.declarations import Class, Declaration
from loader.compatibility.nodes import entries, values

_ENVIRONMENTS = f"Resources/{class_code.ENVIRONMENTS}/"
# The property of the class -> the section of the template.
_SECTIONS = {"templateParameters": "parameters", "templateOutputs": "outputs"}


def read_heat(archive: Archive, manifest: Manifest, is_old: bool) -> Iterator[Class]:
    """Yield the only class of a Heat package, which is generated from the package's template.

    :raises InvalidPackage: if the template is missing or not valid.
    """
    if TEMPLATE_FILE not in archive.paths:
        raise template_missing()
    data = archive.read(TEMPLATE_FILE, MAX_SIZE)
    template = Template.parse(data)
    has_environments = any(path.startswith(_ENVIRONMENTS) for path in archive.paths)
    code = class_code.make_class(manifest.fqn, template, (), has_environments)
    nodes, _ = safe_yaml.compose_all(yaql_dumper.dump(code).encode(), TEMPLATE_FILE)
    sources, _ = read_sources(nodes, TEMPLATE_FILE, [manifest.fqn])
    made = read_class(sources[0], TEMPLATE_FILE, is_old)
    root = safe_yaml.compose(data, TEMPLATE_FILE)
    found = {name: each for name, each in made.properties.items() if name not in _SECTIONS}
    for name, section in _SECTIONS.items():
        for each in _parts(made.properties[name], values(root).get(section), is_old):
            found[each.name] = each
    yield dataclasses.replace(
        made,
        properties=types.MappingProxyType(found),
        place=Place(TEMPLATE_FILE, safe_yaml.line_of(root), is_old),
    )


def _parts(whole: Declaration, section: yaml.Node | None, is_old: bool) -> Iterator[Declaration]:
    """Yield a property for each entry in a section of a Heat template.

    :param whole: the property of the generated class that stands for the whole section.
    :param section: the parameters or the outputs of the template; None if it has none.
    """
    # An output has no contract, since it can have any value.
    generated = values(whole.contract) if whole.usage == "In" else {}
    for name, (key, node) in entries(section).items():
        contract, default = generated.get(name), values(node).get("default")
        if contract is not None and "default" not in values(node):
            # The class allows users to omit the value, but Heat then refuses to create the stack.
            contract = yaml.ScalarNode(safe_yaml.YAQL, f"{contract.value}.notNull()")
        yield dataclasses.replace(
            whole,
            name=f"{whole.name}.{name}",
            contract=contract,
            default=default,
            place=Place(TEMPLATE_FILE, safe_yaml.line_of(key), is_old),
        )
