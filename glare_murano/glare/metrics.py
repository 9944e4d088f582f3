# SPDX-License-Identifier: Apache-2.0

"""Count uploads, refusals and queries for Prometheus.

Each process has its own counters. If several processes serve a port, each process stores its
counters in the directory that the environment variable ``PROMETHEUS_MULTIPROC_DIR`` names. Then
prometheus_client adds up the counters. The counters contain no names of projects or packages.
"""

import os
from typing import Any

import prometheus_client
from prometheus_client import multiprocess

UPLOADS = prometheus_client.Counter("glare_murano_uploads", "Archives checked and stored.")
REFUSED = prometheus_client.Counter(
    "glare_murano_refused",
    "Archives, activations, publications and removals refused, by the code of the rule.",
    ["rule"],
)
QUERIES = prometheus_client.Histogram(
    "glare_murano_query_seconds", "Duration of queries in seconds, by path.", ["query"]
)


def app_factory(global_conf: Any, **local_conf: Any) -> Any:
    """Return the WSGI application that shows the counters.

    paste.deploy calls this function.
    """
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return prometheus_client.make_wsgi_app()
    registry = prometheus_client.CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return prometheus_client.make_wsgi_app(registry)
