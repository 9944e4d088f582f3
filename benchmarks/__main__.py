# SPDX-License-Identifier: Apache-2.0

"""Run all benchmarks, print the figures, and write them to ``build/bench.json``.

The exit code is 1 if a figure misses its goal.
"""

import json
import pathlib
import sys

from benchmarks import (
    commands,
    comparing,
    deploying,
    forms,
    glance,
    glare,
    loading,
    murano_listing,
    package,
    pages,
    planning,
    scaling,
    uploads,
)
from benchmarks.measure import Figure

BENCHMARKS = (
    *package.BENCHMARKS,
    *uploads.BENCHMARKS,
    *comparing.BENCHMARKS,
    *planning.BENCHMARKS,
    *glare.BENCHMARKS,
    *glance.BENCHMARKS,
    *loading.BENCHMARKS,
    *deploying.BENCHMARKS,
    *forms.BENCHMARKS,
    *scaling.BENCHMARKS,
    *commands.BENCHMARKS,
    *murano_listing.BENCHMARKS,
    *pages.BENCHMARKS,
)
REPORT = pathlib.Path("build", "bench.json")


def main() -> int:
    """Run the benchmarks whose names contain an argument; without arguments, all.

    :returns: the exit code.
    """
    wanted = sys.argv[1:]
    figures = [
        _print(figure)
        for benchmark in BENCHMARKS
        if not wanted or any(word in benchmark.__name__ for word in wanted)
        for figure in benchmark()
    ]
    REPORT.parent.mkdir(exist_ok=True)
    report = [
        {"name": f.name, "value": f.value, "unit": f.unit, "goal": f.goal, "holds": f.holds}
        for f in figures
    ]
    REPORT.write_text(json.dumps(report, indent=2) + "\n")
    return 0 if all(figure.holds for figure in figures) else 1


def _print(figure: Figure) -> Figure:
    verdict = "holds" if figure.holds else "MISSED"
    print(f"{figure.name:<70} {figure.value:8.2f} {figure.unit:<6} goal {figure.goal:g} {verdict}")
    return figure


if __name__ == "__main__":
    sys.exit(main())
