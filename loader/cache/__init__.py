# SPDX-License-Identifier: Apache-2.0

"""The package cache on disk, which processes share; ``store`` has its interface."""
