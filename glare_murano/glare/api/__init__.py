# SPDX-License-Identifier: Apache-2.0

"""Extend Glare's HTTP API: two WSGI filters, and a module for each resource."""
