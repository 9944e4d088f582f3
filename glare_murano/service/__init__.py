# SPDX-License-Identifier: Apache-2.0

"""Serve the part of the API that is the same in Glare and Glance.

Each service adds the queries of its own database.
"""
