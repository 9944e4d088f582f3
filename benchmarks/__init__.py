# SPDX-License-Identifier: Apache-2.0

"""Benchmarks: each figure is a ratio within one run, or a difference."""
