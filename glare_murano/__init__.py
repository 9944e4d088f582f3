# SPDX-License-Identifier: Apache-2.0

"""Murano packages, and how Glare and Glance store them."""
