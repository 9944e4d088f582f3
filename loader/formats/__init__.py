# SPDX-License-Identifier: Apache-2.0

"""Package types, which read the classes, resources and form of a package from its files.

The ``Format`` of a manifest chooses the package type from the entry points of the group
``io.murano.plugins.packages`` (document "package-type plug-ins"). Plug-ins that were written for
Murano work unchanged.
"""
