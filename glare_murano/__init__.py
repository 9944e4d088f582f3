# SPDX-License-Identifier: Apache-2.0

"""Murano packages, and their storage in Glare or Glance."""
