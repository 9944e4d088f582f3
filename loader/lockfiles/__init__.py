# SPDX-License-Identifier: Apache-2.0

"""Read, write and check lock files, which list exact releases and all that these require."""
