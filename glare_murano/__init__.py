# SPDX-License-Identifier: Apache-2.0

"""What a Murano package is, and how Glare, the artifact service, stores it."""
