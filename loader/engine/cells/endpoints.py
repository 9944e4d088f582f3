# SPDX-License-Identifier: Apache-2.0

"""Name the kinds of requests that a cell serves; messages use these names."""

SCHEMA = "request for a schema"
STATIC_ACTION = "static action"
TASK = "task"
DESCRIPTION = "description of a package"
# The cell does nothing.
CHECK = "check"
