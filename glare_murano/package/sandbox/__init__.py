# SPDX-License-Identifier: Apache-2.0

"""Run a function on a hostile file in a child process with limits, and return the child's answer.

Each file gets a new child, since a file must not affect the next file, and a process cannot drop
its limits. The children are forked by a warm process, which has already imported the function; see
``fork_server``. A child has no environment variables, no configuration, and no open files of this
process. The child's answer is JSON. The caller must check the answer, since nothing in it can be
trusted. ``conversation`` lets a child send queries, instead of reading a file. ``turns`` lets many
callers share few children.

The child runs as the same user as this process. So the limits protect against faults, and against
files that exploit faults, but not against a hostile plug-in that the operator has installed. The
kernel also restricts what the child can reach; see ``walls`` and ``system_calls``.
"""

from glare_murano.package.sandbox.child_errors import ChildFailed, LimitReached
from glare_murano.package.sandbox.children import MAX_ANSWER, Answer, ChildSettings, run
from glare_murano.package.sandbox.conversation import Queries, converse
from glare_murano.package.sandbox.turns import Busy, Turns
from glare_murano.package.sandbox.warm_processes import (
    Function,
    find_interpreter,
    is_interpreter,
    preload,
    start,
)

__all__ = [
    "MAX_ANSWER",
    "Answer",
    "Busy",
    "ChildFailed",
    "ChildSettings",
    "Function",
    "LimitReached",
    "Queries",
    "Turns",
    "converse",
    "find_interpreter",
    "is_interpreter",
    "preload",
    "run",
    "start",
]
