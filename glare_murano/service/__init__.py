# SPDX-License-Identifier: Apache-2.0

"""The API code that Glare and Glance share; each service adds queries of its own database."""
