# SPDX-License-Identifier: Apache-2.0

"""The rules that this project adds to Glare's policy.

Glare's own rules govern listing, uploading, activating and publishing; see
``doc/source/install/glare.rst``.
"""

from glare.common import policy
from oslo_policy import policy as oslo_policy

from glare_murano.glare.interfaces import RequestContext

OVERRIDE_CHECKS = "murano:override_checks"

_RULES: list[oslo_policy.RuleDefault] = [
    oslo_policy.DocumentedRuleDefault(
        OVERRIDE_CHECKS,
        "rule:context_is_admin",
        "Activate, publish, deactivate or delete a package although an integrity check fails.",
        [
            {"path": "/artifacts/murano/{artifact_id}", "method": "PATCH"},
            {"path": "/artifacts/murano/{artifact_id}", "method": "DELETE"},
        ],
    ),
]


def list_rules() -> list[oslo_policy.RuleDefault]:
    """Return the rules, for ``oslopolicy-sample-generator``."""
    return _RULES


def authorize(rule: str, context: RequestContext) -> None:
    """Check that a rule of this project permits the caller's action.

    :raises glare.common.exception.PolicyException: if it does not.
    """
    enforcer = policy.init()
    for default in _RULES:
        if default.name not in enforcer.registered_rules:
            enforcer.register_default(default)
    policy.authorize(rule, {}, context)


def sees_all_projects(context: RequestContext) -> bool:
    """Return whether a list call of the caller shows the artifacts of all projects."""
    rule = "artifact:list_all_artifacts"
    return bool(context.is_admin or policy.authorize(rule, {}, context, do_raise=False))
