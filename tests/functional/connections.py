# SPDX-License-Identifier: Apache-2.0

"""The connections that this process has open, as the kernel lists them."""

import urllib.parse

import psutil


def ports(url: str) -> set[int]:
    """Return the own ports of the connections that this process has opened to a server.

    A test compares the ports and not their number: meanwhile, the connection of an earlier test
    may be closed.
    """
    port = urllib.parse.urlsplit(url).port
    return {
        each.laddr.port
        for each in psutil.Process().net_connections("tcp")
        if each.raddr and each.raddr.port == port and each.status == psutil.CONN_ESTABLISHED
    }
