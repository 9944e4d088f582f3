# SPDX-License-Identifier: Apache-2.0

"""Render a catalogue of packages as static pages, which need no server.

``sources`` finds the packages, and ``documents`` reads each one. ``relations`` finds which packages
require each other, and which classes extend each other. ``pages`` and ``search`` make the files for
a browser, and ``rendering`` writes all of them into a directory. No code of a package runs.
"""
