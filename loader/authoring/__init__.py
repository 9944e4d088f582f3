# SPDX-License-Identifier: Apache-2.0

"""The packages on this host: begin, check, compare, build and release them, without a network."""
