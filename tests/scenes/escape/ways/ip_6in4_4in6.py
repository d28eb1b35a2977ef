# SPDX-License-Identifier: Apache-2.0
"""The other family of IP inside (6in4, 4in6).

recorded: 4=protocol 6=protocol
"""
from attack import attempt, ip4, ip6


def way(a):
    a.ip(4 if a.family == 6 else 41, ip4(17, bytes(8) + a.mark, '10.9.9.1', '10.9.9.2') if a.family == 6
         else ip6(17, bytes(8) + a.mark, 'fd12:9::1', 'fd12:9::2'))


attempt(way)
