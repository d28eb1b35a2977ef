# SPDX-License-Identifier: Apache-2.0
"""IP behind an MPLS label.

unheard: no such label
recorded: 4=~frame 6=~frame
"""
from attack import attempt


def way(a):
    a.frame(b'\0\x01\x01\x40' + a.udp_packet(9999), 0x8847)


attempt(way)
