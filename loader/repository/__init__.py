# SPDX-License-Identifier: Apache-2.0

"""The packages in Glare, for their publishers: search, change, and draw their requirements."""
