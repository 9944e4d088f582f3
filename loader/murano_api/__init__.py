# SPDX-License-Identifier: Apache-2.0

"""A filter for murano-api: its calls of the application catalogue, answered from Glare or Glance.

Clients of Murano go on working when the packages are in the catalogue of this project.
"""
