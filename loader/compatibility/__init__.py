# SPDX-License-Identifier: Apache-2.0

"""Compare the public interfaces of two versions of a package, by SemVer.

Start reading at ``compare``. The page ``doc/source/reference/compatibility.rst`` has all rules.
"""

from loader.compatibility.changes import Change, Part, Place, Rule
from loader.compatibility.compare import Comparison, DifferentPackages, compare
from loader.compatibility.expressions import YaqlMissing
from loader.compatibility.hierarchy import Requirements
from loader.compatibility.next_version import (
    UNVERSIONED,
    Verdict,
    raised_part,
    smallest_version,
)

__all__ = [
    "UNVERSIONED",
    "Change",
    "Comparison",
    "DifferentPackages",
    "Part",
    "Place",
    "Requirements",
    "Rule",
    "Verdict",
    "YaqlMissing",
    "compare",
    "raised_part",
    "smallest_version",
]
