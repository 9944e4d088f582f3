# SPDX-License-Identifier: Apache-2.0

"""Check the policies of Glare and of this project."""

from collections.abc import Mapping
from typing import Any

from glare.common import policy
from oslo_policy import policy as oslo_policy

from glare_murano.glare.interfaces import RequestContext
from glare_murano.service.database import Viewer

LIST = "artifact:list"
LIST_ALL = "artifact:list_all_artifacts"
DOWNLOAD = "artifact:download"
DOWNLOAD_ANY = "artifact:download_from_any_artifact"
ACTIVATE = "artifact:activate"
PUBLISH = "artifact:publish"
UPDATE = "artifact:update"
YANK = "artifact:yank"
OVERRIDE_CHECKS = "murano:override_checks"

_OVERRIDE_CHECKS = oslo_policy.DocumentedRuleDefault(
    OVERRIDE_CHECKS,
    "rule:context_is_admin",
    "Activate, publish, deactivate or delete a package although a check of requirements fails.",
    [
        {"path": "/artifacts/murano/{artifact_id}", "method": "PATCH"},
        {"path": "/artifacts/murano/{artifact_id}", "method": "DELETE"},
        {"path": "/murano/v1/publications", "method": "POST"},
    ],
)
_YANK = oslo_policy.DocumentedRuleDefault(
    YANK,
    "rule:context_is_admin or (role:member and project_id:%(owner)s)",
    "Yank or unyank a package, by a patch of the field yanked alone. Users who may update a "
    "package may yank it as well.",
    [
        {"path": "/artifacts/murano/{artifact_id}", "method": "PATCH"},
        {"path": "/murano/v1/yanks", "method": "POST"},
    ],
)


def list_rules() -> list[oslo_policy.RuleDefault]:
    """Return the policy rules of this project, for ``oslopolicy-sample-generator``."""
    return [_OVERRIDE_CHECKS, _YANK]


def authorize_override(context: RequestContext) -> None:
    """Check that the caller may override the checks of requirements.

    :raises glare.common.exception.PolicyException: if the caller may not override the checks.
    """
    _register(_OVERRIDE_CHECKS)
    policy.authorize(OVERRIDE_CHECKS, {}, context)


def authorize_yank(context: RequestContext, fields: Mapping[str, Any]) -> None:
    """Check that the caller may yank a package.

    It is enough if the policy permits the caller to update the package.

    :param fields: the fields of the package's artifact.
    :raises glare.common.exception.PolicyException: if the caller may not yank the package.
    """
    _register(_YANK)
    if not policy.authorize(UPDATE, fields, context, do_raise=False):
        policy.authorize(YANK, fields, context)


def may_publish(context: RequestContext, fields: Mapping[str, Any]) -> bool:
    """Return whether the caller may publish a package for every project.

    :param fields: the fields of the package's artifact.
    """
    target = {**fields, "visibility": "public"}
    return bool(policy.authorize(PUBLISH, target, context, do_raise=False))


def _register(rule: oslo_policy.RuleDefault) -> None:
    enforcer = policy.init()
    if rule.name not in enforcer.registered_rules:
        enforcer.register_default(rule)


def viewer_of(context: RequestContext) -> Viewer:
    """Return a ``Viewer`` for the caller of a request.

    The packages that are visible to the viewer are those that Glare lists for the caller.
    """
    sees_all = context.is_admin or policy.authorize(LIST_ALL, {}, context, do_raise=False)
    return Viewer(context.project_id, bool(sees_all))
