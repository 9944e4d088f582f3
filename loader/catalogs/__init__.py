# SPDX-License-Identifier: Apache-2.0

"""Where releases are found: one module a kind of catalogue."""
