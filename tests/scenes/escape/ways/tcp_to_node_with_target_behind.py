# SPDX-License-Identifier: Apache-2.0
"""A node that routes: the frame is for it, the packet is not.

unrecorded: no connection came of it
"""
from attack import attempt, SYN


def way(a):
    a.frame(a.tcp_packet(9999, SYN, b''))
    a.frame(a.tcp_packet(9999, SYN))


attempt(way)
