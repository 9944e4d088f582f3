# SPDX-License-Identifier: Apache-2.0

"""The code of the API that Glare and Glance share; each service adds queries of its database."""
