# SPDX-License-Identifier: Apache-2.0

"""Glare notifies of changes and refusals, with the user; a reader changes nothing."""

from collections.abc import Callable, Iterator
from typing import Any

import oslo_messaging
import pytest
from glare.notification import Notifier
from oslo_config import cfg
from oslo_messaging.notify import _impl_test as sent

from tests import packages
from tests.functional.client import PUBLICATIONS, Client

Events = Callable[[], list[tuple[str, Any, str]]]


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> Iterator[Events]:
    """What Glare has sent since the last call: verb, packages, and user."""
    transport = oslo_messaging.get_notification_transport(cfg.CONF, url="fake://")
    notifier = oslo_messaging.Notifier(transport, publisher_id="test", driver="test")
    monkeypatch.setattr(Notifier, "GLARE_NOTIFIER", notifier)
    sent.reset()

    def new() -> list[tuple[str, Any, str]]:
        bodies = [(found["event_type"], found["payload"]) for _, found, *_ in sent.NOTIFICATIONS]
        sent.reset()
        return [
            (
                event.removeprefix("artifact.artifact:"),
                body.get("packages", body.get("id")),
                body["initiator"]["user_id"],
            )
            for event, body in bodies
        ]

    yield new
    sent.reset()


def test_each_change_and_each_refusal_names_the_user(
    glare: Client, project: str, name: str, events: Events
) -> None:
    reader = Client(glare.url, f"guest:{project}:reader")
    package = glare.create(name).json()["id"]
    assert glare.upload(package, packages.package(name)).status_code == 200
    assert ("create", package, "user") in events()

    for send in (
        lambda: reader.create(name),
        lambda: glare.post(PUBLICATIONS, {"ids": [package]}),
    ):
        assert send().status_code in (400, 403)
    assert events() == [("refuse", [], "guest"), ("refuse", [], "user")]

    for send in (
        lambda: reader.upload(package, b""),
        lambda: reader.publish_all([package], "private"),
        lambda: reader.set(package, "yanked", "bad"),
        lambda: reader.yank(package, "bad"),
        lambda: reader.delete(package),
    ):
        assert send().status_code == 403
        assert events() == [("refuse", [package], "guest")]

    assert glare.publish_all([package], "private").status_code == 200
    assert glare.set(package, "yanked", "bad").status_code == 200
    # Glare sends an update although nothing has changed.
    assert glare.yank(package, "bad").status_code == 200
    assert glare.yank(package, "").status_code == 200
    assert glare.delete(package).status_code == 204
    verbs = ["update", "activate", "yank", "update", "update", "unyank", "update", "delete"]
    assert events() == [(verb, package, "user") for verb in verbs]


def test_a_refused_query_or_download_is_not_notified(
    glare: Client, name: str, events: Events
) -> None:
    assert glare.resolve(requirements={name: "?"}).status_code == 400
    assert glare.request("GET", "/missing").status_code == 404
    assert events() == []
