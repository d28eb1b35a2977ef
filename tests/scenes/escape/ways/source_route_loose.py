# SPDX-License-Identifier: Apache-2.0
"""Loose source routing: by way of the node to where we like.

unheard: the kernel forwards none unless it is told to
recorded: 4=~options
"""
from attack import attempt, ip4, packed


def way(a):
    a.frame(ip4(17, a.udp_packet(9999)[20:], a.own, a.gateway, options=b'\x83\x07\x04' + packed(a.target)))


attempt(way, (4,))
