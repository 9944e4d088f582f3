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

"""The command ``murano-glare-engine``: Murano's engine, with the loader in place.

It takes the options and the configuration of ``murano-engine``.
"""

import sys


def main() -> None:
    """Run the engine's service."""
    # Murano's own module comes first: it makes the standard library
    # cooperative, before the engine and its adapter are imported.
    from murano.cmd import engine as command

    from loader import engine

    engine.install()
    # By this name oslo.config looks for configuration files.
    sys.argv[0] = "murano-engine"
    command.main()


if __name__ == "__main__":
    main()
