# SPDX-License-Identifier: Apache-2.0

"""The packages in Glare or Glance, for publishers: search, change, and draw requirements."""
