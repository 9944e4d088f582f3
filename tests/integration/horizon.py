# SPDX-License-Identifier: Apache-2.0

"""The real Horizon with the real murano-dashboard, in an environment and a process of its own.

It is set up as murano-dashboard's guide says. Of Nova, which the forms of applications ask for
flavors, there is a stand-in without any.
"""

import contextlib
import html
import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import requests

from tests import prerequisites, processes, web
from tests.functional import keystone

_LOCAL_SETTINGS = """\
ALLOWED_HOSTS = ["127.0.0.1"]
CACHES = {{"default": {{"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}}}
COMPRESS_ENABLED = False
COMPRESS_PRECOMPILERS = ()
METADATA_CACHE_DIR = "{folder}/packages"
OPENSTACK_KEYSTONE_URL = "{keystone}"
SECRET_KEY = "tests"
SESSION_ENGINE = "django.contrib.sessions.backends.file"
SESSION_FILE_PATH = "{folder}/sessions"
"""

_SERVER = """\
import sys
import waitress
from openstack_dashboard.wsgi import application
from openstack_dashboard.api import glance
# The wizard of an import passes a version, which Horizon does not take any more.
glanceclient = glance.glanceclient
glance.glanceclient = lambda request, version=None: glanceclient(request)
waitress.serve(application, host="127.0.0.1", port=sys.argv[1])
"""

_LIMITS = dict.fromkeys(
    (
        *("maxTotalInstances", "maxTotalCores", "maxTotalRAMSize", "maxTotalKeypairs"),
        *("totalInstancesUsed", "totalCoresUsed", "totalRAMUsed"),
    ),
    0,
)
_COMPUTE = {
    "flavors": [],
    "limits": {"absolute": _LIMITS, "rate": []},
    "version": {"id": "v2.1", "version": "2.1", "min_version": "2.1", "status": "CURRENT"},
}


class Dashboard:
    """The pages of the dashboard as one user sees them, with the cookies of a browser."""

    def __init__(self, url: str, user: str) -> None:
        self._url = f"{url}/app-catalog"
        self._http = requests.Session()
        form = {"region": "default", "username": user, "password": keystone.PASSWORD}
        page = self.post("../auth/login/", **form, next="/app-catalog/packages/")
        assert 'name="password"' not in page.text, page.text

    def get(self, path: str, **query: Any) -> requests.Response:
        """Request a page below ``/app-catalog``."""
        answer = self._http.get(f"{self._url}/{path}", params=query, timeout=120)
        assert answer.ok, (path, answer.text)
        return answer

    def post(
        self, path: str, files: dict[str, tuple[str, bytes]] | None = None, **fields: Any
    ) -> requests.Response:
        """Send a form, and return the page that the browser goes to."""
        url = f"{self._url}/{path}"
        if "csrftoken" not in self._http.cookies:
            self._http.get(url, timeout=120)
        data = {"csrfmiddlewaretoken": self._http.cookies["csrftoken"], **fields}
        answer = self._http.post(url, data=data, files=files, headers={"Referer": url}, timeout=120)
        assert answer.ok, (path, answer.text)
        return answer


def messages(page: requests.Response) -> list[str]:
    """Return what a page reports of the last action, each beginning with success or error."""
    found = re.findall(r' alert-dismissable fade in">.*?<p>(.*?)</p>', page.text, re.S)
    texts = (html.unescape(re.sub("<[^>]*>", "", text)) for text in found)
    return [" ".join(text.split()) for text in texts]


@contextlib.contextmanager
def running(folder: pathlib.Path, identity: keystone.Keystone) -> Iterator[str]:
    """Run Horizon for the services of a Keystone; yields its URL."""
    programs = prerequisites.dashboard()
    (folder / "local").mkdir(parents=True)
    (folder / "sessions").mkdir()
    (folder / "packages").mkdir()
    (folder / "local" / "__init__.py").touch()
    settings = _LOCAL_SETTINGS.format(folder=folder, keystone=identity.url)
    (folder / "local" / "local_settings.py").write_text(settings)
    port = processes.free_port()
    command = (programs / "python", "-W", "ignore", "-c", _SERVER, port)
    environment = {
        "DJANGO_SETTINGS_MODULE": "openstack_dashboard.settings",
        "PYTHONPATH": str(folder),
    }
    # The wizard of an import looks for Glance, and has no image for it.
    identity.add_service("glance", "image", "http://127.0.0.1:1")
    with web.serving(json.dumps(_COMPUTE).encode(), content_type="application/json") as url:
        identity.add_service("nova", "compute", f"{url}/v2.1")
        with processes.listening(command, port, folder / "horizon.out", environment):
            yield f"http://127.0.0.1:{port}"
