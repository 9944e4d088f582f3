# SPDX-License-Identifier: Apache-2.0

"""What it costs: every figure a ratio within one run, or a difference."""
