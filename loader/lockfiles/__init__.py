# SPDX-License-Identifier: Apache-2.0

"""Lock files: they list the releases of a closure, so that exactly these are loaded again."""
