# SPDX-License-Identifier: Apache-2.0

"""For publishers: search and change the packages in Glare or Glance, and draw requirements."""
