# SPDX-License-Identifier: Apache-2.0

"""Audit records of Keystone's filter, and notifications: who did what, in both services."""

import pytest


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    from tests.functional import audited_cloud
    with audited_cloud.running(tmp_path_factory.mktemp("c")) as c:
        yield c


def test_probe(cloud):
    g = cloud.glare("member")
    from tests import packages
    a = g.publish("org.probe", "1.0.0", packages.package("org.probe"))
    print(a)
    print(g.publish_all([a["id"]], "public").text)
    print(cloud.glare("reader").yank(a["id"], "x").text)
    for e in cloud.glare_events():
        print(e["event_type"], e["payload"].get("action"), e["payload"].get("outcome"), e["payload"].get("target"), e["payload"].get("initiator"), e["payload"].get("reason"))
    i = cloud.images("member")
    d = i.publish("org.probe", "1.0.0", packages.package("org.probe"))
    print(i.publications(d["id"], visibility="public").text)
    print(cloud.images("reader").yank(d["id"], "x").text)
    print(cloud.images("reader").delete(d["id"]).text)
    print(cloud.images("member").delete(d["id"]).text)
    for e in cloud.glance_events():
        print(e["event_type"], e["payload"].get("action"), e["payload"].get("outcome"), e["payload"].get("target"), e["payload"].get("initiator"), e["payload"].get("reason"))
    assert 0
