# SPDX-License-Identifier: Apache-2.0

"""Code inside Glance: the import plug-in for packages, the WSGI filters and the API."""
