# SPDX-License-Identifier: Apache-2.0

"""The common code of Glare and Glance to serve packages: the API, over queries of a database."""
