# SPDX-License-Identifier: Apache-2.0

"""Glance's tables: statements to find packages, and rows of images to read, lock and change."""
