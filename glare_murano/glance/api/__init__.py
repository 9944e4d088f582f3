# SPDX-License-Identifier: Apache-2.0

"""Handle requests in Glance: our own API, and a filter in front of Glance's API."""
