# SPDX-License-Identifier: Apache-2.0

"""Run code of packages in cells.

A cell is a child process for one request of murano-api: a static action, a request for a schema, or
a task. A cell has the token of the user, if it needs one, and no password of the engine. The
engine's process chooses and fetches the packages, gives the cell copies of them, and answers its
queries; see ``glare_murano.package.sandbox``.

In the engine's process run ``request_cells``, ``task_cells``, ``cell_calls``, ``cell_reach``,
``described_packages``, ``package_answers`` and ``task_answers``; in the cell run ``warm``,
``cell``, ``cell_packages`` and ``cell_tasks``. Both use ``agent_access``, ``cell_options``,
``cell_log``, ``crossing_errors`` and ``endpoints``.
"""
