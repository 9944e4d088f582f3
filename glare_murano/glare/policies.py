# SPDX-License-Identifier: Apache-2.0

"""The policy rules of this project, and the artifacts that a caller may see."""

from typing import NamedTuple

from glare.common import policy
from oslo_policy import policy as oslo_policy

from glare_murano.glare.interfaces import RequestContext

_OVERRIDE_CHECKS = oslo_policy.DocumentedRuleDefault(
    "murano:override_checks",
    "rule:context_is_admin",
    "Activate, publish, deactivate or delete a package although an integrity check fails.",
    [
        {"path": "/artifacts/murano/{artifact_id}", "method": "PATCH"},
        {"path": "/artifacts/murano/{artifact_id}", "method": "DELETE"},
    ],
)


def list_rules() -> list[oslo_policy.RuleDefault]:
    """Return the rules, for ``oslopolicy-sample-generator``."""
    return [_OVERRIDE_CHECKS]


def authorize_override(context: RequestContext) -> None:
    """Check that the caller may override the integrity checks.

    :raises glare.common.exception.PolicyException: for any other caller.
    """
    enforcer = policy.init()
    if _OVERRIDE_CHECKS.name not in enforcer.registered_rules:
        enforcer.register_default(_OVERRIDE_CHECKS)
    policy.authorize(_OVERRIDE_CHECKS.name, {}, context)


class Viewer(NamedTuple):
    """The caller of a request, for the visibility of artifacts.

    :ivar is_admin: whether the artifacts of all projects are visible.
    """

    project_id: str | None
    is_admin: bool


def viewer_of(context: RequestContext) -> Viewer:
    """Return the caller of a request, for the visibility in list calls."""
    rule = "artifact:list_all_artifacts"
    sees_all = context.is_admin or policy.authorize(rule, {}, context, do_raise=False)
    return Viewer(context.project_id, bool(sees_all))
