# SPDX-License-Identifier: Apache-2.0

"""Murano's environments: their objects, and their pins, which keep the versions of packages."""
