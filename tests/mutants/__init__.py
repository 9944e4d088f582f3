# SPDX-License-Identifier: Apache-2.0

"""Mutants: changed code that a test must notice.

    python -m tests.mutants [AREA...]

Cosmic Ray changes one place of a module at a time, such as ``<`` to ``<=``, and runs the tests. A
mutant that passes all tests has survived: the changed code is not tested, or the change has no
effect. ``areas.toml`` lists the areas of the code, and ``without_effect.toml`` the mutants that
change nothing that a test could see, each with the reason.

Each area has a copy of the last commit in ``.cache/mutants``, the record of which tests run which
lines, and a database with the results so far. A run that was stopped goes on where it has ended,
until another commit is tested.
"""
