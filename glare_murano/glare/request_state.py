# SPDX-License-Identifier: Apache-2.0

"""Store the state of a request in Glare's context of the request.

Glare passes the context to the methods of an artifact type, but not the request itself.
"""

import dataclasses

from glare.common import exception

from glare_murano.glare.interfaces import Artifact, RequestContext
from glare_murano.glare.uploads import Upload


class IncompletePipeline(exception.GlareException):  # type: ignore[misc]
    """Glare's pipeline lacks a filter of this project, and so may trust any token.

    Glare logs this error, and answers with the status 500.
    """

    message = (
        "packages are not served, since Glare's pipeline lacks the filter murano-validation "
        "behind faultwrapper, or the filter murano behind context: set [paste_deploy] "
        "config_file to a copy of etc/glare-murano/glare-paste.ini, and flavor to keystone"
    )


@dataclasses.dataclass
class RequestState:
    """The state of a request.

    :ivar is_filtered: whether the request has passed both filters of this project.
    :ivar overrides_checks: whether the caller overrides the checks of requirements, and may do so.
    :ivar unchanged: the value of the header ``preconditions.HEADER``; empty without the header.
    :ivar is_upload: whether the request uploads an archive.
    :ivar warning: what the caller should know although the request succeeds; may be empty.
    :ivar upload: the upload of the request; None before the upload begins.
    :ivar begun: the artifact as it was when the upload began; None before the upload begins.
    """

    is_filtered: bool = False
    overrides_checks: bool = False
    unchanged: str = ""
    is_upload: bool = False
    warning: str = ""
    upload: Upload | None = None
    begun: Artifact | None = None


def of(context: RequestContext) -> RequestState:
    """Return the state of a request. If the context has no state, store a new one there."""
    state = getattr(context, "murano", None)
    if not isinstance(state, RequestState):
        state = context.murano = RequestState()  # type: ignore[attr-defined]
    return state


def check_filtered(context: RequestContext) -> None:
    """Check that a request has passed both filters of this project.

    :raises IncompletePipeline: if a filter is missing.
    """
    if not of(context).is_filtered:
        raise IncompletePipeline


def upload_of(context: RequestContext) -> Upload:
    """Return the upload of a request.

    :raises RuntimeError: if the request has not begun an upload.
    """
    upload = of(context).upload
    if upload is None:
        raise RuntimeError("no upload has begun")
    return upload
