# SPDX-License-Identifier: Apache-2.0
"""Strict source routing.

unheard: the kernel forwards none unless it is told to
recorded: 4=~options
"""
from attack import attempt, ip4, packed


def way(a):
    a.frame(ip4(17, a.udp_packet(9999)[20:], a.own, a.gateway, options=b'\x89\x07\x04' + packed(a.target)))


attempt(way, (4,))
