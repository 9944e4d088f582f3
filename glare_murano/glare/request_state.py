# SPDX-License-Identifier: Apache-2.0

"""The state of a request, for hooks whose only link to the request is Glare's context."""

import dataclasses

from glare.common import exception

from glare_murano.glare.interfaces import Artifact, RequestContext
from glare_murano.glare.uploads import Upload


class IncompletePipeline(exception.GlareException):  # type: ignore[misc]
    """Glare's pipeline lacks a filter of this project, and so may trust any token.

    Glare logs the error, and answers 500.
    """

    message = (
        "packages are not served, since Glare's pipeline lacks the filter murano-validation "
        "behind faultwrapper, or the filter murano behind context: set [paste_deploy] "
        "config_file to a copy of etc/glare-murano/glare-paste.ini, and flavor to keystone"
    )


@dataclasses.dataclass
class RequestState:
    """The state of a request, attached to Glare's context.

    :ivar is_filtered: whether the request has passed both filters of this project.
    :ivar overrides_checks: whether an administrator overrides the checks of requirements.
    :ivar is_upload: whether the request uploads an archive.
    :ivar warning: what the caller should know although the request succeeds.
    :ivar upload: the upload of an archive, from its beginning.
    :ivar begun: the artifact at the beginning of the upload.
    """

    is_filtered: bool = False
    overrides_checks: bool = False
    is_upload: bool = False
    warning: str = ""
    upload: Upload | None = None
    begun: Artifact | None = None


def of(context: RequestContext) -> RequestState:
    """Return the state of a request."""
    state = getattr(context, "murano", None)
    if not isinstance(state, RequestState):
        state = context.murano = RequestState()  # type: ignore[attr-defined]
    return state


def check_filtered(context: RequestContext) -> None:
    """Refuse a request that has not passed both filters of this project.

    :raises IncompletePipeline: if a filter is missing.
    """
    if not of(context).is_filtered:
        raise IncompletePipeline


def upload_of(context: RequestContext) -> Upload:
    """Return the upload of a request that has begun to upload an archive."""
    upload = of(context).upload
    if upload is None:
        raise RuntimeError("no upload has begun")
    return upload
