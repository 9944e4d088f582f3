# SPDX-License-Identifier: Apache-2.0

"""Let a class inherit two versions of one class, and keep the members of both.

A class can inherit both versions through different packages. They count as unrelated classes if no
version can replace the other (specification "Murano versioning", section "Side by side versioning
of packages"). ``inherited_versions`` replaces versions where this is possible.

An object in Murano has a *part* for each ancestor of its class. The part has the ancestor's private
properties, which the ancestor's code sets and no class declares. A cast of the object to the
ancestor returns the part.

A member is *ambiguous* if several ancestors declare it, and none of them overrides the others. Then
one class decides which member the code uses: the class to which the object was cast; or else the
class of the code, if the object is an instance of it; or else the object's own class. The code can
use the members of the deciding class, and members that override a member of that class. If exactly
one ambiguous member remains, it is used. If several remain, an error is raised.
"""

import functools
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from murano.dsl import dsl, dsl_types, exceptions, helpers, murano_object, murano_type
from murano.dsl.contracts import instances
from yaql.language import specs

from loader.engine.contract_schemas import is_json

_USAGES = dsl_types.PropertyUsages

# The usages of properties that are not in the model, and that each object has for itself.
_SEPARATE = (_USAGES.Config, _USAGES.Runtime)
_AMBIGUOUS = (exceptions.AmbiguousMethodName, exceptions.AmbiguousPropertyNameError)


def keep_parts() -> None:
    """Give an object a part for each version of a class that the object's class inherits.

    A part holds the private properties of one ancestor. Murano 16 finds the parts of an object by
    the names of the ancestors. So the second version of a class has no part: its properties are
    missing from the model, and its methods fail with "Cannot cast". Here, the ancestors themselves
    are the keys of the parts. Two ancestors are equal if their names and versions are equal.
    """
    cls = murano_object.MuranoObject
    initialize = cls.__init__

    def make(
        obj: Any,
        murano_class: Any,
        owner: Any,
        object_id: str | None = None,
        name: str | None = None,
        known_classes: dict[Any, Any] | None = None,
        this: Any = None,
        metadata: Any = None,
    ) -> None:
        # Murano makes a part without parents; the parents are added below.
        alone = types.SimpleNamespace(
            name=murano_class.name, package=murano_class.package, parents=()
        )
        initialize(obj, alone, owner, object_id, name, {}, this, metadata)
        obj._type = murano_class
        parts = {} if known_classes is None else known_classes
        parts[murano_class] = obj
        for parent in murano_class.parents:
            if parent not in parts:
                cls(parent, owner, obj.object_id, known_classes=parts, this=obj.real_this)
            obj._parents[parent] = parts[parent]

    cls.__init__ = make


def keep_properties() -> None:
    """Load, read and assign properties that several versions of an inherited class declare.

    Murano 16 refuses to load an object with such a property. Here, the object has a value of the
    property for each version.

    When an object is loaded, the contract of each version converts the value in the model. If the
    model has no value, each version gets its own default. An assignment changes the values of all
    versions. When an object is saved, a value of JSON types is saved unchanged. If a contract makes
    objects of a value, the result of the newest version's contract is saved.

    ``Runtime``, ``Config`` and ``Static`` properties are not in the model. An assignment to such a
    property changes it for one version only.
    """
    cls = murano_object.MuranoObject
    get_property, set_property, initialize = cls.get_property, cls.set_property, cls.initialize

    def get(obj: Any, name: str, context: Any = None) -> Any:
        found = _ambiguous_property(obj, name, context)
        if found is None:
            return get_property(obj, name, context)
        if found.usage == _USAGES.Static:
            return obj.executor.get_static_property(found.declaring_type, name, context)
        return obj.real_this.cast(found.declaring_type)._get_property_value(name)

    def assign(obj: Any, name: str, value: Any, context: Any = None, dry_run: bool = False) -> None:
        found = _ambiguous_property(obj, name, context)
        if found is None:
            set_property(obj, name, value, context, dry_run)
            return
        declared = _assigned_with(found, obj.real_this.type)
        _check_access(obj.real_this, declared, context)
        if context is None:
            context = obj.executor.create_object_context(obj)
        if found.usage == _USAGES.Static:
            obj.executor.set_static_property(found.declaring_type, name, value, context, dry_run)
        else:
            _assign(obj.real_this, declared, value, context, dry_run)

    def initialize_part(
        part: Any, context: Any, params: Any, used_names: set[str] | None = None
    ) -> Iterator[Any]:
        # Murano initializes a name once, in the first part that has it.
        own = _own_names(part)
        used = set() if used_names is None else used_names
        used -= own
        yield from initialize(part, context, params, used)
        used -= own

    cls.get_property, cls.set_property, cls.initialize = get, assign, initialize_part


