# SPDX-License-Identifier: Apache-2.0

"""Bring packages into Glare: from this host, a bundle, another Glare or Murano; and save them."""
