# SPDX-License-Identifier: Apache-2.0

"""Run queries and transactions on Glare's own tables."""
