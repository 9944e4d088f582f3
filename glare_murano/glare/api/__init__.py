# SPDX-License-Identifier: Apache-2.0

"""The paths below /murano that a WSGI filter adds to Glare's API."""
