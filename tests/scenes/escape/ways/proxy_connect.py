# SPDX-License-Identifier: Apache-2.0
"""CONNECT to the courtesy proxy for an address that is not allowed.

unheard: no proxy listens behind a plain node
recorded: 4=client_aborted 6=client_aborted
"""
from attack import attempt, bracketed


def way(a):
    a.tcp(3128, f'CONNECT {bracketed(a.target)}:443 HTTP/1.1\r\nHost: x\r\n\r\n'.encode(), a.proxy)


attempt(way)
