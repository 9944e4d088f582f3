# SPDX-License-Identifier: Apache-2.0

"""Generate the schemas of classes and methods as the specification "MuranoPL forms" describes.

Murano's own tests check the schemas that Murano 16 generates for the packages in these tests. So
the functions that change whole schemas do not change the schemas for these packages. They change
the schemas for packages from catalogues, directories and extension plug-ins.
"""

import functools
from collections.abc import Sequence
from typing import Any

from murano.dsl import constants, dsl_types, exceptions, executor, helpers, schema_generator
from murano.dsl.contracts import instances
from murano.engine import murano_package

from glare_murano.package import VersionSpec
from loader.engine import adapter, contract_schemas

# This variable in a request's context contains the function that lists the subclasses of a class.
_SUBCLASSES = "$?subclasses"

_MODEL_BUILDER = "io.murano.metadata.ModelBuilder"

_USAGES = dsl_types.PropertyUsages
_INPUTS = (_USAGES.In, _USAGES.InOut, _USAGES.Const)


def describe_requested_methods() -> None:
    """Generate the schemas of actions if they are requested, and refuse unknown methods.

    The specification "MuranoPL forms", section "Schema generation": "methods can be any methods
    that can be invoked by the API which currently are actions and model builder methods". By its
    section "REST API impact", an empty string stands for the class, and a missing method is an
    error. Murano 16 leaves out all methods except model builders. Here, every requested action gets
    a schema, and a request for another method fails.

    If a request has the parameter ``subclasses``, a schema also lists the subclasses of the classes
    in it; see ``describe_objects``.
    """
    generate_schema = schema_generator.generate_schema

    def generate(
        loader: Any,
        context_manager: Any,
        class_name: str,
        method_names: str | Sequence[str] | None = None,
        class_version: str | None = None,
        package_name: str | None = None,
        subclasses: bool = False,
    ) -> dict[str, Any]:
        if subclasses and not isinstance(loader, adapter.EnginePackageLoader):
            raise ValueError(
                "subclasses can be listed only of packages from the catalogues of glare-murano; "
                "set [engine] package_loader = catalogs, or request the schemas without subclasses"
            )
        spec = helpers.parse_version_spec(class_version)
        if package_name:
            package = loader.load_package(package_name, spec)
        else:
            package = loader.load_class_package(class_name, spec)
        names = [method_names] if isinstance(method_names, str) else list(method_names or ())
        if not _is_installed(package):
            found: dict[str, Any] = generate_schema(
                loader, context_manager, class_name, names, class_version, package_name
            )
            return found
        described = package.find_class(class_name, search_requirements=False)
        running = executor.MuranoDslExecutor(loader, context_manager)
        with helpers.with_object_store(running.object_store):
            context = running.create_object_context(described)
            if subclasses:
                context[_SUBCLASSES] = functools.cache(loader.list_subclasses)
            for name in filter(None, names):
                if not described.find_single_method(name).is_action:
                    raise exceptions.NoMethodFound(name)
            return {
                name: schema_generator.generate_entity_schema(
                    schema_generator.get_entity(described, name),
                    context,
                    described,
                    schema_generator.get_meta(described, name, context),
                )
                for name in names or schema_generator.list_model_builders(described, context)
            }

    schema_generator.generate_schema = generate


def include_constants() -> None:
    """Add ``Const`` properties to the schemas of classes; remove ``VarArgs`` from those of methods.

    The schema of a class describes its properties, and the schema of a method describes its
    arguments (specification "MuranoPL forms", section "Solution overview"). A user sets a ``Const``
    property once, like an ``In`` property (MuranoPL reference, section "Property usage"), but
    Murano 16 leaves it out. Murano 16 includes ``VarArgs``, which a request cannot give by name.
    Here, a schema has exactly the properties and arguments that a user can set.
    """
    get_properties = schema_generator.get_properties

    def get(entity: Any) -> dict[str, Any]:
        if not _is_installed(_declaring_type(entity).package):
            found: dict[str, Any] = get_properties(entity)
            return found
        if not isinstance(entity, dsl_types.MuranoType):
            scheme = (entity.arguments_scheme or {}).items()
            usage = dsl_types.MethodArgumentUsages.Standard
            return {name: argument for name, argument in scheme if argument.usage == usage}
        names = dict.fromkeys(
            name for cls in (entity, *entity.ancestors()) for name in cls.properties
        )
        properties = {name: _inputs(entity, name) for name in names}
        return {name: found[0] for name, found in properties.items() if found}

    schema_generator.get_properties = get


def translate_contracts() -> None:
    """Translate the whole contract of a property into its schema.

    A default that is an expression is left out of the schema.

    In the specification "MuranoPL forms", section "Schema generation", the contract is run in a
    context of its own, and ``Default`` becomes ``default``. Murano 16

    * drops the bounds of arrays;
    * writes null instead of the schema of a constant, as in ``{A: StringMap}``;
    * translates ``{ }`` into a dictionary without keys;
    * sends ``Default: $.num`` as a string;
    * resolves the names in an inherited contract in the namespaces of the subclass.

    Here, ``contract_schemas`` translates the contract, with the names of the declaring class.
    """
    generate_property = schema_generator.generate_property_schema

    def generate(prop: Any, context: Any, type_weights: Any) -> dict[str, Any]:
        declaring_type = _declaring_type(prop)
        if not _is_installed(declaring_type.package):
            found: dict[str, Any] = generate_property(prop, context, type_weights)
            return found
        schema = _contract_schema(prop, context)
        if prop.has_default and contract_schemas.is_json(prop.default):
            schema["default"] = prop.default
        hints: dict[str, Any] = schema_generator.generate_ui_hints(prop, context, type_weights)
        return schema | hints

    schema_generator.generate_property_schema = generate


