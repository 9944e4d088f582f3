# SPDX-License-Identifier: Apache-2.0

"""A catalogue of packages as static pages, which need no server.

``sources`` finds the packages, ``documents`` reads each one, ``relations`` finds what they have to
do with each other, ``pages`` and ``search`` write what a browser shows, and ``rendering`` puts all
of it into a directory. Everything that comes from a package is text here: no code of a package
runs.
"""
