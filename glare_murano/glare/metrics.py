# SPDX-License-Identifier: Apache-2.0

"""What the artifact type counts, and the application that shows it to Prometheus.

Counters are of one process. Where several serve one port, the environment
variable ``PROMETHEUS_MULTIPROC_DIR`` of prometheus_client adds them up. They
tell nothing of projects or packages, so that whoever watches a service may read
them.
"""

import os
from typing import Any

import prometheus_client
from prometheus_client import multiprocess

UPLOADS = prometheus_client.Counter(
    "glare_murano_uploads", "Archives that were read, checked and stored."
)
REFUSED = prometheus_client.Counter(
    "glare_murano_refused",
    "What was refused, by the rule that it breaks: archives, activations, deletions.",
    ["rule"],
)
QUERIES = prometheus_client.Histogram(
    "glare_murano_query_seconds", "How long queries took, in seconds.", ["query"]
)


def app_factory(global_conf: Any, **local_conf: Any) -> Any:
    """The WSGI application that shows the counters, for paste.deploy."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return prometheus_client.make_wsgi_app()
    registry = prometheus_client.CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return prometheus_client.make_wsgi_app(registry)
