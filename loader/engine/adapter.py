# SPDX-License-Identifier: Apache-2.0

"""Adapt this project's package loader and packages to the interfaces of Murano 16."""

import functools
import logging
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Protocol, Self

from keystoneauth1 import session as ksa_session
from murano.common import config as murano_config
from murano.dsl import constants, exceptions
from murano.dsl import murano_package as dsl_package
from murano.dsl import package_loader as dsl_package_loader
from murano.engine import murano_package
from murano.engine.system import system_objects

from glare_murano.package import Version, VersionSpec
from glare_murano.package.manifest import check_fqn
from glare_murano.resolver import PackageVersion
from glare_murano.wire import Release
from loader import config, errors
from loader.counters import Counters
from loader.engine import (
    class_configs,
    class_cycles,
    credentials,
    error_places,
    parsed_classes,
)
from loader.engine.extensions import ExtensionPackage, load_extensions
from loader.environments import pin_moves
from loader.environments.object_model import canonical_range, object_headers, root_header
from loader.formats.base import Package
from loader.loader import PackageLoader
from loader.subclass_search import Subclasses
from loader.transport.sessions import Scope

LOG = logging.getLogger(__name__)
CONF = murano_config.CONF

# The costs of all finished tasks of this process, added up.
totals = Counters()


class MuranoPackage(Protocol):
    """The attributes of Murano's package objects that this module uses."""

    name: str
    version: Version
    classes: Collection[str]
    requirements: Mapping[str, object]

    def find_class(self, name: str, search_requirements: bool = True) -> Any:
        """Find a class of the package, or of the packages that it requires.

        :param search_requirements: whether to search the required packages as well.
        """


