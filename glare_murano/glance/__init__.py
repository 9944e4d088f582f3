# SPDX-License-Identifier: Apache-2.0

"""Murano packages in Glance: the import plug-in, the API, and a command that configures Glance."""
