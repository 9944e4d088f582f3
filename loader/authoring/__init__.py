# SPDX-License-Identifier: Apache-2.0

"""Create, check, compare, build and release packages on this host, without a network."""
