# SPDX-License-Identifier: Apache-2.0

"""The Murano engine's adapter: the loader behind the engine's own interface.

``install`` makes Murano 16 load its packages through ``PackageLoader`` where
its configuration says ``[engine] packages_service = glare``; with any other
value Murano's own loader stays in place. It also mends what keeps Murano 16 from
running packages on today's Python: extension plug-ins, which fail to load with
today's stevedore, and resources read as text. Only this module and the command
beside it know Murano.
"""

import functools
import logging
import types
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import IO, Any, Self

import semantic_version
from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint
from murano.common import auth_utils
from murano.common import config as murano_config
from murano.common import engine as murano_engine
from murano.dsl import constants
from murano.dsl import exceptions as dsl_exceptions
from murano.dsl import helpers as dsl_helpers
from murano.dsl import murano_package as dsl_package
from murano.dsl import murano_type as dsl_murano_type
from murano.dsl import package_loader as dsl_package_loader
from murano.engine import murano_package, yaql_yaml_loader
from murano.engine import package_loader as murano_package_loader
from murano.engine.system import resource_manager, system_objects
from oslo_log import versionutils

from glare_murano.package import Version, VersionSpec
from loader import config, errors
from loader.counters import Counters
from loader.engine.extensions import ExtensionPackage, load_extensions
from loader.formats.base import Package
from loader.transport import download
from loader.transport.sessions import Scope

LOG = logging.getLogger(__name__)
CONF = murano_config.CONF

# What all loaders of this process have cost so far.
totals = Counters()

_MOST_RANGES = 1024
_LONGEST_RANGE = 1024

_murano_loader = murano_package_loader.CombinedPackageLoader
_murano_parse = dsl_helpers.parse_version_spec


class NoPackageFound(dsl_exceptions.NoPackageFound):  # type: ignore[misc]
    """The engine's own error, with the loader's words."""

    def __init__(self, error: errors.NoSuchPackage) -> None:
        Exception.__init__(self, str(error))


class NoPackageForClassFound(dsl_exceptions.NoPackageForClassFound):  # type: ignore[misc]
    """The engine's own error, with the loader's words."""

    def __init__(self, error: errors.NoSuchClass) -> None:
        Exception.__init__(self, str(error))


def install() -> None:
    """Put the loader in the place of Murano's, for this process.

    Murano makes its loader by one name, which is looked up at each call, and
    has no option to choose another. It reads the ranges of each package and
    class anew for each task, which would take longer than to find the packages.
    """
    murano_package_loader.CombinedPackageLoader = combined_package_loader
    murano_engine.PLUGIN_LOADER = Extensions()
    resource_manager.open = _open_resource
    dsl_helpers.parse_version_spec = _parse_version_spec
    # Of all that the library has, these two use its ranges alone.
    dsl_package.semantic_version = _ranges
    dsl_murano_type.semantic_version = _ranges


def _open_resource(path: str, mode: str) -> IO[Any]:
    """Open a package's resource, for Murano's class ``io.murano.system.Resources``.

    It asks for universal newlines by a mode that Python 3.11 has no more, so
    that no package could read a resource as text.
    """
    return open(path, mode.replace("U", ""))


def _parse_version_spec(version_spec: Any) -> Any:
    """The engine's range, as its own function of this name reads it."""
    # A model may have a text of any length, which is not to be kept.
    if isinstance(version_spec, str) and len(version_spec) <= _LONGEST_RANGE:
        return _parsed(version_spec)
    return _murano_parse(version_spec)


@functools.lru_cache(_MOST_RANGES)
def _parsed(version_spec: str) -> Any:
    return _murano_parse(version_spec)


# A range never changes, so that packages can share it.
_ranges = types.SimpleNamespace(Spec=functools.lru_cache(_MOST_RANGES)(semantic_version.Spec))


class Extensions:
    """The extension plug-ins, imported when the first task needs them."""

    def __init__(self) -> None:
        self._packages: list[ExtensionPackage] | None = None

    def register_in_loader(self, package_loader: Any) -> None:
        """Make the plug-ins' classes known to a task's loader."""
        if self._packages is None:
            self._packages = load_extensions(CONF.murano.enabled_plugins)
        for package in self._packages:
            package_loader.register_package(EngineExtension(package_loader, package))


def combined_package_loader(execution_session: Any, root_loader: Any = None) -> Any:
    """Make the loader that the configuration asks for."""
    service = CONF.engine.packages_service
    if service == "glance":
        versionutils.report_deprecated_feature(
            LOG, "[engine] packages_service = glance is called glare now"
        )
    if service in ("glare", "glance"):
        return EnginePackageLoader(execution_session, root_loader)
    return _murano_loader(execution_session, root_loader)