class EnginePackageLoader(dsl_package_loader.MuranoPackageLoader):  # type: ignore[misc]
    """Loads packages for the engine, with the interface of Murano's loaders.

    The engine passes each range of versions as a ``semantic_version.Spec``.

    :ivar warn: the function that is called with each warning for the environment's owner.
    :ivar session: the session of the task, if ``for_task`` has made it.
    """

    session: ksa_session.Session | None = None

    def __init__(self, loader: PackageLoader) -> None:
        """Make a loader with Murano's interface.

        :param loader: this project's loader, which finds the packages; ``cleanup`` closes it.
        """
        self._loader = loader
        self._packages: dict[tuple[str, Version], EnginePackage] = {}
        self._registered: list[MuranoPackage] = []
        self._imported: Mapping[str, Iterable[str]] = {}
        self.warn: Callable[[str], None] = LOG.warning

    @property
    def loader(self) -> PackageLoader:
        """The loader of this project, which finds the packages."""
        return self._loader

    @classmethod
    def for_task(cls, execution_session: credentials.ExecutionSession) -> Self:
        """Make a loader for a task of the engine; no request is sent to a catalogue.

        :param execution_session: the credentials of the task.
        :raises LoaderError: if the configuration or the cache directory cannot be used.
        """
        session = credentials.task_session(execution_session)
        made = cls(package_loader(session, execution_session.project_id))
        made.session = session
        return made

    def load_package(self, package_name: str, version_spec: object) -> MuranoPackage:
        """Load the package of an object in a model.

        If no catalogue has the version in the object's header, a version that is close to it may be
        loaded, see ``PackageLoader.load_object_package``.

        :param package_name: the FQN in the object's header.
        :param version_spec: the range in the object's header.
        :raises NoPackageFound: if no version can be loaded.
        """
        spec = canonical_range(version_spec)
        load = functools.partial(self._loader.load_object_package, package_name, spec)
        return self._select_or_load(package_name, spec, load)

    def load_requirement(
        self, requirer: PackageVersion, package_name: str, version_spec: object
    ) -> MuranoPackage:
        """Load a package that a loaded package, or an extension plug-in, requires.

        :param requirer: the package or the plug-in that has the requirement.
        :param version_spec: the required range.
        :raises NoPackageFound: if no version is in the range.
        """
        spec = canonical_range(version_spec)
        load = functools.partial(self._loader.load_requirement, requirer, package_name)
        return self._select_or_load(package_name, spec, load)

    def load_class_package(self, class_name: str, version_spec: object) -> MuranoPackage:
        """Load the package that defines a class.

        :param version_spec: the range that has to contain the version of the package.
        :raises NoPackageForClassFound: if no package in the range defines the class.
        """
        spec = canonical_range(version_spec)
        registered = self._select_registered(spec, lambda package: class_name in package.classes)
        if registered is not None:
            return registered
        for plugin in self._defining(class_name):
            reason = (
                f"class {class_name} is defined by the extension plug-in {plugin.name} "
                f"{plugin.version}, which is not in the range {spec}; change the version in the "
                f"object's header, or install another version of the plug-in beside the engine"
            )
            error = errors.LoaderError(reason)
            raise _engine_error(exceptions.NoPackageForClassFound, error)
        try:
            return self._engine_package(self._loader.load_class_package(class_name, spec))
        except errors.NoSuchClass as error:
            raise _engine_error(exceptions.NoPackageForClassFound, error) from error

    def plan_model(self, model: Mapping[str, Any]) -> Mapping[str, Any]:
        """Choose the packages for all objects in a model together, before any object is loaded.

        The header of the root object may request other versions of pinned packages. In this case,
        the pins are changed to these versions. If the model has no objects, the environment is
        being deleted. Then pinned versions that no catalogue has are replaced.

        :returns: the model to load. If the header has requested other versions, the headers of the
            objects have these versions.
        :raises InvalidPins: if the pins cannot be changed to the requested versions.
        :raises LoaderError: if a requested version is missing, or a catalogue cannot be queried.
        """
        moves: pin_moves.Moves = {}
        if model.get(constants.DM_OBJECTS):
            pins = self._loader.pins
            # In a test in MuranoPL, an object may have its class as a key, and no header.
            header = root_header(model) or {}
            moves = pin_moves.read_moves(header.get(pin_moves.KEY, {}), pins)
            model = pin_moves.apply(moves, pins, model) if moves else model
        else:
            self._replace_missing_pins()
        headers = [header for header in object_headers(model) if not self._defining(header[0])]
        planned = self._loader.plan_objects(headers)
        pin_moves.check(moves, planned, self._loader.catalogs)
        return model

    def _replace_missing_pins(self) -> None:
        """Replace pinned versions that no catalogue has, so that the environment can be deleted.

        A missing version is replaced by an available version with the same major number. If there
        is none, the pin is removed. The owner of the environment gets a warning. If no version of
        the package is available, the pin does not change.
        """
        pins = self._loader.pins
        for missing, available in self._loader.find_missing_pins().items():
            if available:
                near = pin_moves.near(missing.version, available)
                versions = set(pins.table[missing.fqn]) - {missing.version}
                versions |= {near} if near else set()
                pins.load({**pins.dump(), missing.fqn: map(str, versions)})
                self.warn(
                    f"The pinned package {missing} was not found in {self._loader.source}. "
                    f"The environment is deleted with {near or 'the newest version in range'}"
                )

    def list_subclasses(self, class_name: str, version_spec: str, package_name: str) -> Subclasses:
        """List the subclasses of a class.

        :param version_spec: the range of versions for the package that defines the class.
        :param package_name: the FQN of the package that defines the class.
        :returns: the first subclasses by name, and whether there are more.
        :raises LoaderError: if the catalogues cannot be queried.
        """
        return self._loader.subclasses(class_name, version_spec, package_name)

    def register_package(self, package: MuranoPackage) -> None:
        """Add an extension package, which the loader prefers to packages of the catalogues."""
        self._registered.append(package)
        requirements = {fqn: canonical_range(spec) for fqn, spec in package.requirements.items()}
        self._loader.provide(package.name, package.version, package.classes, requirements)

    def import_fixation_table(self, fixations: Mapping[str, Iterable[str]]) -> None:
        """Replace all pins with those in a table, which Murano has read from the model.

        :param fixations: a mapping of FQNs to the pinned versions.
        :raises InvalidPins: if the table is not valid.
        """
        self._loader.pins.load(fixations)
        self._imported = self._loader.pins.dump()

    def restore_fixation_table(self) -> None:
        """Replace all pins with those that ``import_fixation_table`` has set."""
        self._loader.pins.load(self._imported)

    def export_fixation_table(self) -> dict[str, list[str]]:
        """Return a mapping of FQNs to pinned versions, which Murano stores in the model."""
        return self._loader.pins.dump()

    def compact_fixation_table(self) -> None:
        """Remove the pins that the task has not used."""
        self._loader.pins.compact()

    def cleanup(self) -> None:
        """Log the task's costs, and close the loader."""
        log_costs(self._loader)
        self._loader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cleanup()

    def _select_or_load(
        self, fqn: str, spec: VersionSpec, load: Callable[[], Package]
    ) -> MuranoPackage:
        """Return the newest extension package in a range; if there is none, load a package.

        :param fqn: the name of the package.
        :param load: the function that loads a package from the catalogues.
        :raises NoPackageFound: if ``load`` does not find a package.
        """
        registered = self._select_registered(spec, lambda package: package.name == fqn)
        if registered is not None:
            return registered
        try:
            return self._engine_package(load())
        except errors.NoSuchPackage as error:
            raise _engine_error(exceptions.NoPackageFound, error, how_to_move(error)) from error

    def _select_registered(
        self, spec: VersionSpec, matches: Callable[[MuranoPackage], bool]
    ) -> MuranoPackage | None:
        found = {package.version: package for package in self._registered if matches(package)}
        version = spec.select(found)
        return found[version] if version is not None else None

    def _defining(self, class_name: str) -> Collection[MuranoPackage]:
        """Return the extension packages that define a class."""
        return [package for package in self._registered if class_name in package.classes]

    def is_core_library(self, package: Package) -> bool:
        """Return whether a package is the core library ``io.murano``, and can be trusted.

        Any project may publish a private package with this name. ``PackageLoader.is_core_library``
        describes which packages can be trusted.
        """
        return self._loader.is_core_library(package)

    def class_config(self, release: Release, name: str) -> Any:
        """Return the values that the operator has written for a class; see ``class_config``."""
        return class_config(release, name)

    def _engine_package(self, package: Package) -> "EnginePackage":
        key = (package.full_name, package.version)
        if key not in self._packages:
            self._packages[key] = self._made(package, self._loader.release(package))
        return self._packages[key]

    def _made(self, package: Package, release: Release) -> "EnginePackage":
        """Make the engine's package object for a package."""
        return EnginePackage(self, package, release)


