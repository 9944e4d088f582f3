# SPDX-License-Identifier: Apache-2.0

"""Releases, queries and answers as JSON."""
