# SPDX-License-Identifier: Apache-2.0
"""IP behind a VLAN tag.

unheard: no such VLAN
recorded: 4=frame 6=frame
"""
import struct

from attack import attempt, ETH_IP4, ETH_IP6


def way(a):
    kind = ETH_IP6 if a.family == 6 else ETH_IP4
    a.frame(struct.pack('>HH', 7, kind) + a.udp_packet(9999), 0x8100)


attempt(way)
