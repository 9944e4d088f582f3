# SPDX-License-Identifier: Apache-2.0

"""Run code of packages in cells.

A cell is a child process for one request of murano-api. It has the token of the user, and no other
secret of the engine. The engine's process chooses and fetches the packages, gives the cell copies
of them, and answers its questions; see ``glare_murano.package.sandbox``. ``requests`` is for the
engine's process, and ``cell`` for the cell.
"""
