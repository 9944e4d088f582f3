# SPDX-License-Identifier: Apache-2.0

"""What runs inside Glance: the import plug-in that reads packages, and its files."""
