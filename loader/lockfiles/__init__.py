# SPDX-License-Identifier: Apache-2.0

"""Lock files, which list the exact releases of packages and of everything that they require."""
