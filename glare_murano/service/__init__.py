# SPDX-License-Identifier: Apache-2.0

"""What Glare and Glance both need to serve packages: the API, over the queries of a database."""