def choose_methods() -> None:
    """Choose between methods with the same name from several ancestors, when one is called.

    In Murano 16, any call of such a method fails, with "No active exception to reraise". Here, a
    class decides: the class to which the object was cast; or else the class of the calling code, if
    the object is an instance of it; or else the object's own class. If this class has only one of
    the methods, this method is called, or the method that overrides it. If it has several, the
    error names them.
    """

    def stub(murano_class: Any, name: str, receiver_type: Any) -> Any:
        def call(__context: Any, __receiver: Any, *args: Any, **kwargs: Any) -> Any:
            method = _visible(murano_class, "find_method", name, _view(__receiver, __context))
            method = method or murano_class.find_single_method(name)
            return method.invoke(__receiver, args, kwargs, __context)

        for describe in (
            specs.parameter("__receiver", receiver_type),
            specs.name(name),
            specs.method,
        ):
            describe(call)
        return specs.get_function_definition(call)

    def unique_methods(murano_class: Any) -> Iterator[Any]:
        for name in murano_class.all_method_names:
            found = murano_class.find_method(name)
            if len(found) == 1:
                yield found[0]
                continue
            of_object = dsl.MuranoObjectParameter(murano_class, decorate=False)
            of_class = dsl.MuranoTypeParameter(murano_class, resolve_strings=False)
            yield types.SimpleNamespace(
                usage=dsl_types.MethodUsages.Runtime,
                instance_stub=stub(murano_class, name, of_object),
                static_stub=stub(murano_class, name, of_class),
            )

    murano_type.MuranoClass._iterate_unique_methods = unique_methods


def describe_ambiguous_members() -> None:
    """Name the declaring classes and their versions in the error about an ambiguous member.

    A member is ambiguous if several ancestors of a class declare it. Murano 16 names only the
    member, so an author cannot know which classes declare it.
    """

    def described(find_single: Callable[..., Any], find_all: str) -> Any:
        @functools.wraps(find_single)
        def find(murano_class: Any, name: str) -> Any:
            try:
                return find_single(murano_class, name)
            except _AMBIGUOUS as error:
                declaring = [each.declaring_type for each in getattr(murano_class, find_all)(name)]
                error.args = (_message(error, murano_class, declaring),)
                raise

        return find

    cls = murano_type.MuranoClass
    cls.find_single_method = described(cls.find_single_method, "find_method")
    cls.find_single_property = described(cls.find_single_property, "find_property")
    cls.find_static_property = described(cls.find_static_property, "find_property")


