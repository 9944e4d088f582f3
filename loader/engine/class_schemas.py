# SPDX-License-Identifier: Apache-2.0

"""Make the JSON schemas of all classes in a package, for the pages of a catalogue.

The contracts of classes are code of their package, so a child process of ``loader.site.schemas``
calls ``make``. The child has no configuration, no environment variables and no token. It reads the
package and its requirements from files on this host.
"""

import json
import pathlib
import shutil
from collections.abc import Iterable, Iterator
from typing import IO, Any

import oslo_messaging
from murano.common import config

from glare_murano.package import VersionSpec, parse_version
from loader.catalogs.directory import DirectoryCatalog
from loader.loader import PackageLoader

# Modules of Murano read the options when they are imported.
config.CONF([], project="murano", default_config_files=[], default_config_dirs=[])

from murano.common import engine  # noqa: E402
from murano.dsl import schema_generator  # noqa: E402

from loader.engine import adapter, patches  # noqa: E402

# The queue that the engine's functions would use; nothing is sent to it.
_NO_QUEUE = "fake://"
# The key of the schema that describes the class itself, and not one of its methods.
_CLASS = ""


def make(file: IO[bytes], fqn: str, version: str) -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each class of a package. A child process calls this function.

    The child's working directory must be empty; the loader makes its cache there.

    :param file: a file with a JSON list of paths. These are the path of the package, and the paths
        of the packages that were chosen for its requirements. Each is an archive or a directory.
    :param fqn: the name of the package.
    :returns: class -> ``{"schema": SCHEMA}``, or ``{"problem": TEXT}`` if no schema can be made.
        If the package cannot be loaded, the only key is an empty string.
    """
    oslo_messaging.get_rpc_transport(config.CONF, _NO_QUEUE)
    patches.install()
    here = pathlib.Path.cwd()
    catalogs = [*_catalogs(map(pathlib.Path, json.load(file)), here / "archives")]
    for catalog in catalogs:
        # Errors are shown on pages, which must not name directories of this host.
        catalog.name = "this catalogue"
    with adapter.EnginePackageLoader(PackageLoader(catalogs, here / "cache")) as loader:
        engine.get_plugin_loader().register_in_loader(loader)
        try:
            package = loader.load_package(fqn, VersionSpec.exactly(parse_version(version)))
        except Exception as error:
            return {"": {"problem": str(error) or repr(error)}}
        return {name: _describe(loader, package, name) for name in sorted(package.classes)}


def _catalogs(paths: Iterable[pathlib.Path], archives: pathlib.Path) -> Iterator[DirectoryCatalog]:
    """Yield catalogues that have only the packages at the given paths.

    An unpacked package is a catalogue of its own. The directory of an archive may have other
    archives. So all archives are copied into a new directory, which is a catalogue, too.

    :param archives: the path of the new directory.
    """
    archives.mkdir()
    for number, path in enumerate(paths):
        if path.is_dir():
            yield DirectoryCatalog(path)
        else:
            shutil.copyfile(path, archives / f"{number}.zip")
    yield DirectoryCatalog(archives)


def _describe(
    loader: adapter.EnginePackageLoader, package: adapter.MuranoPackage, name: str
) -> dict[str, Any]:
    try:
        schemas = schema_generator.generate_schema(
            loader,
            engine.ContextManager(),
            name,
            method_names=[_CLASS],
            class_version=f"=={package.version}",
            package_name=package.name,
        )
    except Exception as error:
        # Contracts can raise any error, and the other classes are described all the same.
        return {"problem": str(error) or repr(error)}
    return {"schema": schemas[_CLASS]}
