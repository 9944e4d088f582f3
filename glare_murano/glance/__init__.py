# SPDX-License-Identifier: Apache-2.0

"""The code that runs inside Glance: the import plug-in for packages, WSGI filters, and the API."""