def name_titles() -> None:
    """Use the name of a property or an argument as its title, if ``Title`` is missing.

    The specification "MuranoPL forms", section "UI hints", describes this for
    ``io.murano.metadata.Title``. Murano 16 leaves the title out.
    """
    generate_ui_hints = schema_generator.generate_ui_hints

    def generate(entity: Any, context: Any, type_weights: Any) -> dict[str, Any]:
        hints: dict[str, Any] = generate_ui_hints(entity, context, type_weights)
        is_input = isinstance(entity, dsl_types.MuranoProperty | dsl_types.MuranoMethodArgument)
        if is_input and _is_installed(_declaring_type(entity).package):
            hints.setdefault("title", entity.name)
        return hints

    schema_generator.generate_ui_hints = generate


def describe_entities() -> None:
    """Leave out the first parameter of a model builder, and list the required properties.

    The specification "MuranoPL forms", section "Model builders": "their first parameter (which is
    current object model) is skipped". Murano 16 includes this parameter. Its schemas also lack the
    keyword ``required``. Here, the parameter is left out, and ``required`` lists the properties
    whose contracts refuse a missing value.

    If a class inherits a property from several classes, Murano 16 returns no schema. Here, a value
    has to satisfy the contracts of all these classes, as when an object is loaded.
    """
    generate_entity_schema = schema_generator.generate_entity_schema

    def generate(entity: Any, context: Any, declaring_type: Any, meta: Any) -> dict[str, Any]:
        schema: dict[str, Any] = generate_entity_schema(entity, context, declaring_type, meta)
        if not _is_installed(declaring_type.package):
            return schema
        properties = schema["properties"]
        builder = meta.get(_MODEL_BUILDER)
        if builder and builder.get_property("enabled") and entity.is_static and properties:
            del properties[next(iter(properties))]
        required = []
        for name, translated in properties.items():
            inputs = _inputs(entity, name)
            schemas = [_contract_schema(each, context) for each in inputs]
            if any(map(_refuses_missing, inputs, schemas)):
                required.append(name)
            if others := [each for each in schemas if each != schemas[0]]:
                translated.setdefault("allOf", []).extend(others)
            if any(each.default != inputs[0].default for each in inputs):
                translated.pop("default", None)
        return schema | ({"required": sorted(required)} if required else {})

    schema_generator.generate_entity_schema = generate


def describe_objects() -> None:
    """Add the range of versions and the subclasses of a class to the schema for its objects.

    The specification "MuranoPL forms", section "Schema generation": ``version`` of ``muranoObject``
    is the "version or version-spec that should be used to obtain muranoType (as seen in the
    manifest)", and a client must know "how to get list of valid type inheritors". By its section
    "Deployer impact", the number of inheritors has a maximum. Murano 16 returns neither the range
    nor the subclasses. Here, the schema has the range. It has the subclasses only if the request
    has the parameter ``subclasses``, since the catalogues are queried for each class.
    """
    for kind in (instances.Class, instances.Template):
        kind.generate_schema = _describing(kind.generate_schema)


def _describing(generate_schema: Any) -> Any:
    def generate(contract: Any) -> dict[str, Any]:
        schema: dict[str, Any] = generate_schema(contract)
        package = contract.type.package.name
        version = contract.version_spec or _required_range(
            helpers.get_names_scope(contract.root_context).package, package
        )
        if version is not None:
            schema["version"] = VersionSpec.of(version).text
        if list_subclasses := contract.root_context[_SUBCLASSES]:
            found = list_subclasses(contract.type.name, version or "*", package)
            schema["subclasses"] = [subclass.to_json() for subclass in found.found]
            schema["subclassesTruncated"] = found.is_truncated
        return schema

    return generate


def _required_range(package: Any, name: str) -> str | None:
    """Return the range in a package's manifest for a required package; None if it is not required.

    :param name: the FQN of the required package.
    """
    written = getattr(package, "application_package", package).requirements
    spec = written.get(name, package.requirements.get(name))
    return None if spec is None else str(getattr(spec, "text", spec))


def _inputs(entity: Any, name: str) -> list[Any]:
    """Return the argument of a method, or the properties of a class, with a name.

    From the properties, only those that a user can set are returned. A class may inherit several
    properties with the same name, from unrelated classes. The property of the newest version comes
    first.

    :param entity: the method or the class.
    """
    if not isinstance(entity, dsl_types.MuranoType):
        return [entity.arguments_scheme[name]]
    found = [each for each in entity.find_property(name) if each.usage in _INPUTS]
    return sorted(found, key=lambda each: each.declaring_type.version, reverse=True)


def _contract_schema(prop: Any, context: Any) -> dict[str, Any]:
    """Translate the contract of a property or an argument.

    The names in the contract are resolved as in the class that declares the property or argument.
    """
    declaring_type = _declaring_type(prop)
    scope = context.create_child_context()
    scope[constants.CTX_NAMES_SCOPE] = declaring_type
    return contract_schemas.translate(
        prop.contract.spec, scope, declaring_type.package.runtime_version
    )


def _refuses_missing(prop: Any, schema: dict[str, Any]) -> bool:
    has_value = prop.default is not None
    return not has_value and not contract_schemas.accepts_missing(prop.contract.spec, schema)


def _declaring_type(entity: Any) -> Any:
    """Return the class that declares a property, a method or an argument.

    :param entity: the property, method or argument; a class is returned unchanged.
    """
    if isinstance(entity, dsl_types.MuranoType):
        return entity
    return getattr(entity, "murano_method", entity).declaring_type


def _is_installed(package: Any) -> bool:
    return isinstance(package, murano_package.MuranoPackage | adapter.EngineExtension)
