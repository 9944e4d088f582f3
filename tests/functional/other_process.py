# SPDX-License-Identifier: Apache-2.0

"""What tests let other processes do: apart, so that these import nothing else."""

import pathlib

from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint

import loader


def load(url: str, token: str, folder: str, name: str) -> tuple[int, int]:
    """Load a package; return the numbers of downloads and of hits in the cache."""
    package_loader = _package_loader(url, token, folder)
    package_loader.load(name, "1")
    return package_loader.counters.downloads, package_loader.counters.hits


def unpack(url: str, token: str, folder: str, name: str) -> tuple[str, int]:
    """Unpack a package; return the content and the inode of one of its files."""
    package = _package_loader(url, token, folder).load(name, "1")
    script = pathlib.Path(package.get_resource("script.sh"))
    return script.read_text(), script.stat().st_ino


def _package_loader(url: str, token: str, folder: str) -> loader.PackageLoader:
    session = ksa_session.Session(auth=token_endpoint.Token(url, token))
    catalog = loader.GlareCatalog(session, endpoint=url, project_id=token.split(":")[1])
    return loader.PackageLoader([catalog], loader.Cache(folder))
