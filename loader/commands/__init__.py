# SPDX-License-Identifier: Apache-2.0

"""The commands ``openstack murano ...``: one module a resource, one class a command.

They read arguments and print; what they do stands in the other modules of ``loader``.
"""
