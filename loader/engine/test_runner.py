# SPDX-License-Identifier: Apache-2.0

"""The command ``murano-glare-test-runner``, which runs the MuranoPL tests of a package.

Packages come from directories, and from the catalogues of an engine's configuration or of a cloud.
Nothing is published, and Murano's status reports are not sent. ``test_cases`` finds and runs the
tests.
"""

import argparse
import importlib.metadata
import logging
import pathlib
import sys
import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from glare_murano import extras
from glare_murano.package import (
    Archive,
    GlareMuranoError,
    InvalidPackage,
    VersionSpec,
    read_contents,
)
from glare_murano.package.errors import escaped
from glare_murano.package.manifest import MANIFEST_FILE
from loader.errors import CatalogError
from loader.references import PackageReference

if TYPE_CHECKING:
    from loader.engine.adapter import EnginePackageLoader, MuranoPackage
    from loader.engine.test_cases import Case
    from loader.transport.sessions import Scope

_COMMAND = "murano-glare-test-runner"
_DESCRIPTION = (
    "Run the MuranoPL tests of a package: the methods 'test...' of its classes that extend "
    "io.murano.test.TestFixture. Its requirements, and Murano's core library, come from the "
    "given directories, and from Glare or Glance if a cloud or a configuration is given."
)
# The exit code after Ctrl-C, as in a shell: 128 and the number of SIGINT.
_STOPPED = 130
_NO_QUEUE = "fake://"
_LINE_END = "\n"
_EPILOG = "The exit code is 0 if all tests pass, 1 if one fails, and 2 if they cannot be run."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests, and print the failures with their places.

    :param arguments: the arguments of the command; None means those of the process.
    :returns: the exit code: 0 if all tests pass, 1 if one fails, 2 if they cannot be run, and 130
        after Ctrl-C.
    """
    try:
        options = _parser().parse_args(arguments)
        package = _package(options)
        if not sys.warnoptions:
            # All of Python's warnings are about Murano's libraries.
            warnings.simplefilter("ignore")
        # eventlet patches the standard library before other modules use it.
        import eventlet

        eventlet.monkey_patch()
        return _run(options, *package)
    except ModuleNotFoundError as error:
        print(f"{_COMMAND}: {error}; {extras.remedy('engine')}", file=sys.stderr)
    except GlareMuranoError as error:
        print(f"{_COMMAND}: {escaped(str(error), _LINE_END)}", file=sys.stderr)
    except KeyboardInterrupt:
        return _STOPPED
    return 2


class _Formatter(logging.Formatter):
    """Formats log records for a terminal; it escapes control characters, which packages may log."""

    def format(self, record: logging.LogRecord) -> str:
        return escaped(super().format(record), _LINE_END)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=_COMMAND, description=_DESCRIPTION, epilog=_EPILOG)
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("glare-murano", "murano")]
    parser.add_argument("--version", action="version", version=", ".join(versions))
    parser.add_argument(
        *("-p", "--path"),
        action="append",
        default=[],
        type=_directory,
        help="a directory with packages, unpacked or as ZIP files, at any depth",
    )
    parser.add_argument(
        "--os-cloud",
        metavar="NAME",
        help="take packages from Glare or Glance in this cloud as well: an entry of clouds.yaml, "
        "or 'envvars' for the variables OS_...",
    )
    parser.add_argument(
        "--config-file",
        action="append",
        type=_file,
        metavar="FILE",
        help="an engine's configuration, with its catalogues, cache and plug-ins",
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="log the loaded packages with the reasons"
    )
    parser.add_argument(
        "package",
        metavar="PACKAGE",
        help="NAME, NAME@VERSION or NAME@RANGE; or the package's directory or ZIP file",
    )
    parser.add_argument(
        "tests",
        nargs="*",
        # Without it, argparse says that a test is required, if the package is missing.
        default=[],
        metavar="TEST",
        help="a method, a class, or CLASS.METHOD; by default all tests",
    )
    return parser


def _directory(text: str) -> pathlib.Path:
    if not pathlib.Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text} is not a directory")
    return pathlib.Path(text).absolute()


def _file(text: str) -> str:
    if not pathlib.Path(text).is_file():
        raise argparse.ArgumentTypeError(f"{text} is not a file")
    try:
        pathlib.Path(text).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise argparse.ArgumentTypeError(f"{text} is not UTF-8 text: {error}") from error
    return text


def _run(options: argparse.Namespace, fqn: str, spec: VersionSpec) -> int:
    # The options come first: other modules of Murano read them when they are imported.
    from murano.common import config, engine
    from murano.engine.execution_session import ExecutionSession

    from loader.engine import patches, tasks, test_cases, watchdog

    level = logging.INFO if options.verbose else logging.WARNING
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter("%(levelname)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])
    # Murano's warnings name no method, and the core library causes some of them.
    logging.getLogger("murano.dsl.murano_method").setLevel(logging.ERROR)
    patches.install()
    session = ExecutionSession()
    with _package_loader(config.CONF, options, session) as loader:
        engine.get_plugin_loader().register_in_loader(loader)
        package, cases = load_tests(loader, fqn, spec, options.tests)
        start = time.monotonic()
        failures = {}
        limits = config.CONF.engine
        limit = tasks.TimeLimit("test", limits.task_seconds, "task_seconds")
        with watchdog.watching(limits.blocking_seconds, limits.max_task_memory):
            for case in cases:
                if found := test_cases.run_limited(case, limit, loader, session):
                    failures[case] = found
                print(f"{escaped(str(case))} ... {'FAILED' if found else 'ok'}", flush=True)
        seconds = time.monotonic() - start
    _print_summary(f"{package.name} {package.version}", len(cases), failures, seconds)
    return 1 if failures else 0


def load_tests(
    loader: "EnginePackageLoader", fqn: str, spec: VersionSpec, names: Sequence[str]
) -> "tuple[MuranoPackage, list[Case]]":
    """Load a package, and return it with the tests that have one of the given names.

    :param names: the names; without names, all tests are selected.
    :raises CatalogError: if the package, or a class that its tests extend, is missing.
    :raises NoTests: if the package has no tests, or a name selects no test.
    """
    from murano.dsl import exceptions

    from loader.engine import test_cases

    try:
        package = loader.load_package(fqn, spec)
        return package, test_cases.select(test_cases.find(package), names)
    except (exceptions.NoPackageFound, exceptions.NoClassFound) as error:
        raise CatalogError(str(error)) from error


def _print_summary(package: str, number: int, failures: Any, seconds: float) -> None:
    for case, found in failures.items():
        for failure in found:
            lines = f"FAILED {case}", failure.reason, *failure.trace
            print("", *(escaped(line, _LINE_END) for line in lines), sep="\n")
    passed = number - len(failures)
    print(f"\n{package}: {passed} passed, {len(failures)} failed in {seconds:.1f} seconds")


def _package(options: argparse.Namespace) -> tuple[str, VersionSpec]:
    """Return the name of the package to test, and the range of its version.

    If the package is given as the path of a directory or an archive, ``options.path`` is changed.
    It gets this directory, or the directory that contains the archive.

    :raises GlareMuranoError: if the package at a path breaks a rule, the name or the range is not
        valid, or no source of packages is given.
    """
    path = pathlib.Path(options.package)
    if path.is_file() or (path / MANIFEST_FILE).is_file():
        try:
            with Archive.open(path) as archive:
                manifest = read_contents(archive).manifest
        except InvalidPackage as error:
            error.args = (f"{path}: {error}",)
            raise
        options.path.insert(0, path.absolute() if path.is_dir() else path.absolute().parent)
        return manifest.fqn, VersionSpec.exactly(manifest.version)
    reference = PackageReference.parse(options.package)
    if not (options.path or options.os_cloud or options.config_file):
        raise CatalogError(
            "no source of packages is given: add directories with --path, a cloud with "
            "--os-cloud, or an engine's configuration with --config-file"
        )
    return reference.fqn, reference.spec


def _package_loader(conf: Any, options: argparse.Namespace, session: Any) -> "EnginePackageLoader":
    """Make a loader as the options say, and store its token and project in Murano's session.

    :param session: Murano's session of a task, which is changed.
    :raises LoaderError: if the configuration or the credentials cannot be used.
    """
    import oslo_messaging
    from keystoneauth1.exceptions import ClientException
    from oslo_config.cfg import Error

    from loader import config
    from loader.cache import cache_directory
    from loader.catalogs import options as catalog_options
    from loader.engine.adapter import EnginePackageLoader

    try:
        conf([], project="murano", default_config_files=options.config_file or [])
        # The reports of tests are sent to no queue. The next line registers transport_url.
        oslo_messaging.get_rpc_transport(conf, _NO_QUEUE)
        conf.set_override("transport_url", _NO_QUEUE)
        catalog_options.register(conf, config.OPTIONS)
        catalog_options.register(conf, config.SERVICE_OPTIONS)
        directories = [*map(str, options.path), *conf.engine.load_packages_from]
        conf.set_override("load_packages_from", directories, "engine")
        if not options.config_file:
            conf.set_override("catalogs", ["directory"], "package_loader")
            conf.set_override("packages_cache", str(cache_directory.of_user()), "engine")
        scope = _cloud(conf, options.os_cloud) if options.os_cloud else config.own_scope(conf)
        if scope.session is not None:
            session.token = scope.session.get_token()
            session.project_id = scope.session.get_project_id()
    except (ClientException, Error) as error:
        raise CatalogError(str(error)) from error
    return EnginePackageLoader(config.package_loader(conf, scope, conf.murano.enabled_plugins))


def _cloud(conf: Any, name: str) -> "Scope":
    """Return the session, the project and the region of a cloud, and use its packages.

    The Glare or Glance of the cloud is added to the catalogues.

    :param name: the cloud's name in ``clouds.yaml``.
    :raises LoaderError: if the cloud is missing, or if Glare and Glance both have packages, and the
        cloud's configuration does not choose one of them.
    """
    from loader import clouds
    from loader.catalogs import package_service
    from loader.transport import sessions

    cloud = clouds.find(name)
    session = cloud.get_session()
    sessions.set_timeout(session)
    service = package_service.of_cloud(cloud)
    catalogs = conf.package_loader.catalogs
    if service.name not in catalogs:
        conf.set_override("catalogs", [*catalogs, service.name], "package_loader")
    if url := cloud.get_endpoint(service.service_type):
        conf.set_override("url", url, service.name)
    # Without Keystone, the cloud's configuration has the project, as for the openstack command.
    project_id = cloud.config.get(f"{service.service_type}_project_id")
    return sessions.Scope(session, project_id, cloud.get_region_name(), is_own=True)


if __name__ == "__main__":
    sys.exit(main())
