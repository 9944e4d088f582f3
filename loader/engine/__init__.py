# SPDX-License-Identifier: Apache-2.0

"""The Murano engine with packages from this loader."""
