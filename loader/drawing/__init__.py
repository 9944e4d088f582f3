# SPDX-License-Identifier: Apache-2.0

"""Draw graphs, such as packages that require each other, as SVG pictures.

``layers`` places the boxes, and ``pictures`` draws them. Both modules know nothing of packages.
"""
