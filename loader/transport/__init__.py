# SPDX-License-Identifier: Apache-2.0

"""Requests to OpenStack services: sessions, retries and downloads."""
