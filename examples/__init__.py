# SPDX-License-Identifier: Apache-2.0

"""Examples: packages, and programs that publish and deploy them."""
