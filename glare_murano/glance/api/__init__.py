# SPDX-License-Identifier: Apache-2.0

"""What answers requests: an application for the paths of this project, and filters for Glance's."""
