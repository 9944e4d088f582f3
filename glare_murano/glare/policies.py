# SPDX-License-Identifier: Apache-2.0

"""The rules that this project adds to Glare's policy.

Glare's own rules govern listing, uploading, activating and publishing; see
``doc/source/install/glare.rst``.
"""

from typing import NamedTuple

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


class Viewer(NamedTuple):
    """The caller of a request, as far as the visibility of artifacts depends on it.

    :ivar sees_all: whether the caller sees the artifacts of all projects.
    """

    project_id: str | None
    sees_all: bool


def viewer_of(context: RequestContext) -> Viewer:
    """Return the caller of a request, who sees what Glare would list."""
    rule = "artifact:list_all_artifacts"
    sees_all = context.is_admin or policy.authorize(rule, {}, context, do_raise=False)
    return Viewer(context.project_id, bool(sees_all))
