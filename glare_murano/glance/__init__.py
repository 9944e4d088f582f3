# SPDX-License-Identifier: Apache-2.0

"""Store Murano packages in Glance: an import plug-in, an API, and a configuration command."""
