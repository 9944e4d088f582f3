# SPDX-License-Identifier: Apache-2.0

"""Murano 16's interfaces of package loaders, plug-in loaders and packages, over ours."""

import functools
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Protocol, Self

from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint
from murano.common import auth_utils
from murano.common import config as murano_config
from murano.dsl import constants, exceptions
from murano.dsl import murano_package as dsl_package
from murano.dsl import package_loader as dsl_package_loader
from murano.engine import murano_package, yaql_yaml_loader
from murano.engine.system import system_objects

from glare_murano.package import Version, VersionSpec
from loader import config, errors
from loader.counters import Counters
from loader.engine.extensions import ExtensionPackage, load_extensions
from loader.formats.base import Package
from loader.transport import sessions
from loader.transport.sessions import Scope

LOG = logging.getLogger(__name__)
CONF = murano_config.CONF

# The sum over all finished tasks of this process.
totals = Counters()


class ExecutionSession(Protocol):
    """The credentials of one task; Murano's class has more."""

    token: str
    project_id: str


class MuranoPackage(Protocol):
    """The engine's package object; Murano's class has more."""

    name: str
    version: Version
    classes: Collection[str]


class EnginePackageLoader(dsl_package_loader.MuranoPackageLoader):  # type: ignore[misc]
    """Load packages for one task of the engine.

    Ranges come as ``semantic_version.Spec``, as the engine parses them.
    """

    def __init__(self, execution_session: ExecutionSession) -> None:
        """Make a loader; no catalogue is queried yet.

        :raises LoaderError: if the configuration or the cache directory cannot be used.
        """
        scope = Scope(
            session=_keystone_session(execution_session),
            project_id=execution_session.project_id,
            region_name=CONF.home_region,
        )
        self._loader = config.package_loader(CONF, scope, CONF.murano.enabled_plugins)
        self._packages: dict[tuple[str, Version], EnginePackage] = {}
        self._registered: list[MuranoPackage] = []

    def load_package(
        self, package_name: str, version_spec: object, required_by: str | None = None
    ) -> MuranoPackage:
        """Load a package by its name.

        :param required_by: the requiring package, as ``FQN version``; None for the package
            of an object header, where a missing version gives way to a near one.
        :raises NoPackageFound: if no version is in the range.
        """
        spec = _parse_range(version_spec)
        registered = self._select_registered(spec, lambda package: package.name == package_name)
        if registered is not None:
            return registered
        try:
            if required_by is None:
                package = self._loader.load_object_package(package_name, spec)
            else:
                package = self._loader.load_package(package_name, spec, required_by)
            return self._engine_package(package)
        except errors.NoSuchPackage as error:
            raise _engine_error(exceptions.NoPackageFound, error) from error

    def load_class_package(self, class_name: str, version_spec: object) -> MuranoPackage:
        """Load a package by one of its classes.

        :raises NoPackageForClassFound: if no package in the range defines the class.
        """
        spec = _parse_range(version_spec)
        registered = self._select_registered(spec, lambda package: class_name in package.classes)
        if registered is not None:
            return registered
        try:
            return self._engine_package(self._loader.load_class_package(class_name, spec))
        except errors.NoSuchClass as error:
            raise _engine_error(exceptions.NoPackageForClassFound, error) from error

    def register_package(self, package: MuranoPackage) -> None:
        """Add a package of extension classes, which comes before those of the catalogues."""
        self._registered.append(package)

    def import_fixation_table(self, fixations: Mapping[str, Iterable[str]]) -> None:
        """Replace the pins, given as FQN -> versions."""
        self._loader.pins.load(fixations)

    def export_fixation_table(self) -> dict[str, list[str]]:
        """Return the pins as FQN -> versions."""
        return self._loader.pins.dump()

    def compact_fixation_table(self) -> None:
        """Drop the pins that the task has not used."""
        self._loader.pins.compact()

    def cleanup(self) -> None:
        """Log the task's costs, and close the loader."""
        counters = self._loader.counters
        totals.add(counters)
        LOG.info(
            "Loaded %(packages)d packages: %(requests)d requests, %(downloads)d archives "
            "(%(bytes)d bytes) downloaded, %(hits)d found in the cache, %(seconds).3f seconds",
            {"packages": len(self._packages), **vars(counters)},
        )
        self._loader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cleanup()

    def _select_registered(
        self, spec: VersionSpec, matches: Callable[[MuranoPackage], bool]
    ) -> MuranoPackage | None:
        found = {package.version: package for package in self._registered if matches(package)}
        version = spec.select(found)
        return found[version] if version is not None else None

    def _engine_package(self, package: Package) -> "EnginePackage":
        key = (package.full_name, package.version)
        if key not in self._packages:
            self._packages[key] = EnginePackage(self, package)
        return self._packages[key]


