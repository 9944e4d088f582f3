# SPDX-License-Identifier: Apache-2.0

"""The commands ``openstack murano ...``: a module for each resource, a class for each command.

A command parses arguments, and prints results. Functions in other packages of ``loader`` do the
work.
"""
