# SPDX-License-Identifier: Apache-2.0

"""Return what to do if the libraries of an extra of this project are missing."""


def remedy(extra: str) -> str:
    """Return, for a message, how to install an extra of this project.

    :param extra: the name of the extra, or the names of several, separated by commas.
    """
    if extra == "glance":
        # Glance is installed already, with versions of its own.
        return "in a clone of glare-murano, run pip install '.[glance]' with Glance's own pip"
    return f"in a clone of glare-murano, run pip install -c constraints.txt '.[{extra}]'"
