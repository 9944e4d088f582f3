# SPDX-License-Identifier: Apache-2.0

"""Queries over Glare's own tables."""
