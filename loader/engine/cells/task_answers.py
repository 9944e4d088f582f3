# SPDX-License-Identifier: Apache-2.0

"""Answer the queries that only the cell of a task sends, in the engine's process.

The queries have the form that ``package_answers`` describes. A cell gets tokens of its own trust,
and sends notifications about its own environment only.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import oslo_messaging
from keystoneauth1 import exceptions as ksa_exceptions
from murano.common import auth_utils, rpc, uuidutils
from murano.common import config as murano_config

from glare_murano.package.errors import escaped
from loader.engine import agent_signatures, credentials, task_usage
from loader.engine.agent_signatures import NoSigningKey
from loader.engine.cells.package_answers import InvalidQuery, PackageAnswers
from loader.engine.credentials import ExecutionSession
from loader.engine.task_system_classes import ForbiddenQueue

CONF = murano_config.CONF

# The longest id of an object in murano-api's database, in characters.
_MAX_ID = 255
# The longest text of a report, in characters. The cell has shortened it, and says so at its end.
_MAX_TEXT = task_usage.MAX_MESSAGE + 50
_LEVELS = ("info", "warning", "error")
# The most tokens that a cell requests. A token is valid for an hour by default.
_MAX_TOKENS = 200
# The most characters of all messages that a cell lets sign.
_MAX_SIGNED = 256 * 1024**2
# Each part counts as this many characters more, since it takes time even if it is empty.
_PER_PART = 1000
# The most notifications of a cell, besides ``[engine] max_messages``.
_MAX_NOTIFICATIONS = 1000


class TaskAnswers:
    """Answers the queries of the cell of one task."""

    def __init__(
        self, packages: PackageAnswers, session: ExecutionSession, environment_id: str
    ) -> None:
        """Prepare to answer.

        :param packages: the answers about packages.
        :param session: the credentials of the task.
        :param environment_id: the id of the task's environment.
        """
        self._packages = packages
        self._session = session
        self._environment_id = environment_id
        self._tokens = self._signed = 0
        self._left = CONF.engine.max_messages + _MAX_NOTIFICATIONS
        self._notifier: oslo_messaging.Notifier | None = None
        self._signature: agent_signatures.Signature | None = None

    def answer(self, query: object) -> Any:
        """Answer a query.

        :raises InvalidQuery: if the query does not have the form of a query, or if the cell has
            sent too many notifications.
        """
        match query:
            case {"query": "token"}:
                return self._token()
            case {"query": "notification", "event": str(event), "payload": dict(payload)}:
                return self._notify(event, payload)
            case {
                "query": "signed part",
                "queue": str(queue),
                "part": str(part),
                "is_first": bool(is_first),
            }:
                return self._sign_part(queue, part, is_first)
            case {"query": "signature"}:
                return self._sign()
        return self._packages.answer(query)

    def _token(self) -> dict[str, Any]:
        """Answer a token of the task's trust, with its description by Keystone."""
        self._tokens += 1
        if self._tokens > _MAX_TOKENS:
            raise InvalidQuery("it has requested too many tokens")
        if self._session.trust_id is None:
            return {"error": "the task has no trust", "is_missing": False}
        try:
            client = auth_utils.get_client_session(self._session)
            found = client.auth.get_auth_ref(client)
        except (ksa_exceptions.ClientException, credentials.ForbiddenTrust) as error:
            return {"error": f"no token of the trust: {error}", "is_missing": False}
        return {"value": {"token": found.auth_token, "body": found._data}}

    def _notify(self, event: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Send a notification to murano-api, about the task's environment."""
        self._left -= 1
        if self._left < 0:
            raise InvalidQuery("it has sent too many notifications")
        if self._notifier is None:
            if not rpc.initialized():
                rpc.init()
            self._notifier = oslo_messaging.Notifier(
                rpc.NOTIFICATION_TRANSPORT,
                publisher_id=uuidutils.generate_uuid(),
                topics=["murano"],
            )
        self._notifier.info({}, event, self._checked(event, payload))
        return {"value": None}

    def _checked(self, event: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return the payload of a notification, with what murano-api expects and nothing else.

        :raises InvalidQuery: if a value has another type.
        """
        match event, payload:
            case (
                "murano.report_notification",
                {"id": str(id_), "text": str(text), "details": str() | None, "level": str(level)},
            ) if level in _LEVELS:
                details = payload["details"]
                return {
                    "id": _storable(id_)[:_MAX_ID],
                    "text": _storable(text)[:_MAX_TEXT],
                    "details": None if details is None else _storable(details)[:_MAX_TEXT],
                    "level": level,
                    "environment_id": self._environment_id,
                    "timestamp": datetime.now(UTC).replace(tzinfo=None).isoformat(),
                }
            case (
                "murano.track_instance",
                {
                    "instance": str(),
                    "instance_type": int(),
                    "type_name": str(),
                    "type_title": str() | None,
                    "unit_count": int() | None,
                },
            ):
                names = ("instance", "instance_type", "type_name", "type_title", "unit_count")
                return self._instance(payload, names)
            case ("murano.untrack_instance", {"instance": str(), "instance_type": int()}):
                return self._instance(payload, ("instance", "instance_type"))
        raise InvalidQuery(f"a cell has sent the notification {escaped(event[:80])} wrongly")

    def _instance(self, payload: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """Return the payload of a notification about an instance.

        :raises InvalidQuery: if a number is too large for murano-api's database.
        """
        known = {name: payload[name] for name in names}
        for name, value in known.items():
            if isinstance(value, str):
                known[name] = _storable(value)[:_MAX_ID]
            elif value is not None and (isinstance(value, bool) or abs(value) >= 2**31):
                raise InvalidQuery("a number of an instance is too large")
        return {**known, "environment": self._environment_id}

    def _sign_part(self, queue: str, part: str, is_first: bool) -> dict[str, Any]:
        """Add a part to the message that is signed next.

        :raises InvalidQuery: if the messages of the task are too long together, or a part or the
            queue is not valid text.
        """
        self._signed += len(queue) + len(part) + _PER_PART
        if self._signed > _MAX_SIGNED:
            raise InvalidQuery("it has sent too many messages to be signed")
        try:
            if is_first or self._signature is None:
                self._signature = agent_signatures.Signature(CONF, self._environment_id, queue)
            self._signature.update(part)
        except (NoSigningKey, ForbiddenQueue) as error:
            return {"error": str(error), "is_missing": False}
        except UnicodeError as error:
            raise InvalidQuery("a queue or a part of a message is not valid text") from error
        return {"value": None}

    def _sign(self) -> dict[str, Any]:
        """Answer the signature of a message, for an agent of the task's environment."""
        if self._signature is None:
            raise InvalidQuery("a cell has sent no message to be signed")
        signature, self._signature = self._signature, None
        return {"value": signature.sign()}


def _storable(text: str) -> str:
    """Escape NUL and halves of surrogate pairs, which no database stores."""
    return text.encode(errors="backslashreplace").decode().replace("\0", r"\0")
