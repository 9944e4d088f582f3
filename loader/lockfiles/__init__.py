# SPDX-License-Identifier: Apache-2.0

"""Lock files: the releases of a closure, kept for loading exactly these again."""
