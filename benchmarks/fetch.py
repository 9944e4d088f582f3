# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""One process that fetches and unpacks one archive, and prints the memory it takes above idle."""

import pathlib
import sys

from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint

import loader
from benchmarks.measure import memory_above_idle
from benchmarks.package import BIG
from benchmarks.package import ROOMY
from glare_murano.package import VersionSpec
from loader.catalogs.glare import GlareCatalog


def main() -> None:
    """Fetch the newest release of a package."""
    url, token, project_id, fqn, folder = sys.argv[1:]
    session = ksa_session.Session(auth=token_endpoint.Token(url, token))
    catalog = GlareCatalog(session, endpoint=url, project_id=project_id)
    with loader.PackageLoader([catalog], loader.Cache(pathlib.Path(folder), ROOMY)) as packages:

        def fetch() -> str:
            # It is unpacked as well when its folder is asked for.
            return packages.load_package(fqn, VersionSpec.of("*")).source_directory

        print(memory_above_idle(fetch))
        assert packages.counters.bytes > BIG


if __name__ == "__main__":
    main()
