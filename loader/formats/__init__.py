# SPDX-License-Identifier: Apache-2.0

"""Package types: from the files of a package to its classes, resources and form.

The ``Format`` of a manifest chooses the package type, among the entry points of the group
``io.murano.plugins.packages`` (document "package-type plug-ins"). A plug-in written for
Murano works unchanged.
"""
