# SPDX-License-Identifier: Apache-2.0

"""A process that renders pages once, and prints what it has taken as JSON."""

import json
import pathlib
import resource
import sys
import time

from loader.site import rendering, sources


def main() -> None:
    """Render the packages in a directory into another one."""
    folder, target = sys.argv[1:]
    start = time.monotonic()
    report = rendering.render(sources.Local([folder]), pathlib.Path(target))
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    own, workers = (resource.getrusage(kind).ru_maxrss * 1024 for kind in kinds)
    print(
        json.dumps(
            {
                "seconds": time.monotonic() - start,
                "memory": own,
                "workers": workers,
                "written": report.written,
            }
        )
    )


if __name__ == "__main__":
    main()
