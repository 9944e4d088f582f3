# SPDX-License-Identifier: Apache-2.0

"""Catalogues of packages: ``base`` has their interface, and each kind has a module."""
