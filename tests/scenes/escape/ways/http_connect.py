# SPDX-License-Identifier: Apache-2.0
"""CONNECT to an origin that is allowed, for one that is not.

unheard: no proxy listens behind a plain node
recorded: 4=~malformed 6=~malformed
"""
from attack import attempt, bracketed


def way(a):
    a.tcp(80, f'CONNECT {bracketed(a.target)}:9 HTTP/1.1\r\nHost: {bracketed(a.target)}:9\r\n\r\n'.encode(), a.origin)


attempt(way)
