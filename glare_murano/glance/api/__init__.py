# SPDX-License-Identifier: Apache-2.0

"""Handle requests in Glance: this project's API, and a filter in front of Glance's own API."""
