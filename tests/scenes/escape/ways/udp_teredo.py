# SPDX-License-Identifier: Apache-2.0
"""IPv6 in UDP, as Teredo does it.

recorded: 4=policy 6=policy
"""
from attack import attempt, ip6


def way(a):
    a.udp(3544, ip6(17, b'\x9c\x40\x27\x0f\0\x08\0\0' + a.mark, 'fd12:9::1', 'fd12:9::2'))


attempt(way)
