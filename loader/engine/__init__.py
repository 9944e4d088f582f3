# SPDX-License-Identifier: Apache-2.0

"""Let Murano's engine load packages with this project's loader."""
