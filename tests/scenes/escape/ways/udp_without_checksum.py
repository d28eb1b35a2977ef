# SPDX-License-Identifier: Apache-2.0
"""A datagram whose checksum is left out.

recorded: 4=policy 6=policy
"""
import struct

from attack import attempt


def way(a):
    body = struct.pack('>HHHH', 40000, 9999, 8 + len(a.mark), 0) + a.mark
    a.frame(a.packet(17, body))


attempt(way)
