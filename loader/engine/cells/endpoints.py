# SPDX-License-Identifier: Apache-2.0

"""The endpoints of a cell: what it can be requested to do. Messages have these names, too."""

SCHEMA = "request for a schema"
STATIC_ACTION = "static action"
TASK = "task"
DESCRIPTION = "description of a package"
# The cell does nothing.
CHECK = "check"
