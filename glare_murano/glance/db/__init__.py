# SPDX-License-Identifier: Apache-2.0

"""Access Glance's tables: queries that find packages, and functions that change images."""
