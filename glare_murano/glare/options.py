# SPDX-License-Identifier: Apache-2.0

"""Define this project's options in Glare's configuration, in ``[artifact_type:murano]``."""

from oslo_config import cfg

from glare_murano import archive_settings, fields
from glare_murano.service import requirement_checks, settings

GROUP = f"artifact_type:{fields.TYPE_NAME}"

# Glare registers these options with the artifact type.
OPTIONS = [
    *requirement_checks.OPTIONS,
    *archive_settings.OPTIONS,
    cfg.IntOpt(
        "upload_timeout",
        min=1,
        default=90,
        help="The longest time that an upload may make no progress, in seconds. After that the "
        "upload has expired, since its process may have been killed, and the archive can be "
        "uploaded again.",
    ),
    *settings.OPTIONS,
]

# The values of the options.
SETTINGS = settings.Settings(GROUP)
