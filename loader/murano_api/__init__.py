# SPDX-License-Identifier: Apache-2.0

"""A filter for murano-api, which answers requests for packages from Glare or Glance.

With the filter, Murano's clients work unchanged when Glare or Glance has the packages.
"""
