# SPDX-License-Identifier: Apache-2.0

"""Publish packages: of this host, a bundle, another cloud or Murano; and save packages."""
