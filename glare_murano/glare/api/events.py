# SPDX-License-Identifier: Apache-2.0

"""Send notifications of refused changes. Glare itself sends those of successful changes."""

import re

import webob
from glare.notification import Notifier

from glare_murano.glare.api import list_links
from glare_murano.service import notifications

_ARTIFACTS = re.compile(f"{list_links.PATH}(?:/([^/]+).*)?")
_READING = ("GET", "HEAD")


def send_refusal(req: webob.Request, response: webob.Response) -> None:
    """Send a notification if a response refuses a change of packages."""
    packages = _changed_packages(req)
    if packages is None or not notifications.is_refusal(response):
        return
    reason = response.json["error"]["message"]
    body = notifications.refusal(req, response.status_code, reason, packages)
    Notifier.notify(req.context, f"artifact:{notifications.REFUSE}", body)


def _changed_packages(req: webob.Request) -> list[str] | None:
    """Return the ids of the packages that a request changes.

    :returns: the ids; None if the request changes no package. The list is empty if the request
        creates a package, which has no id yet, or if the body of the request is malformed.
    """
    artifact = _ARTIFACTS.fullmatch(req.path_info)
    if artifact and req.method not in _READING:
        return [artifact[1]] if artifact[1] else []
    return notifications.changed_packages(req)
