# SPDX-License-Identifier: Apache-2.0
"""Record-route and timestamp options around a datagram.

recorded: 4=options
"""
from attack import attempt, ip4


def way(a):
    a.frame(ip4(17, a.udp_packet(9999)[20:], a.own, a.target, options=b'\x07\x07\x04' + bytes(4)))


attempt(way, (4,))
