# SPDX-License-Identifier: Apache-2.0
"""UDP behind an authentication header.

recorded: 4=protocol 6=protocol
"""
import struct

from attack import attempt


def way(a):
    a.frame(a.packet(51, struct.pack('>BBHII', 17, 2, 0, 1, 1) + bytes(4) + a.udp_packet(9999)[-8 - len(a.mark):]))


attempt(way)
