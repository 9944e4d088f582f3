# SPDX-License-Identifier: Apache-2.0

"""The RabbitMQ that a package gets for the agents."""

import pathlib
from typing import Any

import pytest
from kombu.utils import url as kombu_url
from oslo_config import cfg

from loader import config
from loader.catalogs import options
from loader.engine import agent_brokers
from loader.engine.destinations import ForbiddenDestination

OWN = {
    "host": "rabbit.example.org",
    "port": 5671,
    "login": "agents",
    "password": "p/w@:?",
    "virtual_host": "a/b",
}
FILE = "io.murano.Environment-0.1.yaml"


@pytest.fixture
def conf(tmp_path: pathlib.Path) -> Any:
    found = cfg.ConfigOpts()
    found([], default_config_files=[])
    # Murano's own, which these tests do not import.
    for option, value in OWN.items():
        found.register_opt(cfg.Opt(option, default=value), "rabbitmq")
    for option, is_set in {"ssl": True, "insecure": False}.items():
        found.register_opt(cfg.BoolOpt(option, default=is_set), "rabbitmq")
    options.register(found, config.SERVICE_OPTIONS)
    found.register_opt(cfg.StrOpt("class_configs", default=str(tmp_path)), "engine")
    return found


def test_the_operators_settings_are_used_for_tls(conf: Any) -> None:
    given = {**OWN, "ssl": False, "insecure": True}

    found = agent_brokers.select(given, conf)

    assert (found.ssl, found.insecure) == (True, False)
    assert "p/w" not in repr(found)


def test_the_url_of_the_client_names_what_was_compared(conf: Any) -> None:
    found = agent_brokers.select(OWN, conf).arguments()

    url = "amqp://{login}:{password}@{host}:{port}/{virtual_host}".format(**found)
    parsed = kombu_url.parse_url(url)
    assert (parsed["hostname"], parsed["port"]) == (OWN["host"], OWN["port"])
    assert (parsed["userid"], parsed["password"]) == (OWN["login"], OWN["password"])
    assert parsed["virtual_host"] == OWN["virtual_host"]


@pytest.mark.parametrize("key", OWN)
def test_each_setting_has_to_be_the_operators(conf: Any, key: str) -> None:
    given = {**OWN, key: 5672 if key == "port" else "other"}

    with pytest.raises(ForbiddenDestination, match="reachable_endpoints") as raised:
        agent_brokers.select(given, conf)

    assert OWN["password"] not in str(raised.value)


@pytest.mark.parametrize(
    "settings", [None, [], {}, {"host": None}, {"host": ["a"]}, {"host": "a", "port": "b"}]
)
def test_settings_without_a_host_are_refused(conf: Any, settings: Any) -> None:
    with pytest.raises(ValueError, match=r"agentRabbitMq|invalid literal"):
        agent_brokers.select(settings, conf)


def test_regions_of_the_class_config_have_the_defaults_of_murano(
    conf: Any, tmp_path: pathlib.Path
) -> None:
    region = "agentRabbitMq: {host: two.example.org, login: a, password: 1}"
    (tmp_path / FILE).write_text(f"regionConfigs:\n  two: {{{region}}}\n")
    given = {"host": "two.example.org", "port": 5672, "login": "a", "password": "1"}

    found = agent_brokers.select({**given, "virtual_host": "/"}, conf)

    assert str(found.destination) == "two.example.org:5672"


@pytest.mark.parametrize(
    "text", ["{one: 1}", "{one: {}}", "{one: {agentRabbitMq: {}}}", "one", "[one]"]
)
def test_a_mistake_in_the_class_config_names_the_file(
    conf: Any, tmp_path: pathlib.Path, text: str
) -> None:
    (tmp_path / FILE).write_text(f"regionConfigs: {text}\n")

    with pytest.raises(ValueError, match=rf"{FILE}: regionConfigs cannot be read"):
        agent_brokers.select({**OWN, "host": "other"}, conf)
