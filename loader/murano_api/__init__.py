# SPDX-License-Identifier: Apache-2.0

"""A WSGI filter for murano-api, which answers requests for packages from Glare or Glance.

With this filter, Murano's clients work unchanged when the packages are in Glare or Glance.
"""
