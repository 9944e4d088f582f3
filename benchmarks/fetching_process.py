# SPDX-License-Identifier: Apache-2.0

"""A process that fetches and unpacks an archive, and prints its memory above idle."""

import pathlib
import sys

from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint

import loader
from benchmarks.measure import memory_above_idle
from benchmarks.package import BIG, ROOMY
from glare_murano.package import VersionSpec
from loader.catalogs.glare import GlareCatalog


def main() -> None:
    """Fetch the newest release of a package."""
    url, token, project_id, fqn, cache = sys.argv[1:]
    session = ksa_session.Session(auth=token_endpoint.Token(url, token))
    catalog = GlareCatalog(session, endpoint=url, project_id=project_id, limits=ROOMY)
    with loader.PackageLoader([catalog], loader.Cache(pathlib.Path(cache), ROOMY)) as packages:

        def fetch() -> str:
            # The property unpacks the archive.
            return packages.load(fqn, VersionSpec.of("*")).source_directory

        print(memory_above_idle(fetch))
        assert packages.counters.bytes > BIG


if __name__ == "__main__":
    main()
