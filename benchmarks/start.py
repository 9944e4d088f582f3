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

"""One process that has started, and loads the application when it gets a line.

It tells how many archives it has downloaded, and ends with its input.
"""

import sys

from oslo_config import cfg

import loader
from benchmarks import closure


def main() -> None:
    """Load the application through the loader that a file configures."""
    conf = cfg.ConfigOpts()
    conf(["--config-file", sys.argv[1]], project="loader")
    with loader.PackageLoader.from_config(conf) as packages:
        print("ready", flush=True)
        sys.stdin.readline()
        closure.load(packages)
        print(packages.counters.downloads, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
