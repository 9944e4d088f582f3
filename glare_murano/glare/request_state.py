# SPDX-License-Identifier: Apache-2.0

"""The state of a request, for hooks whose only link to the request is Glare's context."""

import dataclasses

from glare_murano.glare.interfaces import RequestContext
from glare_murano.glare.uploads import Upload


@dataclasses.dataclass
class RequestState:
    """The state of a request, attached to Glare's context.

    :ivar overrides_checks: whether an administrator overrides the integrity checks.
    :ivar upload: the upload of an archive, from its beginning.
    """

    overrides_checks: bool = False
    upload: Upload | None = None


def of(context: RequestContext) -> RequestState:
    """Return the state of a request."""
    state = getattr(context, "murano", None)
    if not isinstance(state, RequestState):
        state = context.murano = RequestState()  # type: ignore[attr-defined]
    return state


def upload_of(context: RequestContext) -> Upload:
    """Return the upload of a request that has begun to upload an archive."""
    upload = of(context).upload
    if upload is None:
        raise RuntimeError("no upload has begun")
    return upload
