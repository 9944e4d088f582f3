# SPDX-License-Identifier: Apache-2.0

"""Exempt uploads of packages from Glare's locks.

During an upload, Glare itself locks and unlocks an artifact twice, each time in a transaction of
its own. An upload of a package locks the row of the artifact instead, and has a lease; see
``uploads``. All other requests still take Glare's locks.
"""

from glare import engine, locking
from sqlalchemy.orm.exc import StaleDataError

from glare_murano import fields
from glare_murano.glare import request_state
from glare_murano.glare.interfaces import RequestContext


class _Locks(locking.LockEngine):  # type: ignore[misc]
    """Glare's locks. An upload of a package does not take them."""

    def acquire(self, context: RequestContext, lock_key: str) -> locking.Lock:
        is_package = lock_key.startswith(f"{fields.TYPE_NAME}:")
        if is_package and request_state.of(context).is_upload:
            return locking.Lock(context, None, lock_key, self.release)
        try:
            return super().acquire(context, lock_key)
        except StaleDataError:
            # Glare was taking over a lock that is older than five seconds, and the owner of the
            # lock has released it at the same time.
            return super().acquire(context, lock_key)


def install() -> None:
    """Replace the locks of Glare's class ``Engine`` with ``_Locks``.

    After this call, uploads of packages take no locks of Glare. All other requests still take them.
    A second call changes nothing.
    """
    locks = engine.Engine.lock_engine
    if not isinstance(locks, _Locks):
        engine.Engine.lock_engine = _Locks(locks.lock_api)
