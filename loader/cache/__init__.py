# SPDX-License-Identifier: Apache-2.0

"""The shared package store on disk; ``store`` is its door."""
