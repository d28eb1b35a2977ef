# SPDX-License-Identifier: Apache-2.0
"""IPv6 routing header of type 0 (RFC 5095).

unheard: the kernel knows it no longer
recorded: 6=~options
"""
import struct

from attack import attempt, ip6, packed


def way(a):
    route = struct.pack('>BBBBI', 17, 2, 0, 1, 0) + packed(a.target)
    a.frame(ip6(43, route + a.udp_packet(9999)[40:], a.own, a.gateway))


attempt(way, (6,))
