# SPDX-License-Identifier: Apache-2.0
"""The whole URL in the request line, as a proxy would get it.

unheard: no proxy listens behind a plain node
recorded: 4=~policy 6=~policy
"""
from attack import attempt, bracketed


def way(a):
    a.http(80, a.origin, f'GET http://{bracketed(a.target)}:8080/{a.label} HTTP/1.1', f'Host: {bracketed(a.target)}:8080')


attempt(way)
