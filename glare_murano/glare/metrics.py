# SPDX-License-Identifier: Apache-2.0

"""Counters of the artifact type, and the application that exports them to Prometheus.

Each process has counters of its own. Where several processes serve one port,
prometheus_client adds them up in the directory that ``PROMETHEUS_MULTIPROC_DIR``
names. The counters name no projects or packages, so that any operator may read them.
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
    """Return the WSGI application that exports the counters, for paste.deploy."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return prometheus_client.make_wsgi_app()
    registry = prometheus_client.CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return prometheus_client.make_wsgi_app(registry)
