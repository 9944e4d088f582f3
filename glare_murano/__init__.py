# SPDX-License-Identifier: Apache-2.0

"""Read Murano packages, plan their requirements, and store them in Glare or Glance."""
