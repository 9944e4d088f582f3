# SPDX-License-Identifier: Apache-2.0

"""The HTTP API that this project adds to Glare: two WSGI filters, and a module per resource."""
