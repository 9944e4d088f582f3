# SPDX-License-Identifier: Apache-2.0

"""Write one line to the log for each refused request.

Glare logs each error at the level ERROR when the error is created, and some errors twice. So each
mistake of a user would cause an alert. On the paths of this project, this module suppresses Glare's
lines about refusals, and logs each refusal itself. Glare still logs errors of the server, with a
traceback.
"""

import contextlib
import contextvars
import logging as stdlib_logging
import urllib.parse
from collections.abc import Iterator

import webob
from glance_store.exceptions import GlanceStoreException
from oslo_context import context as oslo_context
from oslo_log import log as logging

from glare_murano.package.errors import shown

LOG = logging.getLogger(__name__)

# Logger -> the beginning of the lines that are suppressed.
_REPEATED = {
    "glare.common.exception": "",
    "glare.api.v1.resource": "Content-",
    "glare.db.sqlalchemy.api": "Artifact with id=",
    "glare.engine": "Exception occured",
    "oslo_db.api": "DB exceeded retry limit",
}
_is_answering = contextvars.ContextVar("is_answering", default=False)


class _RepetitionFilter(stdlib_logging.Filter):
    def filter(self, record: stdlib_logging.LogRecord) -> bool:
        is_repeated = str(record.msg).startswith(_REPEATED[record.name])
        return not (is_repeated and _is_answering.get())


def install() -> None:
    """Add a filter to Glare's loggers.

    ``without_repetitions`` switches the filter on. While the filter is on, it suppresses the lines
    that begin as in ``_REPEATED``. A second call of this function changes nothing.
    """
    for name in _REPEATED:
        logger = stdlib_logging.getLogger(name)
        if not any(isinstance(each, _RepetitionFilter) for each in logger.filters):
            logger.addFilter(_RepetitionFilter())


@contextlib.contextmanager
def without_repetitions() -> Iterator[None]:
    """Suppress Glare's lines about refusals inside the ``with`` statement."""
    token = _is_answering.set(True)
    try:
        yield
    finally:
        _is_answering.reset(token)


def write(req: webob.Request, status: int, message: str, refusal: BaseException | None) -> None:
    """Write the line about a refused request to the log.

    The level is INFO, or ERROR if an error of the store has caused the refusal: Glare answers a
    full disk with 403, and a lost file with 404.

    :param status: the HTTP status of the response.
    :param message: why the request was refused.
    :param refusal: the error with which the request was refused; None without an error.
    """
    path = urllib.parse.quote(req.environ["PATH_INFO"], encoding="latin-1")
    # A request that was refused before its authentication has no context, and the thread still
    # has the context of an earlier request.
    context = getattr(req, "context", None) or oslo_context.RequestContext(
        request_id=req.environ.get("openstack.request_id"), overwrite=False
    )
    is_fault = any(isinstance(each, GlanceStoreException) for each in _causes(refusal))
    LOG.log(
        stdlib_logging.ERROR if is_fault else stdlib_logging.INFO,
        "Refused %s %s with %d: %s",
        req.method,
        path,
        status,
        shown(message.replace("\n", " ")),
        context=context,
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
