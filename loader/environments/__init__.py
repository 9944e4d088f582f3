# SPDX-License-Identifier: Apache-2.0

"""Read the objects of Murano's environments, and read and move their pins."""
