# SPDX-License-Identifier: Apache-2.0

"""Run code of packages in cells.

A cell is a child process for one request of murano-api: a static action, or a request for a schema.
A cell for a static action has the token of the user; no cell has a password of the engine. The
engine's process chooses and fetches the packages, gives the cell copies of them, and answers its
questions; see ``glare_murano.package.sandbox``.

In the engine's process run ``requests`` and ``package_answers``; in the cell run ``warm``, ``cell``
and ``cell_packages``. Both use ``cell_options``, ``cell_log`` and ``crossing_errors``.
"""