def describe_ambiguous_classes() -> None:
    """Name the versions in the error for an object that has several versions of a class.

    If code casts such an object to the class, Murano 16 names only the class. If a contract refuses
    the object, Murano reports only that the object is not compatible. Here, both errors name the
    versions, and the packages that require them.
    """
    cast = helpers.cast

    def cast_described(obj: Any, murano_class: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return cast(obj, murano_class, *args, **kwargs)
        except exceptions.AmbiguousClassName as error:
            if isinstance(obj.type, murano_type.MuranoClass):
                wanted = getattr(murano_class, "type", murano_class)
                name = getattr(wanted, "name", wanted)
                found = [each for each in (obj.type, *obj.type.ancestors()) if each.name == name]
                error.args = (_message(error, obj.type, found),)
            raise

    def validated(validate: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def call(contract: Any) -> Any:
            try:
                return validate(contract)
            except exceptions.ContractViolationException:
                _check_ambiguity(contract)
                raise

        return call

    helpers.cast = cast_described
    for kind in (instances.Class, instances.Template):
        kind.validate = validated(kind.validate)


def _view(receiver: Any, context: Any) -> Any:
    """Return the class that decides which members of an object or a class the calling code can use.

    This is the class of the calling code, if the receiver is an instance of it and was not cast.
    Otherwise, it is the receiver's own class, or the class to which the receiver was cast.

    :param receiver: the object, a part of the object, or the class.
    :param context: the YAQL context of the calling code.
    """
    caller = None if context is None else helpers.get_type(context)
    is_cast = receiver is not getattr(receiver, "real_this", receiver)
    is_seen_from_inside = caller is not None and caller.is_compatible(receiver)
    return caller if is_seen_from_inside and not is_cast else receiver.type


def _visible(murano_class: Any, find: str, name: str, view: Any) -> Any:
    """Return the member that code uses under a name that several ancestors declare.

    Code can use the members that the class ``view`` has, and members that override one of these.

    :param murano_class: the class of the object.
    :param find: the method of Murano's classes to call: ``find_method`` or ``find_property``.
    :param name: the name of the member.
    :param view: the class whose members the code can use, see ``_view``.
    :returns: None if the code can use no member with this name, or several.
    """
    seen = {member.declaring_type for member in getattr(view, find)(name)}
    # Murano may have copied an ancestor for this hierarchy, and replaced parents of the copy. The
    # copy is found by the original class, since the two are equal.
    hierarchy = {each: each for each in (murano_class, *murano_class.ancestors())}
    found = [
        member
        for member in getattr(murano_class, find)(name)
        if member.declaring_type in seen
        or not seen.isdisjoint(hierarchy[member.declaring_type].ancestors())
    ]
    return found[0] if len(found) == 1 else None


def _ambiguous_property(obj: Any, name: str, context: Any) -> Any:
    """Return the property that code uses under a name that several ancestors declare.

    :param context: the YAQL context of the code.
    :returns: None if fewer than two properties have the name. None also if the class that the code
        uses has no property with the name: then the code uses a private property.
    :raises AmbiguousPropertyNameError: if the code can use several properties with the name.
    """
    real_type = obj.real_this.type
    if len(real_type.find_property(name)) < 2:
        return None
    view = _view(obj, context)
    if not view.find_property(name):
        # The name is that of a private property.
        return None
    return _visible(real_type, "find_property", name, view) or real_type.find_single_property(name)


def _assigned_with(found: Any, real_type: Any) -> list[Any]:
    """Return the properties that an assignment to one property changes, the newest version first.

    These are the properties with the same name in all versions. ``Config``, ``Runtime`` and
    ``Static`` properties are separate in each version: an assignment to one of them changes only
    this one.

    :param found: the property that is assigned.
    :param real_type: the class of the object.
    """
    separate = (*_SEPARATE, _USAGES.Static)
    if found.usage in separate:
        return [found]
    shared = [each for each in real_type.find_property(found.name) if each.usage not in separate]
    return sorted(shared, key=lambda each: each.declaring_type.version, reverse=True)


def _check_access(real: Any, declared: Sequence[Any], context: Any) -> None:
    """Check that code may assign the properties, by Murano's rules.

    :raises NoWriteAccessError: if the code may not assign them.
    """
    caller = None if context is None else helpers.get_type(context)
    if caller is None or helpers.are_property_modifications_allowed(context):
        return
    for each in declared:
        if each.usage not in _USAGES.Writable or not caller.is_compatible(real):
            raise exceptions.NoWriteAccessError(each.name)


def _assign(real: Any, declared: Sequence[Any], value: Any, context: Any, dry_run: bool) -> None:
    """Convert a value by the contract of each property, and set the results.

    Each result is set in the part of the object for the version that declares the property. A
    contract may make an object of the value. Then the other contracts take this object, so that
    there is only one object.

    :param real: the object.
    :param declared: the properties with one name in several versions, the newest version first.
    :param value: the value; ``NO_VALUE`` means the default of each property.
    :param dry_run: whether the contracts only check the value, and nothing is set.
    """
    name = declared[0].name
    given = value
    parts = [real.cast(each.declaring_type) for each in declared]
    defaults = [
        part._config.get(name, each.default) for part, each in zip(parts, declared, strict=True)
    ]
    is_shared = value is not dsl.NO_VALUE or all(each == defaults[0] for each in defaults)
    taken = []
    for each, part, default in zip(declared, parts, defaults, strict=True):
        converted = each.transform(value, real, real, context, default, finalize=False)
        for ancestor in part.type.ancestors():
            if name in ancestor.properties:
                ancestor.properties[name].validate(converted, real, context, default)
        taken.append(each.finalize(converted, real, context))
        if is_shared and not is_json(converted):
            value = converted
    if dry_run:
        return
    for part, converted in zip(parts, taken, strict=True):
        part._properties[name] = converted
    if is_shared and declared[0].usage not in _SEPARATE:
        # Murano saves the values of the object itself. The contract of one version may drop keys
        # that the contract of another version needs, so the given value is saved if it is JSON.
        real._properties[name] = given if all(map(is_json, (given, *taken))) else taken[0]


def _own_names(part: Any) -> set[str]:
    """Return the names that must be initialized again in a part of an object.

    Murano initializes a name only in the first part that has it. If an object has parts for several
    versions of a class, each of these parts initializes two kinds of names itself: properties that
    are not in the model, and arguments of the initializer.

    :returns: an empty set if the object has only one version of the part's class.
    """
    ancestors = part.real_this.type.ancestors()
    if not any(each.name == part.type.name and each != part.type for each in ancestors):
        return set()
    initializer = part.type.methods.get(".init")
    names = set(initializer.arguments_scheme) if initializer else set()
    return names | {n for n, each in part.type.properties.items() if each.usage in _SEPARATE}


def _check_ambiguity(contract: Any) -> None:
    """Check that an object has only one version of the class that a contract requires.

    :param contract: the contract with its value; a value that is not an object is not checked.
    :raises ContractViolationException: if the object has several; the message names them.
    """
    if not isinstance(contract.value, dsl_types.MuranoObject):
        return
    scope = contract.version_spec or helpers.get_names_scope(contract.root_context)
    try:
        helpers.cast(contract.value, contract.type.name, scope)
    except exceptions.AmbiguousClassName as error:
        raise exceptions.ContractViolationException(str(error)) from error
    except exceptions.NoClassFound:
        return


def _message(error: Exception, murano_class: Any, ancestors: Sequence[Any]) -> str:
    origins = "; ".join(_origin(murano_class, each) for each in ancestors)
    return (
        f"{error} in {murano_class.name}: {origins}; cast the object to a class that has only one "
        f"of them, as by cast($, '{ancestors[0].name}', '{ancestors[0].version}')"
    )


def _origin(murano_class: Any, ancestor: Any) -> str:
    """Describe an ancestor of a class: its package and version, and who requires this package."""
    package = ancestor.package
    requirers = {
        f"{child.package.name} {child.package.version}"
        for child in (murano_class, *murano_class.ancestors())
        if child.package is not package and any(p.package is package for p in child.parents)
    }
    by = f", required by {', '.join(sorted(requirers))}" if requirers else ""
    return f"{ancestor.name} of {package.name} {package.version}{by}"
