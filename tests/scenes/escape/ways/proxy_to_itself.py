# SPDX-License-Identifier: Apache-2.0
"""CONNECT to the proxy for the proxy, for the node.

unheard: no proxy listens behind a plain node
recorded: 4=~address 6=~address
"""
import contextlib

from attack import attempt, bracketed


def way(a):
    for to in (a.proxy, a.gateway, a.node):
        with contextlib.suppress(OSError):
            a.tcp(3128, f'CONNECT {bracketed(to)}:8080 HTTP/1.1\r\nHost: x\r\n\r\n'.encode(), a.proxy)


attempt(way)
