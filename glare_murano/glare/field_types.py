# SPDX-License-Identifier: Apache-2.0

"""Glare's field classes, made right for today's libraries."""
