# SPDX-License-Identifier: Apache-2.0

"""Package types: each reads the classes, resources and form from the files of a package.

The ``Format`` in a manifest chooses the package type, from the entry points of the group
``io.murano.plugins.packages`` (document "package-type plug-ins"). Plug-ins for Murano work
unchanged.
"""
