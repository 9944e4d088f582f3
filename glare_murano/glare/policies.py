# SPDX-License-Identifier: Apache-2.0

"""The rules of Glare's policy that this project adds.

Whoever may list, upload, activate or publish artifacts is ruled by Glare's own
rules; the document "The artifact type in Glare" names them.
"""

from typing import Any

from glare.common import policy
from oslo_policy import policy as oslo_policy

OVERRIDE_CHECKS = "murano:override_checks"

_RULES: list[oslo_policy.RuleDefault] = [
    oslo_policy.DocumentedRuleDefault(
        OVERRIDE_CHECKS,
        "rule:context_is_admin",
        "Activate, publish, deactivate or delete a package although a check refuses it.",
        [
            {"path": "/artifacts/murano/{artifact_id}", "method": "PATCH"},
            {"path": "/artifacts/murano/{artifact_id}", "method": "DELETE"},
        ],
    ),
]


def list_rules() -> list[oslo_policy.RuleDefault]:
    """The rules, for ``oslopolicy-sample-generator`` and for Glare's enforcer."""
    return _RULES


def authorize(rule: str, context: Any) -> None:
    """Hold that a caller may do what a rule of this project is for.

    :raises glare.common.exception.PolicyException: if it may not.
    """
    enforcer = policy.init()
    for default in _RULES:
        if default.name not in enforcer.registered_rules:
            enforcer.register_default(default)
    policy.authorize(rule, {}, context)
