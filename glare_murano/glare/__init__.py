# SPDX-License-Identifier: Apache-2.0

"""Store Murano packages in Glare: the artifact type, its API, and tools for operators."""
