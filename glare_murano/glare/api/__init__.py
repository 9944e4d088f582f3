# SPDX-License-Identifier: Apache-2.0

"""The HTTP API beside Glare's own: two WSGI filters, and a module for each resource."""
