# SPDX-License-Identifier: Apache-2.0

"""Lock files, which list the exact releases of packages and of the packages that they require."""
