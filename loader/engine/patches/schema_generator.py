# SPDX-License-Identifier: Apache-2.0

"""Generate the schemas of classes and methods as the specification "MuranoPL forms" describes.

Murano's own tests expect what Murano 16 generates. So the functions for whole schemas apply to
packages from catalogues, directories and extensions, and not to the packages of those tests.
"""

from collections.abc import Sequence
from typing import Any

from murano.dsl import constants, dsl_types, exceptions, executor, helpers, schema_generator
from murano.dsl.contracts import instances
from murano.engine import murano_package

from loader.engine import adapter, contract_schemas

_MODEL_BUILDER = "io.murano.metadata.ModelBuilder"


def describe_requested_methods() -> None:
    """Generate the schemas of actions if they are requested, and refuse unknown methods.

    The specification "MuranoPL forms", section "Schema generation": "methods can be any
    methods that can be invoked by the API which currently are actions and model builder
    methods". Section "REST API impact": an empty string is the class, and what does not exist
    is an error. Murano 16 leaves out all but model builders.
    """
    generate_schema = schema_generator.generate_schema

    def generate(
        loader: Any,
        context_manager: Any,
        class_name: str,
        method_names: str | Sequence[str] | None = None,
        class_version: str | None = None,
        package_name: str | None = None,
    ) -> dict[str, Any]:
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
    """Take ``Const`` properties into the schema of a class, and named arguments of a method.

    The MuranoPL reference, section "Property usage": a user sets ``Const`` as ``In``, once.
    Murano 16 leaves them out; and it has an argument for each of ``VarArgs``, which cannot be
    given by name.
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
        usages = dsl_types.PropertyUsages
        names = dict.fromkeys(
            name for cls in (entity, *entity.ancestors()) for name in cls.properties
        )
        properties = {name: entity.find_single_property(name) for name in names}
        return {
            name: prop
            for name, prop in properties.items()
            if prop.usage in (usages.In, usages.InOut, usages.Const)
        }

    schema_generator.get_properties = get


def translate_contracts() -> None:
    """Translate the whole contract of a property, and only defaults that are values.

    The specification "MuranoPL forms", section "Schema generation": the contract is run in a
    context of its own, and ``Default`` becomes ``default``. Murano 16 drops the bounds of
    arrays, has null in place of the schema of a constant, such as in ``{A: StringMap}``, has a
    dictionary without keys for ``{ }``, sends ``Default: $.num`` as a string, and resolves
    the names in an inherited contract in the namespaces of the subclass.
    """
    generate_property = schema_generator.generate_property_schema

    def generate(prop: Any, context: Any, type_weights: Any) -> dict[str, Any]:
        declaring_type = _declaring_type(prop)
        if not _is_installed(declaring_type.package):
            found: dict[str, Any] = generate_property(prop, context, type_weights)
            return found
        scope = context.create_child_context()
        scope[constants.CTX_NAMES_SCOPE] = declaring_type
        version = declaring_type.package.runtime_version
        schema = contract_schemas.translate(prop.contract.spec, scope, version)
        if prop.has_default and contract_schemas.is_json(prop.default):
            schema["default"] = prop.default
        hints: dict[str, Any] = schema_generator.generate_ui_hints(prop, context, type_weights)
        return schema | hints

    schema_generator.generate_property_schema = generate


def name_titles() -> None:
    """Take the name of a property or an argument as its title, if it has no ``Title``.

    The specification "MuranoPL forms", section "UI hints", ``io.murano.metadata.Title``.
    Murano 16 has no title then.
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
    """Leave out the model of a model builder, and name the required properties.

    The specification "MuranoPL forms", section "Model builders": "their first parameter (which
    is current object model) is skipped". Murano 16 has it. ``required`` is the part of the
    contracts that refuse null; Murano 16 has none.
    """
    generate_entity_schema = schema_generator.generate_entity_schema

    def generate(entity: Any, context: Any, declaring_type: Any, meta: Any) -> dict[str, Any]:
        schema: dict[str, Any] = generate_entity_schema(entity, context, declaring_type, meta)
        if not _is_installed(declaring_type.package):
            return schema
        inputs, properties = schema_generator.get_properties(entity), schema["properties"]
        builder = meta.get(_MODEL_BUILDER)
        if builder and builder.get_property("enabled") and properties:
            del properties[next(iter(properties))]
        required = [
            name
            for name, translated in properties.items()
            if not inputs[name].has_default
            and not contract_schemas.accepts_missing(inputs[name].contract.spec, translated)
        ]
        return schema | ({"required": sorted(required)} if required else {})

    schema_generator.generate_entity_schema = generate


def name_versions_of_objects() -> None:
    """Name the range of versions of an object's class in its schema.

    The specification "MuranoPL forms", section "Schema generation": ``version`` of
    ``muranoObject`` is the "version or version-spec that should be used to obtain muranoType
    (as seen in the manifest)". Murano 16 has none.
    """
    for kind in (instances.Class, instances.Template):
        kind.generate_schema = _with_version(kind.generate_schema)


def _with_version(generate_schema: Any) -> Any:
    def generate(contract: Any) -> dict[str, Any]:
        schema: dict[str, Any] = generate_schema(contract)
        version = contract.version_spec or _required_range(
            helpers.get_names_scope(contract.root_context).package, contract.type.package.name
        )
        return schema if version is None else schema | {"version": version}

    return generate


def _required_range(package: Any, name: str) -> str | None:
    """Return the range of a requirement, as in the manifest; None if it is not required."""
    written = getattr(package, "application_package", package).requirements
    spec = written.get(name, package.requirements.get(name))
    return None if spec is None else str(getattr(spec, "text", spec))


def _declaring_type(entity: Any) -> Any:
    """Return the class that declares a property, a method or an argument; of a class, itself."""
    if isinstance(entity, dsl_types.MuranoType):
        return entity
    return getattr(entity, "murano_method", entity).declaring_type


def _is_installed(package: Any) -> bool:
    return isinstance(package, murano_package.MuranoPackage | adapter.EngineExtension)
