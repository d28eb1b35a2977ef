# SPDX-License-Identifier: Apache-2.0
"""Plain HTTP to an address, with the name of an allowed host.

recorded: 4=policy 6=malformed
"""
from attack import attempt


def way(a):
    a.http(80, a.target, 'GET / HTTP/1.1', f'Host: {a.target}')


attempt(way)
