# SPDX-License-Identifier: Apache-2.0

"""A filter for murano-api, which answers requests for packages from Glare or Glance.

Clients of Murano go on working when the packages are in the catalogue of this project.
"""