def log_costs(loader: PackageLoader) -> None:
    """Log what loading has cost a task, and add it to ``totals``."""
    counters = loader.counters
    totals.add(counters)
    LOG.info(
        "Loaded %(packages)d packages: %(requests)d requests, %(downloads)d archives "
        "(%(bytes)d bytes) downloaded, %(hits)d found in the cache, %(seconds).3f seconds",
        {"packages": loader.loaded_count, **vars(counters)},
    )


def package_loader(session: ksa_session.Session, project_id: str) -> PackageLoader:
    """Make this project's loader for a task; no request is sent to a catalogue.

    :param session: the session of the task.
    :param project_id: the project of the task.
    :raises LoaderError: if the configuration or the cache directory cannot be used.
    """
    scope = Scope(session=session, project_id=project_id, region_name=CONF.home_region, is_own=True)
    return config.package_loader(CONF, scope, CONF.murano.enabled_plugins)


def class_config(release: Release, name: str) -> Any:
    """Return the values that the operator has written in a file for a class of a release.

    :returns: an empty dictionary if there is no file, or if the package may not read the file, see
        ``class_configs.may_read``.
    :raises InvalidName: if the name of the class is not valid, such as a path.
    """
    check_fqn(name)
    if class_configs.may_read(name, release, config.reserved_names(CONF)):
        # Murano reads only the version of its package.
        package = types.SimpleNamespace(version=release.version)
        return murano_package.MuranoPackage.get_class_config(package, name)
    # Only the log names the file: the package must not learn that it exists.
    for path in class_configs.find(CONF.engine.class_configs, name):
        LOG.warning(
            "%s is not used for class %s of package %s: %s project %s does not own the name",
            *(path, name, release, release.visibility, release.owner),
        )
    return {}


def _engine_error(kind: type[Exception], error: errors.LoaderError, remedy: str = "") -> Exception:
    """Convert an error of the loader to an error of the engine.

    :param kind: the class of the engine's error.
    :param error: the loader's error. Its message becomes the message of the engine's error.
    :param remedy: what the user can do, for the end of the message.
    """
    found = kind(error)
    found.args = (f"{error}{remedy}",)
    return found


def how_to_move(error: errors.NoSuchPackage) -> str:
    """Return the end of an error's message, which says how to change the pin of a missing version.

    :returns: an empty string if the missing version is not pinned, or no other version of the
        package is available.
    """
    if error.pinned is None or not error.available:
        return ""
    return (
        f"; to move the pin, set /?/{pin_moves.KEY}/{error.fqn} in the environment's model to an "
        f"available version, or to null for the newest in range"
    )


