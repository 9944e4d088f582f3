# SPDX-License-Identifier: Apache-2.0

"""Run the command ``glare-murano-manage``, for operators of Glare.

The command reads Glare's configuration, and works on Glare's database and stores. Glare's servers
may run at the same time.
"""

import argparse
import datetime
import re
import sys
from collections.abc import Sequence

from glare.api.middleware.context import RequestContext
from glare.common import config as glare_config
from glare.common import exception
from glare.common import utils as glare_utils
from glare.db.sqlalchemy import api as database
from glare.objects.meta import registry
from oslo_config import cfg
from oslo_log import log as logging
from oslo_utils import timeutils
from sqlalchemy.engine import Connection, Row

from glare_murano import fields
from glare_murano.glare import blobs, request_state, uploads
from glare_murano.glare.artifact import MuranoPackageArtifact
from glare_murano.glare.db import artifact_queries, glare_database, transactions
from glare_murano.package.errors import GlareMuranoError
from glare_murano.service.package_locks import PackageLocks

LOG = logging.getLogger(__name__)

# glance_store logs stores that are not installed, and deprecated options of Glare. Both do not
# matter for this command.
_LOG_LEVELS = ("oslo_config=ERROR", "stevedore=CRITICAL")

_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_AGE = re.compile(rf"([0-9]{{1,5}})([{''.join(_UNITS)}])")


def sweep(older_than: datetime.timedelta | None, is_dry_run: bool) -> int:
    """Delete orphaned blobs, and drafts that were not changed for some time.

    Expired uploads are cancelled first, except in a dry run.

    :param older_than: the time without a change after which a draft is deleted; None to keep all
        drafts.
    :param is_dry_run: whether to list the blobs and drafts without deleting them.
    :returns: the number of blobs that could not be deleted.
    """
    context = RequestContext(is_admin=True)
    request_state.of(context).is_filtered = True
    now = timeutils.utcnow()
    if not is_dry_run:
        uploads.expire_all(now)
    if older_than is not None:
        _sweep_drafts(context, now - older_than, is_dry_run)
    return _sweep_blobs(context, now, is_dry_run)


def _sweep_drafts(context: RequestContext, before: datetime.datetime, is_dry_run: bool) -> None:
    with glare_database.snapshot() as connection:
        drafts = glare_database.find_old_drafts(connection, before)
    for draft in drafts:
        description = (
            f"draft {draft.id}: {draft.name} {artifact_queries.version_of(draft)} of project "
            f"{draft.owner}, last changed {_shown(draft.updated_at)}"
        )
        try:
            _delete_draft(context, draft, is_dry_run)
        except exception.NotFound:
            continue
        except exception.Conflict as error:
            print(f"Kept {description}: {error}")
        else:
            print(f"{_deleted(is_dry_run)} {description}")


def _delete_draft(context: RequestContext, draft: Row, is_dry_run: bool) -> None:
    def check(connection: Connection, _: frozenset[str]) -> PackageLocks:
        row = transactions.read_state(connection, draft.id)
        if (row.status, row.updated_at) != ("drafted", draft.updated_at):
            raise transactions.changed(row)
        return PackageLocks(exclusive=frozenset([draft.id]))

    uploads.check_idle(MuranoPackageArtifact.show(context, draft.id))
    if not is_dry_run:
        uploads.delete_artifact(context, draft.id, check)


def _sweep_blobs(context: RequestContext, now: datetime.datetime, is_dry_run: bool) -> int:
    left = 0
    orphans, undecided = blobs.find_orphans(now)
    for blob in orphans:
        failed = 0 if is_dry_run else blobs.delete(context, [blob.url])
        left += failed
        print(
            f"{'Kept' if failed else _deleted(is_dry_run)} blob {blob.url}: {blob.size} bytes, "
            f"stored {_shown(blob.modified)}"
        )
    if undecided:
        print(f"Kept {undecided} blobs that may belong to running uploads; the next run decides")
    return left


def _deleted(is_dry_run: bool) -> str:
    return "Would delete" if is_dry_run else "Deleted"


def _shown(time: datetime.datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def _age(text: str) -> datetime.timedelta:
    found = _AGE.fullmatch(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not an age such as 90m, 12h or 30d")
    return datetime.timedelta(**{_UNITS[found[2]]: int(found[1])})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="glare-murano-manage",
        description="Maintain the packages in Glare. Run it as the user of Glare's servers.",
    )
    parser.add_argument(
        "--config-file",
        action="append",
        metavar="FILE",
        help="configuration of Glare; can be repeated (default: the files that glare-api reads, "
        "such as /etc/glare/glare.conf)",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    text = "delete the blobs that killed servers leave behind, and old drafts"
    command = commands.add_parser(
        "sweep",
        help=text,
        description=f"{text.capitalize()}. The servers can be running: blobs of running uploads "
        "are kept. Files and Swift are supported. The directory or container must belong to "
        "Glare alone. The exit code is 1 if a blob could not be deleted.",
    )
    command.add_argument(
        "--dry-run", action="store_true", help="list what would be deleted, and delete nothing"
    )
    command.add_argument(
        "--older-than",
        type=_age,
        metavar="AGE",
        help="also delete drafts that were not changed for this time, such as 90m, 12h or 30d; "
        "drafts with a running upload are kept",
    )
    return parser


def _configure(files: Sequence[str]) -> None:
    logging.register_options(cfg.CONF)
    logging.set_defaults(default_log_levels=[*logging.get_default_log_levels(), *_LOG_LEVELS])
    glare_config.parse_args(args=[f"--config-file={file}" for file in files])
    logging.setup(cfg.CONF, "glare")
    registry.ArtifactRegistry.register_all_artifacts()
    if fields.TYPE_NAME not in registry.ArtifactRegistry.enabled_types:
        raise cfg.Error(
            f"enabled_artifact_types lacks {fields.TYPE_NAME} in the configuration "
            f"({', '.join(cfg.CONF.config_file) or 'no file was found'}); name the file of "
            f"Glare's servers by --config-file, before the command"
        )
    transactions.begin_immediately(database.get_engine())
    glare_utils.initialize_glance_store()


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    :returns: the exit code, 1 after a failure.
    """
    arguments = _parser().parse_args(argv)
    try:
        _configure(arguments.config_file or [])
        return 1 if sweep(arguments.older_than, arguments.dry_run) else 0
    except (GlareMuranoError, OSError, cfg.Error) as error:
        return _fail(str(error))
    except Exception as error:
        if cfg.CONF.log_file:
            LOG.exception("glare-murano-manage has failed")
        return _fail(f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}")


def _fail(message: str) -> int:
    print(f"glare-murano-manage: {' '.join(message.split())}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
