# SPDX-License-Identifier: Apache-2.0

"""The shared package cache on disk; ``store`` has its interface."""