class EnginePackage(murano_package.MuranoPackage):  # type: ignore[misc]
    """The engine's package object for a package from this project's loader."""

    def __init__(self, loader: EnginePackageLoader, package: Package, release: Release) -> None:
        """Make the object. No class is parsed: the engine parses a class when it needs the class.

        :param release: the release that the package was loaded from.
        """
        self._release = release
        self._engine_loader = loader
        # This reference keeps the loader alive: the base class has only a weak one.
        requirer = PackageVersion(package.full_name, package.version)
        self._requirement_loader = _RequirementLoader(loader, requirer)
        self.application_package = package
        # The constructor of the base class needs ``meta``, which the package interface lacks.
        dsl_package.MuranoPackage.__init__(
            self,
            self._requirement_loader,
            package.full_name,
            package.version,
            package.runtime_version,
            package.requirements,
            getattr(package, "meta", None),
        )
        for name in package.classes:
            self.register_class(functools.partial(parse_class, package, name), name)
        # The name is not enough: any project may publish a private package with this name.
        self.is_core_library = loader.is_core_library(package)
        if self.is_core_library:
            system_objects.register(self)

    def define_classes(self) -> None:
        """Define all classes of the package now. Otherwise, each is defined when it is needed.

        :raises Exception: if a class is faulty, or needs a class of another package.
        """
        for name in sorted(self.classes):
            found = self.find_class(name, search_requirements=False)
            # The contexts are made on first use.
            _ = found.context, found.exported_context

    def use(self, loader: EnginePackageLoader, package: Package, release: Release) -> None:
        """Use this object in a task.

        :param loader: the loader of the task.
        :param package: a package with the same content.
        :param release: the release from which the task has loaded the package.
        """
        self._release = release
        self._engine_loader = loader
        self._requirement_loader.use(loader)
        self.application_package = package

    def get_class_config(self, name: str) -> Any:
        """Return the values of a class; see ``EnginePackageLoader.class_config``."""
        return self._engine_loader.class_config(self._release, name)

    def find_class(self, name: str, search_requirements: bool = True) -> Any:
        """Find a class of the package, or of the packages that it requires.

        A package may require an older version of itself (specification "Murano versioning", section
        "Package requirements"). Then this method searches the older version last, for classes that
        the newer version lacks. Murano 16 does not search the older version.

        :param search_requirements: whether to search the required packages as well.
        """
        class_cycles.check(self, name)
        try:
            return super().find_class(name, search_requirements)
        except exceptions.NoClassFound:
            if not search_requirements or self.name not in self.application_package.requirements:
                raise
            # If the package satisfies its requirement on itself, ``older`` is the package itself.
            older = self._requirement_loader.load_package(self.name, self.requirements[self.name])
            if name not in older.classes:
                raise
        return older.find_class(name, search_requirements=False)

    def _register_mpl_classes(self, data: Any, name: str) -> Any:
        with (
            error_places.explaining(self.application_package, name),
            class_cycles.defining(self, name),
        ):
            try:
                if found := super()._register_mpl_classes(data, name):
                    return found
                raise exceptions.DslSyntaxError(f"the file does not define class {name}")
            except Exception:
                # Murano reads a class once. The next use of the class has to fail with this error.
                self._load_queue.setdefault(name, data)
                raise


class EngineExtension(dsl_package.MuranoPackage):  # type: ignore[misc]
    """The engine's package object for the extension classes of one Python distribution."""

    def __init__(self, loader: Any, package: ExtensionPackage) -> None:
        if isinstance(loader, EnginePackageLoader):
            # This reference keeps the loader alive: the base class has only a weak one.
            requirer = PackageVersion(package.name, package.version)
            loader = self._requirement_loader = _RequirementLoader(loader, requirer)
        requirements = {fqn: spec.canonical for fqn, spec in package.requirements.items()}
        super().__init__(loader, package.name, package.version, "1.0.0", requirements)
        for name, python_class in package.classes.items():
            self.register_class(python_class, name)


class PluginLoader:
    """Loads the extension plug-ins once, and registers them in the package loader of each task.

    It replaces Murano's plug-in loader, see ``patches.loader_choice``.
    """

    @functools.cached_property
    def packages(self) -> list[ExtensionPackage]:
        """The packages of all enabled plug-ins; the first access imports the plug-ins."""
        return load_extensions(CONF.murano.enabled_plugins)

    def register_in_loader(self, package_loader: Any) -> None:
        """Register the extension packages in a task's loader, which may be Murano's own."""
        for package in self.packages:
            package_loader.register_package(EngineExtension(package_loader, package))


class _RequirementLoader:
    """A loader for one package, which loads only the packages that this package requires.

    Murano's package object calls ``load_package``, and does not pass itself. So this class adds the
    package, and calls ``EnginePackageLoader.load_requirement``.
    """

    def __init__(self, loader: EnginePackageLoader, requirer: PackageVersion) -> None:
        self._loader = loader
        self._requirer = requirer
        # FQN -> package. A package has only one range for each FQN. Murano requests the package
        # again for each class: 336 times in a deployment of 20 packages.
        self._loaded: dict[str, MuranoPackage] = {}

    def use(self, loader: EnginePackageLoader) -> None:
        """Load further packages by the loader of a task."""
        self._loader = loader

    def load_package(self, package_name: str, version_spec: object) -> MuranoPackage:
        if package_name not in self._loaded:
            load = self._loader.load_requirement
            self._loaded[package_name] = load(self._requirer, package_name, version_spec)
        return self._loaded[package_name]


def parse_class(package: Package, name: str) -> Any:
    """Return the YAML documents in the file of a class, as ``ParsedClasses.parse`` does."""
    code, file = error_places.read_class(package, name)
    return parsed_classes.kept.parse(code, file, package.runtime_version)
