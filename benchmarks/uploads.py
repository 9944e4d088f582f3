# SPDX-License-Identifier: Apache-2.0

"""What an uploaded archive costs: a small one itself, and a costly one the other requests.

The times are wall-clock times, since waiting is the point. In each figure, both times are of the
same run.
"""

import concurrent.futures
import contextlib
import http.client
import itertools
import statistics
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator

from benchmarks.measure import Figure, scratch, seconds, wall
from glare_murano import archive_reading, archive_settings
from glare_murano.package import Archive, package_types, read_contents
from glare_murano.package.ui_form import FormCheck
from glare_murano.stored_contents import StoredContents
from tests import packages
from tests.functional import databases, sites
from tests.functional.client import ARTIFACTS
from tests.functional.glance import service
from tests.functional.glance.image_client import ImageClient
from tests.hostile import cases
from tests.hostile.costly import COSTLY

_OPTIONS = {option.name: option.default for option in archive_settings.OPTIONS}
_ROUNDS = 50
# How long the other requests are measured without an upload, before each upload.
_QUIET_SECONDS = 0.5
_PAUSE = 0.002


def reading_small_archives() -> Iterator[Figure]:
    """Compare reading a small archive in a child process with reading it in this process."""
    data = packages.package("org.example.app")
    with tempfile.TemporaryFile() as file:
        file.write(data)

        def in_child() -> None:
            archive_reading.read(_OPTIONS, file, "project", "org.example.app")

        def here() -> None:
            with Archive.open(file) as archive:
                contents = read_contents(archive, package_types.describe, FormCheck.ENFORCE)
                archive.verify()
            StoredContents.of(contents)

        # The first one starts the warm process.
        in_child()
        times = [(seconds(in_child, clock=wall), seconds(here, clock=wall)) for _ in range(_ROUNDS)]
    value = statistics.median(child - own for child, own in times) * 1000
    yield Figure("reading a small archive in a child - in the same process", value, "ms", 20)


def others_in_glare() -> Iterator[Figure]:
    """Measure requests to a Glare process while it receives each costly archive."""
    with sites.of_database("mariadb", scratch(), number=1) as site:
        projects = (f"project{number}" for number in itertools.count())

        def upload(data: bytes) -> None:
            client = site.client(next(projects))
            client.upload(client.create(cases.NAME, cases.VERSION).json()["id"], data)

        draft = site.client("prober").create("org.example.probe").json()["id"]
        headers = {"X-Auth-Token": "user:prober:member"}
        prober = _Prober(site.urls[0], f"{ARTIFACTS}/{draft}", headers)
        yield _others("Glare", upload, prober)


def others_in_glance() -> Iterator[Figure]:
    """Measure requests to a Glance process while it imports each costly archive."""
    with service.running(scratch(), databases.mariadb) as glance:
        projects = (f"project{number}" for number in itertools.count())

        def upload(data: bytes) -> None:
            client = ImageClient(glance.url, f"user:{next(projects)}:member,reader")
            client.publish_draft(cases.NAME, cases.VERSION, data)

        prober = ImageClient(glance.url, "user:prober:member,reader")
        image_id = prober.create("org.example.probe").json()["id"]
        headers = {"X-Auth-Token": prober.token}
        yield _others("Glance", upload, _Prober(glance.url, f"/v2/images/{image_id}", headers))


class _Prober:
    """Sends a light request again and again, over one connection."""

    def __init__(self, url: str, path: str, headers: dict[str, str]) -> None:
        where = urllib.parse.urlsplit(url)
        self._connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=120)
        self._path = path
        self._headers = headers

    def worst(self, goes_on: Callable[[], bool]) -> float:
        """Return the longest time of a request, in seconds, while a condition holds."""
        worst = 0.0
        while goes_on():
            start = wall()
            self._connection.request("GET", self._path, headers=self._headers)
            with contextlib.closing(self._connection.getresponse()) as response:
                assert response.status == http.client.OK, response.read()
                response.read()
            worst = max(worst, wall() - start)
            time.sleep(_PAUSE)
        return worst


def _others(name: str, upload: Callable[[bytes], None], prober: _Prober) -> Figure:
    archives = {case.name: case.build() for case in COSTLY if not case.options}
    # The first upload starts the warm process.
    upload(cases.good())
    alone, beside = [], []
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        for title, data in archives.items():
            end = wall() + _QUIET_SECONDS
            alone.append(prober.worst(lambda end=end: wall() < end))
            running = executor.submit(upload, data)
            beside.append(prober.worst(lambda running=running: not running.done()))
            running.result()
            print(f"    {title}: {beside[-1]:.3f} s, {alone[-1]:.3f} s alone")
    value = max(beside) - max(alone)
    return Figure(f"{name}: worst request beside costly uploads - alone", value, "s", 0.2)


BENCHMARKS = (reading_small_archives, others_in_glare, others_in_glance)
