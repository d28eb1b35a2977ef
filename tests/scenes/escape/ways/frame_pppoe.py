# SPDX-License-Identifier: Apache-2.0
"""IP behind PPPoE.

unheard: no such session
recorded: 4=~frame 6=~frame
"""
import struct

from attack import attempt


def way(a):
    p = a.udp_packet(9999)
    a.frame(struct.pack('>BBHHH', 0x11, 0, 1, len(p) + 2, 0x57 if a.family == 6 else 0x21) + p, 0x8864)


attempt(way)
