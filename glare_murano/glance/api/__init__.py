# SPDX-License-Identifier: Apache-2.0

"""What answers requests in Glance: the API of this project, and a filter before that of Glance."""
