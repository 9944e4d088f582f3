# SPDX-License-Identifier: Apache-2.0

"""The commands ``openstack murano ...``: a module for each resource, a class for each command.

A command reads arguments and prints; the work is done by functions elsewhere in ``loader``.
"""
