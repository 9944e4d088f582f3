# SPDX-License-Identifier: Apache-2.0

"""The pins and the objects of Murano's environments; pins keep the versions of packages."""
