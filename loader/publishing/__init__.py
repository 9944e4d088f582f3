# SPDX-License-Identifier: Apache-2.0

"""Publish packages from this host, a bundle, another cloud or Murano; save packages as files."""
