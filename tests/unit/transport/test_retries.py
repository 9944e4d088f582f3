# SPDX-License-Identifier: Apache-2.0

"""The repetition of requests."""

import pytest
from keystoneauth1 import exceptions as ksa_exceptions

from loader.transport.deadlines import Deadline
from loader.transport.retries import retrying


def test_a_server_s_message_does_not_control_the_terminal(caplog: pytest.LogCaptureFixture) -> None:
    failures = [ksa_exceptions.ServiceUnavailable("\x1b[2Jcleared\nanother line")]

    def call() -> str:
        if failures:
            raise failures.pop()
        return "an answer"

    with caplog.at_level("INFO"), Deadline(60, "a request", "not complete in time") as deadline:
        assert retrying(2, deadline)(call) == "an answer"

    (message,) = caplog.messages
    assert message.isprintable()
    assert r"\x1b[2Jcleared\nanother line" in message
