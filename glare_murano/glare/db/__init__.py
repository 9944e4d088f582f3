# SPDX-License-Identifier: Apache-2.0

"""Queries and transactions on Glare's own tables."""
