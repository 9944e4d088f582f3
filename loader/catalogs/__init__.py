# SPDX-License-Identifier: Apache-2.0

"""Catalogues of packages: the interface, and a module for each kind."""
