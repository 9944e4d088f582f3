# SPDX-License-Identifier: Apache-2.0

"""Send requests to OpenStack services, with sessions, retries and downloads."""
