# SPDX-License-Identifier: Apache-2.0

"""The numbers of examples, kills and interruptions that the tests try.

``make test`` and ``make test-programs`` try a sample. ``FULL_TESTS=1`` in the environment tries
more, and a larger number multiplies: ``FULL_TESTS=10 pytest
tests/unit/package`` tries ten times as many examples.
"""

import os

_TIMES = int(os.environ.get("FULL_TESTS") or 0)

FULL = _TIMES > 0


def choose(sample: int, full: int) -> int:
    """Return the number to try."""
    return full * _TIMES or sample


# Examples of properties of version ranges, of files, and of requirement graphs.
RANGES = choose(400, 5000)
FILES = choose(150, 1250)
GRAPHS = choose(50, 250)
# Random edits of real packages that are classified, and those for each property.
EDITS = choose(60, 125)
EDIT_PROPERTIES = choose(10, 25)
# Random catalogues to compare planning with its rule.
CATALOGUES = choose(150, 2500)

# Random contracts and inputs of real classes, each with values to compare with its schema.
CONTRACTS = choose(150, 1250)

# Examples of requests to a running Glare, and of closures of packages in one.
REQUESTS = choose(50, 375)
CLOSURES = choose(10, 50)

# Sequences of operations on a cache, and processes that are killed while they fill one.
RUNS = choose(25, 125)
KILLS = choose(16, 125)

# Rounds of each race between two API processes, and API processes that are killed.
RACES = choose(10, 50)
PUBLICATIONS = choose(3, 12)
SERVER_KILLS = choose(5, 12)
# Processes of Glance that are killed while they import a package.
IMPORT_KILLS = choose(1, 10)

# Limit for each of the full tests; for a sample, pyproject.toml has it.
FULL_SECONDS = 1800 * _TIMES
