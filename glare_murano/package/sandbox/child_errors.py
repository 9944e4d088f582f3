# SPDX-License-Identifier: Apache-2.0

"""The errors of child processes."""

from glare_murano.package.errors import GlareMuranoError


class ChildFailed(GlareMuranoError):
    """A child process has failed, or could not be started.

    :ivar output: the end of what the child has printed. Each line is indented, so that no line
        can imitate a line of a log.
    """

    def __init__(self, reason: str, output: str = "") -> None:
        super().__init__(reason)
        self.output = output


class LimitReached(GlareMuranoError):
    """A child process has reached a limit; the message says which limit."""
