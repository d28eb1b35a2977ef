# SPDX-License-Identifier: Apache-2.0
"""An error about a packet that never was.

recorded: 4=no_flow 6=no_flow
"""
from attack import attempt, icmp, icmp6


def way(a):
    inner = a.udp_packet(9, source=a.target, to=a.own)
    a.frame(a.packet(58, icmp6(1, 4, bytes(4) + inner, a.own, a.target)) if a.family == 6
            else a.packet(1, icmp(3, 3, bytes(4) + inner)))


attempt(way)
