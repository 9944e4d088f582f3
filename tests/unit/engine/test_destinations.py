# SPDX-License-Identifier: Apache-2.0

"""Hosts and ports that packages can make the engine connect to."""

import pytest
import requests
from oslo_config import cfg

from loader import config
from loader.catalogs import options
from loader.engine import destinations
from loader.engine.destinations import CheckedAdapter, Destination, ForbiddenDestination
from tests import web


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("http://heat.example.org/v1", "heat.example.org", 80),
        ("https://Heat.Example.org", "heat.example.org", 443),
        ("http://10.0.0.1:8004/v1/%(project_id)s", "10.0.0.1", 8004),
        ("http://[fd00::1]:8004", "fd00::1", 8004),
        ("//127.0.0.1:9", "127.0.0.1", 9),
        ("http://good.example.org:80@evil.example.org/", "evil.example.org", 80),
    ],
)
def test_a_url_has_a_host_and_a_port(url: str, host: str, port: int) -> None:
    assert Destination.of_url(url) == Destination(host, port)


@pytest.mark.parametrize("url", ["", "file:///etc/passwd", "//host", "http://:80", "http://h:x"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"names no host|Port could not be cast"):
        Destination.of_url(url)


def test_a_destination_is_written_as_in_a_url() -> None:
    assert [str(Destination(host, 80)) for host in ("a.org", "fd00::1")] == [
        "a.org:80",
        "[fd00::1]:80",
    ]


def test_the_operator_names_hosts_with_ports() -> None:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    options.register(conf, config.SERVICE_OPTIONS)
    assert destinations.reachable_endpoints(conf) == set()
    conf.set_override("reachable_endpoints", ["A.example.org:80", "[fd00::1]:5672"], "engine")

    assert destinations.reachable_endpoints(conf) == {
        Destination("a.example.org", 80),
        Destination("fd00::1", 5672),
    }


@pytest.mark.parametrize("group", ["heat", "neutron", "mistral", "glance", "murano"])
def test_the_configuration_names_endpoints(group: str) -> None:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    options.register(conf, config.SERVICE_OPTIONS)
    conf.register_opt(cfg.StrOpt("url"), group)
    conf.set_override("url", "http://service.example.org:8082/v1", group)

    assert destinations.of_services(conf, auth=None) == {Destination("service.example.org", 8082)}


def test_a_session_connects_to_allowed_destinations_only() -> None:
    with (
        web.recording(lambda _: web.Answer(200, "answer")) as foreign,
        web.recording(lambda _: web.Answer(307, location=f"{foreign.url}/")) as service,
    ):
        allowed = {Destination.of_url(service.url)}
        with requests.Session() as session:
            destinations.restrict(session, lambda: allowed)
            with pytest.raises(ForbiddenDestination, match=foreign.url.removeprefix("http://")):
                session.get(service.url)
            assert foreign.requests == []
            # The same port of another name of the host is another destination.
            with pytest.raises(ForbiddenDestination, match="localhost"):
                session.get(service.url.replace("127.0.0.1", "localhost"))
            allowed.add(Destination.of_url(foreign.url))

            assert session.get(service.url).json() == "answer"

        assert all(isinstance(each, CheckedAdapter) for each in session.adapters.values())
