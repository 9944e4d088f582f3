# SPDX-License-Identifier: Apache-2.0

"""The code that answers requests in Glance: our own API, and a filter before Glance's API."""