def _engine_error(kind: type[Exception], error: errors.LoaderError) -> Exception:
    """Return an error of the engine, with the loader's message in place of its own."""
    found = kind(error)
    found.args = (str(error),)
    return found


def _parse_range(version_spec: object) -> VersionSpec:
    # The engine writes clauses in any order; messages show the canonical one.
    return VersionSpec.of(VersionSpec.of(str(version_spec)).canonical)


class EnginePackage(murano_package.MuranoPackage):  # type: ignore[misc]
    """The engine's package object over one of ours."""

    def __init__(self, loader: EnginePackageLoader, package: Package) -> None:
        """Make a package, whose classes are parsed when the engine needs them."""
        # Kept here, since the base refers to its loader weakly.
        required_by = f"{package.full_name} {package.version}"
        self._requirement_loader = _RequirementLoader(loader, required_by)
        self.application_package = package
        # Not by its own base, which needs ``meta``: the package interface is without it.
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
            self.register_class(functools.partial(_parse_class, package, name), name)
        if package.full_name == constants.CORE_LIBRARY:
            system_objects.register(self)


class EngineExtension(dsl_package.MuranoPackage):  # type: ignore[misc]
    """The engine's package object over the extension classes of one distribution."""

    def __init__(self, loader: Any, package: ExtensionPackage) -> None:
        if isinstance(loader, EnginePackageLoader):
            # Kept here, since the base refers to its loader weakly.
            required_by = f"{package.name} {package.version}"
            loader = self._requirement_loader = _RequirementLoader(loader, required_by)
        requirements = {fqn: spec.canonical for fqn, spec in package.requirements.items()}
        super().__init__(loader, package.name, package.version, "1.0.0", requirements)
        for name, python_class in package.classes.items():
            self.register_class(python_class, name)


class PluginLoader:
    """Murano's plug-in loader, which imports the plug-ins for the first task."""

    @functools.cached_property
    def _packages(self) -> list[ExtensionPackage]:
        return load_extensions(CONF.murano.enabled_plugins)

    def register_in_loader(self, package_loader: Any) -> None:
        """Add the extension packages to a task's loader, ours or Murano's."""
        for package in self._packages:
            package_loader.register_package(EngineExtension(package_loader, package))


class _RequirementLoader:
    """Load the requirements of one package, which errors then name."""

    def __init__(self, loader: EnginePackageLoader, required_by: str) -> None:
        self._loader = loader
        self._required_by = required_by

    def load_package(self, package_name: str, version_spec: object) -> MuranoPackage:
        return self._loader.load_package(package_name, version_spec, self._required_by)


def _parse_class(package: Package, name: str) -> Any:
    found = package.get_class(name)
    code, path = found if isinstance(found, tuple) else (found, name)
    return yaql_yaml_loader.get_loader(package.runtime_version)(code, path)


def _keystone_session(execution_session: ExecutionSession) -> ksa_session.Session:
    """Return a session for the task's project; catalogues add their own TLS options."""
    session: ksa_session.Session
    if CONF.murano_auth.www_authenticate_uri or CONF.keystone_authtoken.www_authenticate_uri:
        session = auth_utils.get_client_session(execution_session)
    else:
        # Without Keystone, Glare gets the token as it is.
        auth = token_endpoint.Token(CONF.glare.url, execution_session.token)
        session = ksa_session.Session(auth=auth)
    sessions.set_timeout(session)
    return session
