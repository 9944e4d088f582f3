# SPDX-License-Identifier: Apache-2.0

"""The state of one request, for the hooks that Glare calls with the request's context alone."""

import dataclasses

from glare_murano.glare.interfaces import RequestContext
from glare_murano.glare.uploads import Upload


@dataclasses.dataclass
class RequestState:
    """The state of one request; it ends with Glare's context, to which it is attached.

    :ivar overrides_checks: whether an administrator overrides the integrity checks.
    :ivar upload: the upload of an archive, once it has begun.
    """

    overrides_checks: bool = False
    upload: Upload | None = None

    def roll_back(self, context: RequestContext) -> None:
        """Roll back an upload that has not ended, now that the request has."""
        if self.upload is not None:
            self.upload.roll_back(context)


def of(context: RequestContext) -> RequestState:
    """Return the state of a request."""
    state = getattr(context, "murano", None)
    if not isinstance(state, RequestState):
        state = context.murano = RequestState()  # type: ignore[attr-defined]
    return state
