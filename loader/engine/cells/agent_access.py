# SPDX-License-Identifier: Apache-2.0

"""Choose what the cell of a task gets of the RabbitMQ servers of Murano's agents.

Packages write the password of the agents into virtual machines, so a cell needs it. But a password
of Murano's own services would let a package read and send the messages of all tasks.
"""

import dataclasses
from collections.abc import Container, Mapping
from typing import Any

from oslo_config import cfg

from loader.engine import agent_brokers
from loader.engine.agent_brokers import AgentBroker
from loader.engine.destinations import Destination

# The core library requires texts.
_NO_CREDENTIALS = {"login": "", "password": ""}


@dataclasses.dataclass(frozen=True)
class AgentAccess:
    """The RabbitMQ servers of the agents that a cell may use.

    :param brokers: the servers, with their passwords.
    :param options: the options of the group ``[rabbitmq]``. The login and the password are empty if
        the cell must not know them.
    :param withheld: why the cell does not get a server; empty if it gets all of them.
    """

    brokers: tuple[AgentBroker, ...]
    options: Mapping[str, Any]
    withheld: str

    def to_json(self) -> dict[str, Any]:
        """Return values for JSON, from which ``from_json`` makes the same object."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "AgentAccess":
        """Make an object from the result of ``to_json``."""
        brokers = (
            AgentBroker(**{**each, "destination": Destination(**each["destination"])})
            for each in content["brokers"]
        )
        return cls(tuple(brokers), content["options"], content["withheld"])


def without_withheld(values: Any, conf: cfg.ConfigOpts) -> Any:
    """Return a class config without the credentials of servers that cells do not get.

    :param values: the values that the operator has written for a class.
    :raises ValueError: if a class config of environments is not valid.
    """
    regions = values.get("regionConfigs") if isinstance(values, Mapping) else None
    if not isinstance(regions, Mapping) or conf.engine.share_agent_password:
        return values
    withheld = agent_brokers.shared(conf)
    return {
        **values,
        "regionConfigs": {name: _without(region, withheld) for name, region in regions.items()},
    }


def _without(region: Any, withheld: Container[AgentBroker]) -> Any:
    settings = region.get("agentRabbitMq") if isinstance(region, Mapping) else None
    if not isinstance(settings, Mapping) or AgentBroker.of(settings) not in withheld:
        return region
    return {**region, "agentRabbitMq": {**settings, **_NO_CREDENTIALS}}


def of_cells(conf: cfg.ConfigOpts) -> AgentAccess:
    """Return what the cells of tasks get.

    :raises ValueError: if a class config of environments is not valid.
    """
    options = dict(conf.rabbitmq)
    if conf.engine.disable_murano_agent:
        return AgentAccess((), {**options, **_NO_CREDENTIALS}, "")
    found = tuple(dict.fromkeys(agent_brokers.of_operator(conf)))
    shared = {} if conf.engine.share_agent_password else agent_brokers.shared(conf)
    given = tuple(each for each in found if each not in shared)
    if AgentBroker.of(conf.rabbitmq) not in given:
        options |= _NO_CREDENTIALS
    reasons = [f"{broker.destination} has the {what}" for broker, what in shared.items()]
    return AgentAccess(given, options, "; ".join(reasons))
