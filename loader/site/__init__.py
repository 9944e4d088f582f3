# SPDX-License-Identifier: Apache-2.0

"""Render a catalogue of packages as static pages, which need no server.

``sources`` finds the packages, and ``documents`` reads each package. ``relations`` finds which
packages require each other, and which classes extend each other. ``plans`` plans the requirements
of each release. ``pages`` and ``search`` make the files for a browser, and ``rendering`` writes
these files into a directory. No code of a package runs, except contracts if the pages show JSON
schemas; see ``schemas``.
"""