class EnginePackageLoader(dsl_package_loader.MuranoPackageLoader):  # type: ignore[misc]
    """Loads packages for one task of the engine."""

    def __init__(self, execution_session: Any, root_loader: Any = None) -> None:
        """Make a loader; nothing is asked yet.

        :param execution_session: the task's token, project and trust.
        :param root_loader: the loader that packages ask for their
            requirements; by default this one.
        """
        self._root_loader = root_loader or self
        scope = Scope(
            session=_session(execution_session),
            project_id=execution_session.project_id,
            region_name=CONF.home_region,
        )
        self._loader = config.package_loader(CONF, scope, CONF.murano.enabled_plugins)
        self._packages: dict[tuple[str, Version], EnginePackage] = {}
        self._registered: list[Any] = []

    def load_package(
        self, package_name: str, version_spec: Any, required_by: str | None = None
    ) -> Any:
        """See Murano's interface.

        :param required_by: the package that asks, for messages.
        """
        spec = _range(version_spec)
        registered = self._select_registered(spec, lambda p: bool(p.name == package_name))
        if registered is not None:
            return registered
        try:
            if required_by is None:
                # Only a package's requirements come with a name; what else
                # asks for a package by name is an object's header.
                package = self._loader.load_object_package(package_name, spec)
            else:
                package = self._loader.load_package(package_name, spec, required_by)
            return self._engine_package(package)
        except errors.NoSuchPackage as error:
            raise NoPackageFound(error) from error

    def load_class_package(self, class_name: str, version_spec: Any) -> Any:
        """See Murano's interface."""
        spec = _range(version_spec)
        registered = self._select_registered(spec, lambda p: class_name in p.classes)
        if registered is not None:
            return registered
        try:
            return self._engine_package(self._loader.load_class_package(class_name, spec))
        except errors.NoSuchClass as error:
            raise NoPackageForClassFound(error) from error

    def register_package(self, package: Any) -> None:
        """See Murano's interface: extension plug-ins come in here."""
        self._registered.append(package)

    def import_fixation_table(self, fixations: Mapping[str, Iterable[str]]) -> None:
        """See Murano's interface."""
        self._loader.pins.load(fixations)

    def export_fixation_table(self) -> dict[str, list[str]]:
        """See Murano's interface."""
        return self._loader.pins.dump()

    def compact_fixation_table(self) -> None:
        """See Murano's interface."""
        self._loader.pins.compact()

    def cleanup(self) -> None:
        """Give up what the task held."""
        counters = self._loader.counters
        totals.add(counters)
        LOG.info(
            "Loaded %d packages: %d requests, %d archives (%d bytes) downloaded, "
            "%d found in the cache, %.3f seconds",
            len(self._packages),
            counters.requests,
            counters.downloads,
            counters.bytes,
            counters.hits,
            counters.seconds,
        )
        self._loader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cleanup()

    def _select_registered(self, spec: VersionSpec, wanted: Any) -> Any:
        found = {package.version: package for package in self._registered if wanted(package)}
        version = spec.select(found)
        return found[version] if version is not None else None

    def _engine_package(self, package: Package) -> "EnginePackage":
        key = (package.full_name, package.version)
        if key not in self._packages:
            self._packages[key] = EnginePackage(self._root_loader, package)
        return self._packages[key]


def _range(version_spec: Any) -> VersionSpec:
    """The engine's range, which it writes in any order, as a message shows it."""
    return VersionSpec.of(VersionSpec.of(str(version_spec)).canonical)


class EnginePackage(murano_package.MuranoPackage):  # type: ignore[misc]
    """The engine's package object over one of ours."""

    def __init__(self, loader: Any, package: Package) -> None:
        """Make a package whose classes are read as they are asked for."""
        # The engine's object holds it by a weak reference.
        self._requirer = _Requirer(loader, f"{package.full_name} {package.version}")
        super().__init__(self._requirer, package)
        for name in package.classes:
            self.register_class(_class_reader(package, name), name)
        if package.full_name == constants.CORE_LIBRARY:
            system_objects.register(self)


class EngineExtension(dsl_package.MuranoPackage):  # type: ignore[misc]
    """The engine's package object over the extensions of one distribution."""

    def __init__(self, loader: Any, package: ExtensionPackage) -> None:
        """Make a package of Python classes."""
        self._requirer = _Requirer(loader, f"{package.name} {package.version}")
        requirements = {fqn: spec.canonical for fqn, spec in package.requirements.items()}
        super().__init__(
            self._requirer, package.name, package.version, "1.0.0", requirements=requirements
        )
        for name, python_class in package.classes.items():
            self.register_class(python_class, name)


class _Requirer:
    """Loads what one package requires, and says who asks."""

    def __init__(self, loader: Any, name: str) -> None:
        self._loader = loader
        self._name = name

    def load_package(self, package_name: str, version_spec: Any) -> Any:
        if isinstance(self._loader, EnginePackageLoader):
            return self._loader.load_package(package_name, version_spec, self._name)
        return self._loader.load_package(package_name, version_spec)


def _class_reader(package: Package, name: str) -> Any:
    def read() -> Any:
        found = package.get_class(name)
        text, file_name = found if isinstance(found, tuple) else (found, name)
        return yaql_yaml_loader.get_loader(package.runtime_version)(text, file_name)

    return read


def _session(execution_session: Any) -> ksa_session.Session:
    """A session for the task's project; catalogues add TLS options of their own."""
    session: ksa_session.Session
    if _has_keystone():
        session = auth_utils.get_client_session(execution_session)
    else:
        # A service that does without Keystone knows what to make of the token.
        auth = token_endpoint.Token(CONF.glare.url, execution_session.token)
        session = ksa_session.Session(auth=auth)
    download.limit(session)
    return session


def _has_keystone() -> bool:
    return bool(
        CONF.murano_auth.www_authenticate_uri or CONF.keystone_authtoken.www_authenticate_uri
    )
